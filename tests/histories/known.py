"""Histories that were found, as tests (CONTRIBUTING.md, A family history).

`KEPT` are those without a violation: repaired, or found to be at risk. `OPEN` are those that still
violate a law: the cause is known, and other tests pass over its kind.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.histories.drawing import History
from tests.histories.judge import Violation
from tests.histories.senders import Habits
from tests.histories.world import Event, Family, Round


class OpenCause(NamedTuple):
    """Why histories still violate a law: a pattern of the kinds of violations, and the shortest of the
    histories.
    """

    cause: str
    pattern: str
    history: History


OPEN: Sequence[OpenCause] = ()

KEPT: dict[str, History] = {
    "a newborn gets a name": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("birth"),)), Round(30, (Event("name_child"),))),
        habits=Habits(newborn="BABY BOY"),
    )
}


def unexpected(violations: Iterable[Violation]) -> list[Violation]:
    """The violations whose cause is not known."""
    return [each for each in violations if not any(re.search(of.pattern, each.kind) for of in OPEN)]
