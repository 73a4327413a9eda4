"""How often users opened records of an account, week by week: the list that the account's admin looks
through. It is counted from the audit trail.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from frontdesk import audit
from frontdesk.audit.actors import user_id_of
from frontdesk.db import Tx
from frontdesk.disclosures.model import OpeningReason
from frontdesk.users.directory import find_users
from frontdesk.users.model import User

WEEKS = 5
MOST_ROWS = 500


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

    def add(self, looks: audit.LooksOfWeek) -> None:
        """Count the looks of one kind."""
        if looks.reason is not None:
            self.opened[OpeningReason(looks.reason)] += looks.times
        elif looks.action == "file.names_opened":
            self.names_of_files += looks.times
        elif looks.action == "people.searched":
            self.searches += looks.times
        elif looks.action == "member.checked":
            self.checks += looks.times


def list_weekly_looks(
    tx: Tx, account_id: int, *, now: datetime, zone: tzinfo = UTC
) -> list[WeekOfUser]:
    """What users did with people of the account in this week and the four before it, 500 rows at most:
    the newest week first, in a week those who opened most first. Weeks begin on Monday in the time
    zone.
    """
    today = now.astimezone(zone).date()
    this = today - timedelta(days=today.weekday())
    mondays = [this - timedelta(weeks=number) for number in reversed(range(WEEKS))]
    begins = [datetime.combine(monday, time(), zone).astimezone(UTC) for monday in mondays]
    found = audit.count_looks(tx, account_id, begins)
    users = find_users(tx, {id_ for each in found if (id_ := user_id_of(each.actor)) is not None})
    by_actor = {user.actor: user for user in users.values()}
    weeks: dict[tuple[str, int], WeekOfUser] = {}
    for each in found:
        if each.actor in by_actor:
            new = WeekOfUser(by_actor[each.actor], mondays[each.week])
            weeks.setdefault((each.actor, each.week), new).add(each)
    return sorted(weeks.values(), key=_rank)[:MOST_ROWS]


def _rank(week: WeekOfUser) -> tuple[int, int, int]:
    return -week.monday.toordinal(), -week.opened.total(), week.user.id
