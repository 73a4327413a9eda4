"""How often users opened records of an account, week by week: the list that the account's admin looks
through. It is counted from the audit trail.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from frontdesk import audit
from frontdesk.db import Tx
from frontdesk.disclosures.model import OpeningReason
from frontdesk.users.directory import list_here_since
from frontdesk.users.model import SESSION_TIME, User

WEEKS = 5
MOST_ENTRIES = 5000  # of a user: the newest
MOST_ROWS = 500
_OPENED = "member.opened"
_NAMES = "file.names_opened"
_SEARCHED = "people.searched"
_CHECKED = "member.checked"


@dataclass(slots=True)
class WeekOfUser:
    """What a user did in the account in a week, which began on `monday`. `opened`: how many records
    were opened, by reason; a record that was opened twice counts twice.
    """

    user: User
    monday: date
    opened: Counter[OpeningReason] = field(default_factory=Counter)
    names_of_files: int = 0
    searches: int = 0
    checks: int = 0


@dataclass(frozen=True, slots=True)
class WeeklyLooks:
    """The newest week first; in a week those who opened most first. `cut_short`: users with more
    entries than are counted.
    """

    weeks: list[WeekOfUser]
    cut_short: list[User]


def list_weekly_looks(tx: Tx, account_id: int, *, now: datetime, zone: tzinfo = UTC) -> WeeklyLooks:
    """What users did with people of the account in this week and the four before it. Weeks begin on
    Monday in the time zone.
    """
    first = _monday(now.astimezone(zone).date()) - timedelta(weeks=WEEKS - 1)
    since = datetime.combine(first, time(), zone).astimezone(UTC)
    users = {each.actor: each for each in list_here_since(tx, account_id, since - SESSION_TIME)}
    entries = audit.list_of_users(
        tx,
        account_id,
        users,
        (_OPENED, _NAMES, _SEARCHED, _CHECKED),
        first_id=audit.first_id_since(tx, since),
        limit=MOST_ENTRIES,
    )
    weeks: dict[tuple[str, date], WeekOfUser] = {}
    counts: Counter[str] = Counter()
    for entry in entries:
        actor = str(entry["actor"])
        counts[actor] += 1
        if entry["at"] < since:
            continue
        monday = _monday(entry["at"].astimezone(zone).date())
        week = weeks.setdefault((actor, monday), WeekOfUser(users[actor], monday))
        _count(week, str(entry["action"]), entry["detail"] or {})
    found = sorted(weeks.values(), key=_rank)[:MOST_ROWS]
    return WeeklyLooks(found, [users[each] for each in counts if counts[each] >= MOST_ENTRIES])


def _count(week: WeekOfUser, action: str, detail: dict[str, object]) -> None:
    if action == _OPENED:
        week.opened[OpeningReason(str(detail["reason"]))] += 1
    elif action == _NAMES:
        week.names_of_files += 1
    elif action == _SEARCHED:
        week.searches += 1
    else:
        week.checks += 1


def _rank(week: WeekOfUser) -> tuple[int, int, int]:
    return -week.monday.toordinal(), -week.opened.total(), week.user.id


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())
