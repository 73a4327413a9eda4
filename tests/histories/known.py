"""Histories that were found, as tests (CONTRIBUTING.md, A family history).

`KEPT` are those without a violation: repaired, or found to be at risk. `OPEN` are those that still
violate a law: the cause is known, and other tests pass over its kind.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tests.histories.drawing import History
from tests.histories.judge import Violation
from tests.histories.senders import FULL, TABLE, Habits
from tests.histories.world import Event, Family, Round


class OpenCause(NamedTuple):
    """Why histories still violate a law: a pattern of the kinds of violations, and the shortest of the
    histories.
    """

    cause: str
    pattern: str
    history: History


LATER_LIST = Habits(form=TABLE, lists="next month")
OPEN: Sequence[OpenCause] = (
    OpenCause(
        "the list of a later day moves the begin",
        r"^lost \| table \| .*listed as of a later day",
        History(families=(Family(),), rounds=(Round(30),), habits=LATER_LIST),
    ),
    OpenCause(
        "the list of a later day ends the omitted today",
        r"^lost \| table \| omitted from a list of a later day",
        History(
            families=(Family(children=2),),
            rounds=(Round(61, (Event("age_out"),)),),
            habits=LATER_LIST,
        ),
    ),
    OpenCause(
        "the begin of a new plan replaces the plan in force",
        r"^(lost|not given|not ended) \| change 834 \| .*021 from",
        History(
            families=(Family(),),
            rounds=(Round(1, (Event("renew_all"),)), Round(1)),
            habits=Habits(ends_first=True),
        ),
    ),
    OpenCause(
        "a dental coverage that ends by DTP*357 ends all",
        r"^lost \| change 834 \| .*dental ends by 357",
        History(
            families=(Family(has_dental=True),),
            rounds=(Round(7, (Event("end_dental"),)),),
            habits=Habits(dental_end_by="357"),
        ),
    ),
    OpenCause(
        "a coverage that was never effective ends the plan in force",
        r"^lost \| change 834 \| .*002 from",
        History(
            families=(Family(),),
            rounds=(Round(1, (Event("renew_all"),)), Round(1, (Event("cancel"),))),
        ),
    ),
    OpenCause(
        "a begin by DTP*303 after an end fills the gap",
        r"^gained \| change 834 \| .*021 from",
        History(
            families=(Family(),),
            rounds=(Round(7, (Event("leave"),)), Round(61, (Event("rehire", lag=45),))),
            habits=Habits(begin_by="303"),
        ),
    ),
)

WIDOW = (Event("die", lag=-60, variant=3),)
KEPT: dict[str, History] = {
    "a newborn gets a name": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("birth"),)), Round(30, (Event("name_child"),))),
        habits=Habits(newborn="BABY BOY"),
    ),
    "twins without a name get names": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("birth", variant=1),)), Round(30, (Event("name_child"),) * 2)),
        habits=Habits(form=FULL, newborn="BABY BOY"),
    ),
    "a widow takes the number of the dead in a full file": History(
        families=(Family(spouse=True),), rounds=(Round(61, WIDOW),), habits=Habits(form=FULL)
    ),
    "a widow takes the number of the dead in a change file": History(
        families=(Family(spouse=True),), rounds=(Round(61, WIDOW),)
    ),
    "a number is used again in a table": History(
        families=(Family(),),
        rounds=(Round(30, (Event("leave"),)), Round(330, (Event("reuse"),))),
        habits=Habits(form=TABLE),
    ),
    "two employers have the same numbers": History(
        families=(Family(),), rounds=(Round(7, (Event("second_job"),)),), habits=Habits(form=TABLE)
    ),
    "a change of the plan is taken back by an end before its begin": History(
        families=(Family(),),
        rounds=(Round(14, (Event("switch"),)), Round(61, (Event("cancel"),))),
        habits=Habits(cancel_by="024"),
    ),
    "a coverage is reinstated": History(
        families=(Family(spouse=True),),
        rounds=(Round(7, (Event("leave"),)), Round(30, (Event("reinstate"),))),
    ),
}


def unexpected(violations: Iterable[Violation]) -> list[Violation]:
    """The violations whose cause is not known."""
    return [each for each in violations if not any(re.search(of.pattern, each.kind) for of in OPEN)]
