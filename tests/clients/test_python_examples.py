"""The examples of the Python client are run as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.conftest import BAD_ROW, CSV, Service, check_daily_sync

CLIENT = Path(__file__).parents[2] / "clients/python"
README = (CLIENT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", README, re.DOTALL)
SYNC = CLIENT / "examples/daily_sync.py"


class Desk(NamedTuple):
    service: Service
    folder: Path

    def run(self, *command: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
        """What a program of the customer does in its folder."""
        return subprocess.run(
            [sys.executable, "-W", "error", *command],
            cwd=self.folder,
            env={"PYTHONPATH": str(CLIENT / "src")} | self.service.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def desk(service: Service, tmp_path: Path) -> Desk:
    return Desk(service, tmp_path)


def test_the_examples_of_the_readme_print_what_they_say(desk: Desk) -> None:
    (desk.folder / "members.csv").write_text(CSV + BAD_ROW)
    assert len(EXAMPLES[0][0].strip().splitlines()) <= 10
    assert sum(bool(output) for _, output in EXAMPLES) == 4
    for code, output in EXAMPLES:
        done = desk.run("-", text=desk.service.filled_in(code))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == output or not output


def test_the_daily_sync_has_thirty_lines_and_says_what_became_of_the_file(desk: Desk) -> None:
    def sync(service: Service) -> subprocess.CompletedProcess[str]:
        return desk._replace(service=service).run(SYNC, "gold-2027", "members.csv")

    told = check_daily_sync(
        SYNC.read_text().partition('"""\n\n')[2], sync, desk.service, desk.folder
    )
    assert told.startswith("AuthenticationFailed: invalid_client")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("gold-2028", "members.csv"),
            "There is no plan gold-2028. The account has: gold-2027, plan-1, plan-2, plan-3\n",
        ),
        (
            ("gold-2027", "no-such.csv"),
            "FileNotFoundError: [Errno 2] No such file or directory: 'no-such.csv'\n",
        ),
        (
            ("gold-2027",),
            "Load the full list of a plan's members, every night: python daily_sync.py ",
        ),
    ],
)
def test_the_daily_sync_tells_what_it_was_started_with_wrongly(
    desk: Desk, arguments: tuple[str, ...], told: str
) -> None:
    (desk.folder / "members.csv").write_text(CSV)
    done = desk.run(SYNC, *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(told)


def test_the_daily_sync_sends_the_name_of_the_file(desk: Desk) -> None:
    (desk.folder / "sandbox-held-too_many_ends.csv").write_text(CSV)
    done = desk.run(SYNC, "gold-2027", "sandbox-held-too_many_ends.csv")
    assert done.returncode == 4
    assert "too_many_ends" in done.stdout
