"""Account, the place of an account's admin: what the account is, and what needs the admin."""

from typing import NamedTuple

from frontdesk import access, events
from frontdesk.access.accounts import get_account
from frontdesk.access.model import Account
from frontdesk.console import frame
from frontdesk.console.door import Pages
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.events.model import EndpointState, WebhookEndpoint
from frontdesk.users.model import Right
from frontdesk.web.response import Response

PAGES = Pages()


class AccountView(NamedTuple):
    """An account, how many clients work, and the endpoints that are sent nothing or that fail."""

    account: Account
    clients: int
    endpoints: int
    troubled: list[WebhookEndpoint]


@PAGES.get("/console/accounts/{account_id}/account", for_=Right.ACCOUNT_MANAGE)
async def show_account(visit: Visit) -> Response:
    """Show the account, with links to its clients, webhooks and users."""

    def read(tx: Tx) -> AccountView:
        found = events.list_endpoints(tx, visit.account)
        return AccountView(
            get_account(tx, visit.account),
            len(access.list_live_clients(tx, visit.reach)),
            len(found),
            [each for each in found if each.state is not EndpointState.ACTIVE or each.attempts],
        )

    view = await visit.app.ask(read)
    return frame.show(visit, "Account", "account/account.html", view=view)
