"""Doctors and past visits of a provider group, for tests of its estimates."""

from hypothesis import settings

from frontdesk.queues.estimate.model import Doctor, OngoingVisit, PastVisit

PLAN = 7
SIBLING = 8
PLANS = [PLAN, SIBLING]
HOUR = 3600.0

FEW = settings(max_examples=40, deadline=None)

TEN_MINUTES = [PastVisit(PLAN, 600.0, i * 60.0) for i in range(60)]
VISIT = 600.0


def busy(*elapsed: float, plan_ids: frozenset[int] | None = None, capacity: int = 1) -> Doctor:
    return Doctor(plan_ids, capacity, tuple(OngoingVisit(PLAN, seconds) for seconds in elapsed))


def worked(
    name: str, pause: float, *, waited: float = 300.0, until: float = 0.0, count: int = 20
) -> list[PastVisit]:
    """A doctor's visits of ten minutes, the last ended `until` seconds ago, with a pause between
    each two.
    """
    return [PastVisit(PLAN, VISIT, until + n * (VISIT + pause), name, waited) for n in range(count)]
