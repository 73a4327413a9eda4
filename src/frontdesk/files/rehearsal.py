"""A dry run: chunks are decided as in the real run, and nobody is written or invited."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import Enrolled, Submission, rehearsal
from frontdesk.errors import FrontdeskError
from frontdesk.files.chunks import Write


@contextmanager
def rehearsing(clock: Clock, uniqueness: Uniqueness) -> Iterator[Write]:
    """What `write_chunk` takes for `enrol` in a dry run."""
    with rehearsal(uniqueness) as play:

        def write(tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
            return play.enrol(tx, submissions, now=clock())

        yield write
