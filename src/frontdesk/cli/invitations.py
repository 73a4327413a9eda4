"""`frontdesk invitations`: states, timelines, and an operator's decisions. Addresses are masked; `member show` has them."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, Json, OnlyAccount, checked_id
from frontdesk.cli.output import print_json, print_table, show_list, show_one
from frontdesk.clock import system_clock, wire_time
from frontdesk.invitations import delivery, list_invitations
from frontdesk.invitations.delivery.model import HoldReason, InvitationEvent
from frontdesk.invitations.model import Invitation, InvitationState

LARGEST_LIMIT = 10_000


class SettledState(StrEnum):
    """What a look-up of an ambiguous invitation can show."""

    SENT = "sent"
    FAILED = "failed"


commands = typer.Typer(no_args_is_help=True, help="Invitations of new members.")


@commands.command("list")
def list_(
    account: OnlyAccount = None,
    *,
    state: Annotated[InvitationState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="Most invitations to list, the newest first.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List invitations, newest first.

    Example: frontdesk invitations list --account 1 --state pending --limit 20
    """
    found = ask(
        lambda tx: list_invitations(tx, account_id=account, state=state, limit=limit), account=account
    )
    items = [_item(invitation) for invitation in found]
    columns = (
        "id",
        "account_id",
        "plan_id",
        "member_id",
        "delivery",
        "state",
        "address_masked",
        "created_at",
    )
    show_list(items, columns=columns, as_json=as_json, nothing="There is no such invitation.")


InvitationId = Annotated[
    int,
    typer.Argument(metavar="ID", callback=checked_id, help="Id of the invitation (see `invitations list`)."),
]


@commands.command("show")
def show(invitation_id: InvitationId, as_json: Json = False) -> None:
    """Show one invitation and its timeline: every step, and why.

    Example: frontdesk invitations show 1
    """
    invitation, events = ask(lambda tx: delivery.get_invitation(tx, invitation_id))
    item = _details(invitation)
    timeline = [_event(event) for event in events]
    if as_json:
        print_json(item | {"timeline": timeline})
        return
    show_one(item, as_json=False)
    created = (item["created_at"], None, InvitationState.PENDING, None, "A new member.")
    steps = [
        (step["at"], step["from"], step["to"], step["code"], step["reason"].description) for step in timeline
    ]
    print_table(("at", "from", "to", "code", "why"), [created, *steps])


@commands.command("cancel")
def cancel(invitation_id: InvitationId, as_json: Json = False) -> None:
    """Cancel an invitation that has not left yet.

    Example: frontdesk invitations cancel 1
    """
    _apply(delivery.cancel_invitation, invitation_id, done="cancelled", as_json=as_json)


@commands.command("resend")
def resend(invitation_id: InvitationId, as_json: Json = False) -> None:
    """Enqueue an invitation again, a day after the last mail to its address at the earliest.

    Example: frontdesk invitations resend 1
    """
    _apply(delivery.resend_invitation, invitation_id, done="resent", as_json=as_json)


@commands.command("settle")
def settle(
    invitation_id: InvitationId,
    outcome: Annotated[SettledState, typer.Option("--as", help="What the look-up has shown.")],
    as_json: Json = False,
) -> None:
    """Settle an ambiguous invitation after looking it up at the relay.

    Example: frontdesk invitations settle 1 --as sent
    """
    settle_as = partial(delivery.settle_invitation, state=InvitationState(outcome))
    _apply(settle_as, invitation_id, done="settled", as_json=as_json)


@commands.command("forecast")
def forecast(account: AccountId, as_json: Json = False) -> None:
    """Show an account's backlog, what it sent in the last hour, and when the last one will leave at the present limits.

    Example: frontdesk invitations forecast --account 1
    """
    now = system_clock()
    found = ask(lambda tx: delivery.forecast(tx, account, now=now), account=account)
    last_at = wire_time(found.last_at) if found.last_at else None
    show_one(asdict(found) | {"last_at": last_at}, as_json=as_json)


@commands.command("hold")
def hold(as_json: Json = False) -> None:
    """Hold all delivery from now on, until `invitations release`.

    Example: frontdesk invitations hold
    """

    def work(context: CommandContext) -> None:
        delivery.hold(context.tx, HoldReason.BY_OPERATOR, now=context.now)
        context.record("invitations.held")

    change(work)
    note = "Nothing is delivered until `frontdesk invitations release`."
    show_one({"held": True}, as_json=as_json, note=note)


@commands.command("release")
def release(
    *,
    keep_back: Annotated[
        bool,
        typer.Option(
            "--keep-back",
            help="Mark unsettled invitations as ambiguous: they may have been sent since the backup.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Deliver again, after `invitations hold` or after a backup was restored (docs/operations.md).

    Example: frontdesk invitations release --keep-back
    """

    def work(context: CommandContext) -> int:
        kept = delivery.keep_back(context.tx, now=context.now) if keep_back else 0
        delivery.release(context.tx)
        context.record("invitations.released", kept_back=kept)
        return kept

    kept = change(work)
    show_one({"held": False, "kept_back": kept}, as_json=as_json)


def _apply(operation: Callable[..., None], invitation_id: int, *, done: str, as_json: bool) -> None:
    """Run the operation on the invitation, with its audit entry, and show what it is then."""

    def work(context: CommandContext) -> Invitation:
        operation(context.tx, invitation_id, now=context.now)
        invitation, _ = delivery.get_invitation(context.tx, invitation_id)
        context.record(f"invitation.{done}", account_id=invitation.account_id, subject_id=invitation_id)
        return invitation

    show_one(_details(change(work)), as_json=as_json)


def _details(invitation: Invitation) -> dict[str, Any]:
    counts = ("attempts", "losses", "reason", "relay_code", "message_id")
    times = {name: getattr(invitation, name) for name in ("due_at", "offered_at", "settled_at")}
    return (
        _item(invitation)
        | {name: getattr(invitation, name) for name in counts}
        | {name: wire_time(at) if at else None for name, at in times.items()}
    )


def _event(event: InvitationEvent) -> dict[str, Any]:
    return {
        "at": wire_time(event.at),
        "from": event.from_state,
        "to": event.to_state,
        "reason": event.reason,
        "code": event.code,
    }


def _item(invitation: Invitation) -> dict[str, Any]:
    names = ("id", "account_id", "plan_id", "member_id", "kind", "delivery", "state")
    times = {name: wire_time(getattr(invitation, name)) for name in ("created_at", "updated_at")}
    address = {"address_masked": masked(invitation.address)}
    return {name: getattr(invitation, name) for name in names} | address | times


def masked(address: str) -> str:
    """`r***@e***.com`: enough to recognise a known address, too little to learn it."""
    local, _, domain = address.rpartition("@")
    name, dot, ending = domain.rpartition(".")
    return f"{local[:1]}***@{name[:1]}***{dot}{ending}"
