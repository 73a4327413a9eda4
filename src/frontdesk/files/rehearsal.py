"""A dry run: chunks are decided as in the real run, and nobody is written or invited."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from frontdesk.clock import Clock
from frontdesk.config import Uniqueness
from frontdesk.db import Tx
from frontdesk.eligibility import dry_run
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import FrontdeskError
from frontdesk.files.chunks import Write


@contextmanager
def rehearsing(clock: Clock, uniqueness: Uniqueness) -> Iterator[Write]:
    """What `write_chunk` takes for `enrol` in a dry run."""
    with dry_run(uniqueness) as play:

        def write(tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
            return play.enrol(tx, submissions, now=clock())

        yield write
