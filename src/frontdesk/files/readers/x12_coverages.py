"""What the coverages of a member in an 834 ask for: the action, the coverages that count, the dates (docs/834.md, Access)."""

from collections.abc import Sequence

from frontdesk.eligibility.model import Action
from frontdesk.files.mapping import FileMapping
from frontdesk.files.readers.x12_access import Coverage, access_of
from frontdesk.files.readers.x12_loop import DELETED, END, OF_DEPENDENTS, REINSTATE, MemberLoop

BEFORE_ACCESS = "1900-01-01"


def action_of(loops: Sequence[MemberLoop], coverages: Sequence[Coverage]) -> Action | None:
    """What all loops ask for together: to end the member only if none of them enrols it."""
    for loop in loops:
        if loop.action is not Action.END:
            return loop.action
    # The end of coverages that don't count is no end of the member.
    return Action.END if coverages else Action.ENROL


def coverages_of(loop: MemberLoop, mapping: FileMapping) -> list[Coverage]:
    """The coverages that count, deleted ones too, and the end of the member if the loop says one."""
    file_date, first_day, last_day = loop.transaction.file_date, *map(loop.own.dates.get, ("356", "357"))
    counted = [
        level
        for level in loop.coverages
        if level.hd[1] != OF_DEPENDENTS and (mapping.lines is None or level.hd[3] in mapping.lines)
    ]
    ends_member = loop.code == END
    end_of_all = last_day or (
        ends_member
        and max((level.dates.get("349", "") for level in counted if level.hd[1] != DELETED), default="")
    )
    found = []
    for level in counted:
        ends_coverage = level.hd[1] == END
        is_deleted = level.hd[1] == DELETED
        is_end = ends_member or ends_coverage or is_deleted
        changed = level.dates.get("303", "")
        end = level.dates.get("349", "") or (changed if ends_coverage else "")
        if ends_member:
            end = last_day or end or end_of_all or file_date
        elif is_end:
            end = end or last_day or file_date
        end = min(end or last_day, last_day) if last_day else end
        line, description = level.hd[3], level.hd[4].strip()
        begin = level.dates.get("348") or first_day or ""
        changed = changed or loop.own.dates.get("303", "")
        found.append(
            Coverage(line or "?", description, begin, end, is_end, level.references, changed, is_deleted)
        )
    if not found and (last_day or (ends_member and not loop.coverages)):
        begin = (first_day or "") if mapping.lines is None else ""
        found.append(Coverage("", "", begin, last_day or file_date, is_end=True))
    return found


def dates_of(
    loops: Sequence[MemberLoop], coverages: Sequence[Coverage], mapping: FileMapping
) -> tuple[dict[str, object], dict[str, object] | None]:
    """The dates of the access, and those that only a member that is not stored yet takes."""
    if coverages and coverages[0].is_deleted:
        # Without a begin, the end is that of the stored access: eligibility.file_rows moves it to the first day.
        return {"expiry_date": min(coverage.begin or BEFORE_ACCESS for coverage in coverages)}, None
    if coverages:
        access = access_of(coverages, loops[-1].transaction.file_date)
        dates: dict[str, object] = {"expiry_date": access.end or None}
        if access.begin:
            return dates | {"effective_date": access.begin}, None
        return dates, {"effective_date": access.begin_of_new} if access.begin_of_new else None
    dates = {}
    if not any(loop.coverages for loop in loops):
        if any(loop.code == REINSTATE for loop in loops):
            dates["expiry_date"] = None
        if mapping.lines is None and (begin := loops[-1].own.dates.get("356")):
            dates["effective_date"] = begin
    return dates, None
