"""`frontdesk user`: users of the console, also the way back when a second factor or the last admin
is lost.
"""

from typing import Annotated, Any

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.layout import picked
from frontdesk.cli.options import OnlyAccount, argument, given, id_argument, option
from frontdesk.cli.output import MISUSED, Output, describe, fail, listing, settings
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.reach import EVERY, Reach
from frontdesk.users import directory, links, sessions
from frontdesk.users.factors import count_recovery_codes
from frontdesk.users.model import ACCOUNT_ROLES, NewUser, Role, User, UserLink

UserId = Annotated[int, id_argument("ID", "Id of the user (see `user list`).")]
Roles = Annotated[
    list[Role] | None,
    option(
        "A role; repeat for several. viewer, editor, approver, admin: of an account. "
        "support, operator, auditor: of the installation."
    ),
]
ONCE = "\nGive this link to the user alone: it can't be shown again, and works once."

commands = CommandGroup("user")


@commands.change("invite", "ana.ruiz@example.com --role operator")
def invite(
    context: CommandContext,
    email: Annotated[str, argument("EMAIL", "The e-mail by which the user will sign in.")],
    *,
    role: Roles = None,
    accounts: Annotated[
        list[int] | None,
        option(
            "The account of the user, for roles of an account; for support the accounts that it "
            "sees, repeated for several. Default for support: every account.",
            "--account",
            metavar="ID",
        ),
    ] = None,
) -> Output:
    """Invite a user of the console. The link is printed now and never again; it works once, for 72
    hours.

    Of an account: frontdesk user invite tom@example.com --role admin --account 1
    """
    new = _new_user(email, role or [], accounts or [])
    link = links.invite_user(context.tx, new, context.requester)
    item = {"email": new.email, "account_id": new.account_id, "roles": sorted(new.roles)}
    return _link(item, links.INVITATION_PATH, link)


@commands.query("list", "--account 1")
def list_(
    tx: Tx,
    account: OnlyAccount = None,
    *,
    with_ended: Annotated[bool, option("Ended users too.", "--with-ended")] = False,
) -> Output:
    """List users, with their roles and when each signed in last."""
    reach = EVERY if account is None else Reach.of(account)
    found = directory.list_users(tx, reach, with_ended=with_ended)
    items = [_item(each) for each in found]
    columns = "id account_id email name roles state last_signed_in_at"
    nothing = "There is no user. Invite one: frontdesk user invite EMAIL --role operator"
    return listing(items, columns, nothing=nothing)


@commands.query("show", "12")
def show(tx: Tx, user_id: UserId) -> Output:
    """Show a user: roles and since when, second factor, who invited the user."""
    user = directory.get_user(tx, EVERY, user_id)
    since = {str(role): at for role, at in sorted(user.roles.items())}
    more = picked(user, "time_zone has_second_factor is_demo invited_by created_at ended_at")
    more |= {"recovery_codes_left": count_recovery_codes(tx, user_id), "roles_since": since}
    return describe(_item(user) | more)


@commands.change("roles", "12 --role editor --role approver")
def roles(
    context: CommandContext,
    user_id: UserId,
    *,
    role: Roles = None,
    accounts: Annotated[
        list[int] | None,
        option(
            "For support: the accounts that it sees. Default: every account.",
            "--account",
            metavar="ID",
        ),
    ] = None,
) -> Output:
    """Give a user exactly these roles. The user's sessions end within 5 seconds."""
    changed = directory.change_roles(
        context.tx, EVERY, user_id, role or [], context.requester, named_accounts=accounts or None
    )
    return describe(_item(changed))


@commands.change("end", "12")
def end(context: CommandContext, user_id: UserId) -> Output:
    """End a user for good, with sessions and links. Lists the API clients whose secret the user has
    seen: rotate those secrets.
    """
    ended = directory.end_user(context.tx, EVERY, user_id, context.requester)
    seen = list(ended.client_ids)
    remedy = ["\nThe user has seen their secrets: frontdesk client rotate CLIENT_ID --now"]
    return describe(_item(ended.user) | {"client_ids": seen}, *(remedy if seen else []))


@commands.change("reset", "12 --second-factor")
def reset(
    context: CommandContext,
    user_id: UserId,
    *,
    second_factor: Annotated[
        bool,
        option(
            "Remove a lost second factor instead; the user sets up another at the next sign-in.",
            "--second-factor",
        ),
    ] = False,
) -> Output:
    """Print a link by which a user chooses another password; it works once, for an hour, and keeps
    the second factor. Make sure that you talk to the user.
    """
    if second_factor:
        return describe(
            _item(directory.remove_factor(context.tx, EVERY, user_id, context.requester))
        )
    link = links.make_reset_link(context.tx, EVERY, user_id, context.requester)
    user = directory.get_user(context.tx, EVERY, user_id)
    return _link({"id": user.id, "email": user.email}, links.RESET_PATH, link)


@commands.change("sessions", "12 --end")
def sessions_(
    context: CommandContext,
    user_id: UserId,
    *,
    end: Annotated[bool, option("End all of them.", "--end")] = False,
) -> Output:
    """List a user's sessions, or end them within 5 seconds."""
    user = directory.get_user(context.tx, EVERY, user_id)
    if end:
        count = sessions.end_sessions(context.tx, EVERY, user_id, context.requester)
        noun = "session" if count == 1 else "sessions"
        return Output({"id": user_id, "ended": count}, [f"{count} {noun} ended."])
    found = sessions.list_sessions(context.tx, user.id, now=system_clock())
    columns = "id created_at last_used_at ends_at"
    items = [picked(each, columns) for each in found]
    return listing(items, columns, nothing="The user has no session.")


def _new_user(email: str, roles: list[Role], accounts: list[int]) -> NewUser:
    if not roles:
        fail("Give at least one --role (see: frontdesk user invite --help).", status=MISUSED)
    if ACCOUNT_ROLES.isdisjoint(roles):
        return NewUser(email, None, frozenset(roles), frozenset(accounts) or None)
    if len(accounts) != 1:
        fail("Give the one account of the user with --account.", status=MISUSED)
    return NewUser(email, accounts[0], frozenset(roles))


def _link(item: dict[str, Any], path: str, link: UserLink) -> Output:
    url = f"{settings().console_url or settings().base_url}{path}{link.secret}"
    return describe(item | {"link": url, "expires_at": link.expires_at}, ONCE)


def _item(user: User) -> dict[str, Any]:
    item = picked(user, "id account_id email name")
    item["roles"] = sorted(user.roles)
    named = None if user.named_accounts is None else sorted(user.named_accounts)
    return item | given(named_accounts=named) | picked(user, "state last_signed_in_at")
