"""Who opened records of the account: the weekly list by user, for the account's admin."""

from datetime import UTC

from frontdesk.clock import find_time_zone
from frontdesk.console import frame
from frontdesk.console.door import Pages
from frontdesk.console.reasons import REASONS
from frontdesk.console.visit import Visit
from frontdesk.disclosures.weekly import WEEKS, list_weekly_looks
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()


@PAGES.get("/console/accounts/{account_id}/account/looks", for_=Right.ACCOUNT_MANAGE)
async def show_looks(visit: Visit) -> Response:
    """List by user and week how many records were opened, by reason."""
    named = visit.user.time_zone
    zone = (None if named is None else find_time_zone(named)) or UTC
    found = await visit.app.ask(
        lambda tx: list_weekly_looks(tx, visit.account, now=visit.now, zone=zone)
    )
    return frame.show(
        visit, "Who opened records", "account/looks.html", looks=found, reasons=REASONS, weeks=WEEKS
    )
