"""The lines of a file, one at a time or all at hand, and some of them once more."""

from collections.abc import Iterator


class LineQueue:
    """Gives out lines that come by the block. `taken` counts those that were, without those that were put back."""

    def __init__(self, blocks: Iterator[list[str]]) -> None:
        self._blocks = blocks
        self._block: list[str] = []
        self._at = 0
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while self._at == len(self._block):
            self._block, self._at = next(self._blocks), 0
        line = self._block[self._at]
        self._at += 1
        self.taken += 1
        return line

    def take_block(self) -> list[str]:
        """The lines at hand, if none are the next ones of the file; none at its end."""
        lines = self._block[self._at :] or next(self._blocks, [])
        self._block, self._at = [], 0
        self.taken += len(lines)
        return lines

    def put_back(self, lines: list[str]) -> None:
        """The last lines that were taken come again."""
        self._block, self._at = [*lines, *self._block[self._at :]], 0
        self.taken -= len(lines)
