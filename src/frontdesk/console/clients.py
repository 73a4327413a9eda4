"""API clients of an account: create, roll a secret, end secrets and tokens, revoke. A secret stands in
the answer of the form that made it, and nowhere else.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import NamedTuple

from frontdesk import codes
from frontdesk.access import accounts, list_live_clients, list_revoked_clients
from frontdesk.access.model import ApiClient, ClientSecret, MadeSecret, NewClient, Scope
from frontdesk.config import Environment
from frontdesk.console import frame
from frontdesk.console.account_parts import Shown, change, chosen, days_of, number_in_form, reveal
from frontdesk.console.door import Pages
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.users import clients, directory
from frontdesk.users.model import Right, User
from frontdesk.users.names import read_name
from frontdesk.users.once import new_number
from frontdesk.web.response import Response

PAGES = Pages()

_PLACE = "/console/accounts/{account_id}/account/clients"
_CLIENT = _PLACE + "/{client_id}"
MOST_REVOKED = 20  # of the list: the newest
MOST_SECRETS = 20  # of a client's page: the newest
SCOPES = {
    Scope.CUSTOMER: "The whole of /v2, but for reading members, events and webhooks",
    Scope.PLANS_READ: "Read plans",
    Scope.PLANS_WRITE: "Change plans",
    Scope.ELIGIBILITY_READ: "Read members, and their histories",
    Scope.ELIGIBILITY_WRITE: "Members and eligibility files",
    Scope.EVENTS_READ: "Read events",
    Scope.WEBHOOKS_MANAGE: "Webhooks",
}
_RESET = {Scope.SANDBOX_RESET: "The reset of the sandbox"}


class ClientRow(NamedTuple):
    """A client in the list, with the UTC day on which it last got a token."""

    client: ApiClient
    last_used_on: str | None


class ClientView(NamedTuple):
    """A client with its newest secrets, and the users who were shown one."""

    client: ApiClient
    secrets: list[ClientSecret]
    seen_by: list[tuple[User, datetime]]


@PAGES.get(_PLACE, for_=Right.ACCOUNT_MANAGE)
async def show_clients(visit: Visit) -> Response:
    """List the account's API clients; the form for another one."""
    return await _list_page(visit)


async def _list_page(visit: Visit, message: str = "", status: int = 200) -> Response:
    def read(tx: Tx) -> list[ClientRow]:
        live = list_live_clients(tx, visit.reach)
        found = live + list_revoked_clients(tx, visit.account, limit=MOST_REVOKED)
        days = accounts.last_uses(tx, found)
        return [ClientRow(each, days.get(each.client_id)) for each in found]

    rows = await visit.app.ask(read)
    return frame.show(
        visit,
        "API clients",
        "account/clients.html",
        status=status,
        rows=rows,
        scopes=_offered(visit),
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_PLACE, for_=Right.ACCOUNT_MANAGE)
async def create_client(visit: Visit) -> Response:
    """Make an API client. Its secret is in this answer only."""

    def make(tx: Tx) -> Shown:
        days = days_of(visit)
        end = None if days is None else visit.now + days
        name = read_name(visit.form.text("name"))
        new = NewClient(visit.account, name, _scopes_of(visit), expires_at=end)
        return _shown(tx, visit, clients.create(tx, new, visit.requester))

    return await reveal(visit, make, show=partial(_list_page, visit))


def _scopes_of(visit: Visit) -> set[Scope]:
    """The scopes of the form. Raises Invalid for one that an account is not given here."""
    words = chosen(visit, "scope.")
    offered = _offered(visit)
    if not words or any(word not in offered for word in words):
        rule = f"must be one or more of: {', '.join(offered)}"
        raise Invalid([Fault("scope", codes.faults.NOT_ALLOWED, rule)])
    return {Scope(word) for word in words}


def _offered(visit: Visit) -> Mapping[Scope, str]:
    """The scopes of customers; a sandbox has one more."""
    if visit.app.config.environment is Environment.SANDBOX:
        return SCOPES | _RESET
    return SCOPES


