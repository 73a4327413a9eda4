"""What the loops of an 834 say of coverages: those that count, and whether they begin, end or were
never effective (docs/834.md, Access).

Days are `YYYY-MM-DD`; an empty one is not stated (a begin) or open (an end).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from frontdesk.eligibility.coverages import ChangeKind, CoverageChange
from frontdesk.eligibility.days import OPEN
from frontdesk.eligibility.model import Action
from frontdesk.formats.x12_loop import DELETED, END, OF_DEPENDENTS, REINSTATE, Level, MemberLoop
from frontdesk.mapping.parser import FileMapping

_SPOUSES = {"01", "53"}
_UNKNOWN_LINE = "?"
_LONGEST_DESCRIPTION = 255


@dataclass(frozen=True, slots=True)
class StatedCoverage:
    """What a loop says of a coverage, with the HD; without one it is about all coverages."""

    change: CoverageChange
    level: Level | None = None

    def duration(self) -> tuple[str, str]:
        """Orders coverages by their end and begin; one without an end lasts longest."""
        return self.change.end or OPEN, self.change.begin


def action_of(loops: Sequence[MemberLoop], stated: Sequence[StatedCoverage]) -> Action | None:
    """The action of all loops together: end the member only if none of them enrols it."""
    # The end of coverages that don't count is no end of the member.
    only_ends = Action.END if stated else Action.ENROL
    return next((loop.action for loop in loops if loop.action is not Action.END), only_ends)


def lasting_of(stated: Iterable[StatedCoverage], kind: ChangeKind) -> StatedCoverage | None:
    """The coverage of this kind that lasts longest, None without one."""
    found = [each for each in stated if each.change.kind is kind and each.level is not None]
    return max(found, key=StatedCoverage.duration, default=None)


def counted_levels(loop: MemberLoop, mapping: FileMapping) -> list[Level]:
    """The coverages (HD) that count, without those that only the dependents have."""
    return [
        level
        for level in loop.coverages
        if level.hd[1] != OF_DEPENDENTS and (mapping.lines is None or level.hd[3] in mapping.lines)
    ]


def family_levels(
    dependent: MemberLoop, subscriber: MemberLoop, mapping: FileMapping
) -> list[Level]:
    """The coverages of the subscriber that cover the dependent, by their level (HD05): the family,
    the spouse, the children.
    """
    is_spouse = dependent.ins[2] in _SPOUSES
    covering = {"FAM", "ESP" if is_spouse else "ECH"}
    return [
        each
        for each in counted_levels(subscriber, mapping)
        if each.hd[5].strip().upper() in covering
    ]


def _description_of(level: Level) -> str:
    """The description of the plan (HD04) as it is kept."""
    text = level.hd[4].strip()[:_LONGEST_DESCRIPTION]
    return "".join(letter if letter.isprintable() else " " for letter in text)


def coverages_of(
    loop: MemberLoop, mapping: FileMapping, plan_of: Callable[[Level | None], str]
) -> list[StatedCoverage]:
    """What the loop says of the coverages that count, in its order; nothing if it carries only
    others. `plan_of` gives the name of a coverage's plan, "" for that of the file.
    """
    if not loop.coverages:
        change = _change_of_all(loop, mapping)
        return [] if change is None else [StatedCoverage(change._replace(plan=plan_of(None)))]
    counted = counted_levels(loop, mapping)
    end_else = ""
    if loop.ins[3] == END:
        end_else = max((level.dates.get("349", "") for level in counted), default="")
    return [
        StatedCoverage(_change_of(level, loop, end_else)._replace(plan=plan_of(level)), level)
        for level in counted
    ]


def _change_of(level: Level, loop: MemberLoop, end_else: str) -> CoverageChange:
    """`end_else` is the end of an ended coverage that states none."""
    file_date = loop.transaction.file_date
    first_day, last_day = (loop.own.dates.get(name, "") for name in ("356", "357"))
    ends_member = loop.ins[3] == END
    code = level.hd[1]
    own_end = level.dates.get("349", "")
    day_of_change = level.dates.get("303", "")
    change = CoverageChange(
        ChangeKind.SET,
        line=level.hd[3] or _UNKNOWN_LINE,
        description=_description_of(level),
        begin=level.dates.get("348") or first_day,
        begin_else=day_of_change or loop.own.dates.get("303") or file_date,
    )
    if code == DELETED:
        return change._replace(kind=ChangeKind.REMOVE)
    if code == END or ends_member:
        own_end = own_end or (day_of_change if code == END else "")
        # The last day of the member has priority where the member ends; no coverage outlasts it.
        end = (ends_member and last_day) or min(filter(None, (own_end, last_day)), default="")
        end = end or end_else
        is_stated = bool(end)
        return change._replace(kind=ChangeKind.END, end=end or file_date, is_end_stated=is_stated)
    return change._replace(end=min(filter(None, (own_end, last_day)), default=""))


def _change_of_all(loop: MemberLoop, mapping: FileMapping) -> CoverageChange | None:
    """What a loop without any HD says of all coverages of the member; None for nothing."""
    first_day, last_day = (loop.own.dates.get(name, "") for name in ("356", "357"))
    file_date = loop.transaction.file_date
    if loop.ins[3] == END:
        end = last_day or file_date
        return CoverageChange(ChangeKind.END, end=end, is_end_stated=bool(last_day))
    if loop.ins[3] == REINSTATE:
        return CoverageChange(ChangeKind.REOPEN, end=last_day)
    if mapping.lines is None and first_day:
        return CoverageChange(ChangeKind.SET, begin=first_day, end=last_day)
    if last_day:
        return CoverageChange(ChangeKind.END, end=last_day)
    return None
