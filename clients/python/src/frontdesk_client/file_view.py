"""What a handle of a file shows, whichever client has made it."""

from __future__ import annotations

from frontdesk_client.models import File, FileProblem


class FileView:
    """A file as it was last read; `data` has all of its fields."""

    def __init__(self, data: File) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}: {self.state}>"

    @property
    def id(self) -> int:
        return self.data["id"]

    @property
    def plan_id(self) -> int:
        return self.data["plan_id"]

    @property
    def state(self) -> str:
        """`receiving`, `waiting`, `running`, `held`, `done`, `failed` or `cancelled`."""
        return self.data["state"]

    @property
    def counts(self) -> dict[str, int]:
        """Rows by outcome."""
        return self.data["counts"]

    @property
    def codes(self) -> dict[str, int]:
        """Lines of the report by code."""
        return self.data["codes"]

    @property
    def problem(self) -> FileProblem | None:
        """Why the file failed or is held."""
        return self.data["problem"]