@PAGES.get(_CLIENT, for_=Right.ACCOUNT_MANAGE)
async def show_client(visit: Visit) -> Response:
    """Show an API client with its secrets, never with their texts."""
    return await _client_page(visit)


async def _client_page(visit: Visit, message: str = "", status: int = 200) -> Response:
    client_id = _client_id(visit)

    def read(tx: Tx) -> ClientView:
        client = accounts.get_client(tx, visit.reach, client_id)
        secrets = accounts.list_secrets(tx, visit.reach, client_id)[:MOST_SECRETS]
        times = directory.secret_seen_by(tx, client_id)
        users = directory.find_users(tx, times)
        return ClientView(client, secrets, [(users[each], times[each]) for each in sorted(users)])

    view = await visit.app.ask(read)
    return frame.show(
        visit,
        "API client",
        "account/client.html",
        status=status,
        view=view,
        scopes=SCOPES | _RESET,
        message=message,
        typed=visit.form.fields,
        number=new_number(),
    )


@PAGES.post(_CLIENT + "/rotate", for_=Right.ACCOUNT_MANAGE)
async def rotate_secret(visit: Visit) -> Response:
    """Roll the secret: the one before it works on, or ends with every token. The new one is in this
    answer only.
    """
    client_id = _client_id(visit)

    def make(tx: Tx) -> Shown:
        others = visit.form.text("others")
        if others not in ("keep", "end"):
            rule = "choose whether the secret before still works"
            raise Invalid([Fault("others", codes.faults.REQUIRED, rule)])
        days = days_of(visit)
        end = None if days is None else visit.now + days
        made = clients.rotate(
            tx, visit.reach, client_id, visit.requester, leaked=others == "end", expires_at=end
        )
        return _shown(tx, visit, made)

    return await reveal(visit, make, show=partial(_client_page, visit))


def _shown(tx: Tx, visit: Visit, made: MadeSecret) -> Shown:
    """The secret for the answer. That the user has seen it is stored with it."""
    client_id = made.client.client_id
    directory.note_secret_seen(tx, visit.user.id, client_id, now=visit.now)
    return Shown(
        "A new secret",
        {"client_id": client_id, "client_secret": made.secret},
        "Give both to the program. With them it gets tokens.",
        f"{_place(visit)}/{client_id}",
    )


@PAGES.post(_CLIENT + "/end-secret", for_=Right.ACCOUNT_MANAGE)
async def end_secret(visit: Visit) -> Response:
    """End one secret of the client. Its tokens stay."""
    client_id = _client_id(visit)
    secret = number_in_form(visit, "secret")
    return await _change(
        visit, lambda tx: clients.end_secret(tx, visit.reach, client_id, secret, visit.requester)
    )


@PAGES.post(_CLIENT + "/end-tokens", for_=Right.ACCOUNT_MANAGE)
async def end_tokens(visit: Visit) -> Response:
    """End every token of the client within 5 seconds."""
    client_id = _client_id(visit)
    return await _change(
        visit, lambda tx: clients.end_tokens(tx, visit.reach, client_id, visit.requester)
    )


@PAGES.post(_CLIENT + "/revoke", for_=Right.ACCOUNT_MANAGE)
async def revoke_client(visit: Visit) -> Response:
    """End the client, its secrets and its tokens for good."""
    client_id = _client_id(visit)
    return await _change(
        visit, lambda tx: clients.revoke(tx, visit.reach, client_id, visit.requester)
    )


async def _change(visit: Visit, work: Callable[[Tx], object]) -> Response:
    after = f"{_place(visit)}/{_client_id(visit)}"
    return await change(visit, work, show=partial(_client_page, visit), after=after)


def _client_id(visit: Visit) -> str:
    return visit.request.path_parameters["client_id"]


def _place(visit: Visit) -> str:
    return f"/console/accounts/{visit.account}/account/clients"
