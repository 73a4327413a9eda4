"""How many rows of a file are written in one transaction on SQLite: other writers wait meanwhile (docs/decisions/0094)."""

from collections.abc import Generator, Sequence
from contextlib import closing

from frontdesk.files.model import ChunkItem, ChunkRow

# How long a transaction holds the database, in seconds: while others write, and when none has for a second or so.
SHORTEST_HOLD, LONGEST_HOLD = 0.012, 0.05
GROWTH = 1.1  # of the hold, with each chunk beside which nobody wrote
FEWEST_ROWS, MOST_ROWS = 50, 2000
FIRST_ROWS = 250  # and the fewest at the longest hold, so that a busy machine slows no load down for nobody


class ChunkPace:
    """Adapts the size of chunks to the time that they hold the database, and that time to what others write."""

    def __init__(self) -> None:
        self.rows = FIRST_ROWS
        self._hold = LONGEST_HOLD

    def note(self, rows: int, seconds: float, *, others_wrote: bool) -> None:
        """A transaction has written so many rows and has held the database so long; `others_wrote` since the one before."""
        self._hold = SHORTEST_HOLD if others_wrote else min(self._hold * GROWTH, LONGEST_HOLD)
        if rows and seconds:
            wanted = int(rows * self._hold / seconds)
            fewest = FIRST_ROWS if self._hold == LONGEST_HOLD else FEWEST_ROWS
            # A few rows tell little of what many would take.
            self.rows = max(fewest, min(wanted, 2 * max(rows, self.rows), MOST_ROWS))

    def cut(
        self, chunks: Generator[Sequence[ChunkItem], None, None]
    ) -> Generator[Sequence[ChunkItem], None, None]:
        """The rows in pieces, each with as many rows to be written as is right by then; other rows cost little. An empty
        chunk stays.

        A family may fall into two pieces: they are written one after the other.
        """
        with closing(chunks):
            for rows in chunks:
                start = to_write = 0
                for end, row in enumerate(rows, 1):
                    to_write += isinstance(row, ChunkRow)
                    if to_write >= self.rows:
                        yield rows[start:end]
                        start, to_write = end, 0
                if start < len(rows) or not rows:
                    yield rows[start:]
