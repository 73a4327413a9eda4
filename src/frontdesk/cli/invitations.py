"""`frontdesk invitations`: states, timelines, and an operator's decisions. Addresses are masked; `member show` has them."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import AccountId, OnlyAccount, id_argument, limit_option
from frontdesk.cli.output import Output, describe, field_table, listing, picked, table
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.invitations import delivery, list_invitations, protocol
from frontdesk.invitations.model import HoldReason, Invitation, InvitationState

InvitationId = Annotated[int, id_argument("ID", "Id of the invitation (see `invitations list`).")]

commands = CommandGroup()


@commands.query("list")
def list_(
    tx: Tx,
    account: OnlyAccount = None,
    state: Annotated[InvitationState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[int, limit_option(10_000, "Most invitations to list, the newest first.")] = 100,
) -> Output:
    """List invitations, newest first.

    Example: frontdesk invitations list --account 1 --state pending --limit 20
    """
    found = list_invitations(tx, account_id=account, state=state, limit=limit)
    columns = "id account_id plan_id member_id delivery state address_masked created_at"
    return listing([_item(each) for each in found], columns, nothing="There is no such invitation.")


@commands.query("show")
def show(tx: Tx, invitation_id: InvitationId) -> Output:
    """Show one invitation and its timeline: every step, and why.

    Example: frontdesk invitations show 1
    """
    invitation, events = delivery.get_invitation(tx, invitation_id)
    item = _details(invitation)
    names = ("at", "from", "to", "reason", "code")
    timeline = [dict(zip(names, event, strict=True)) for event in events]
    created = (invitation.created_at, None, InvitationState.PENDING, None, "A new member.")
    steps = [(at, before, after, code, reason.description) for at, before, after, reason, code in events]
    history = table(("at", "from", "to", "code", "why"), [created, *steps])
    return Output(item | {"timeline": timeline}, [field_table(item), history])


@commands.change("cancel")
def cancel(context: CommandContext, invitation_id: InvitationId) -> Output:
    """Cancel an invitation that has not left yet.

    Example: frontdesk invitations cancel 1
    """
    delivery.cancel_invitation(context.tx, invitation_id, now=context.now)
    return _recorded(context, "invitation.cancelled", invitation_id)


@commands.change("resend")
def resend(context: CommandContext, invitation_id: InvitationId) -> Output:
    """Enqueue an invitation again, a day after the last mail to its address at the earliest.

    Example: frontdesk invitations resend 1
    """
    delivery.resend_invitation(context.tx, invitation_id, now=context.now)
    return _recorded(context, "invitation.resent", invitation_id)


@commands.change("settle")
def settle(
    context: CommandContext,
    invitation_id: InvitationId,
    outcome: Annotated[Literal["sent", "failed"], typer.Option("--as", help="What the look-up has shown.")],
) -> Output:
    """Settle an ambiguous invitation after looking it up at the relay.

    Example: frontdesk invitations settle 1 --as sent
    """
    delivery.settle_invitation(context.tx, invitation_id, state=InvitationState(outcome), now=context.now)
    return _recorded(context, "invitation.settled", invitation_id)


@commands.query("forecast")
def forecast(tx: Tx, account: AccountId) -> Output:
    """Show an account's backlog, what it sent in the last hour, and when the last one will leave at the present limits.

    Example: frontdesk invitations forecast --account 1
    """
    return describe(asdict(delivery.forecast(tx, account, now=system_clock())))


@commands.change("hold")
def hold(context: CommandContext) -> Output:
    """Hold all delivery from now on, until `invitations release`.

    Example: frontdesk invitations hold
    """
    protocol.hold(context.tx, HoldReason.BY_OPERATOR, now=context.now)
    context.record("invitations.held")
    return describe({"held": True}, "Nothing is delivered until `frontdesk invitations release`.")


@commands.change("release")
def release(
    context: CommandContext,
    *,
    keep_back: Annotated[
        bool,
        typer.Option(
            "--keep-back",
            help="Mark unsettled invitations as ambiguous: they may have been sent since the backup.",
        ),
    ] = False,
) -> Output:
    """Deliver again, after `invitations hold` or after a backup was restored (docs/operations.md).

    Example: frontdesk invitations release --keep-back
    """
    kept = delivery.keep_back(context.tx, now=context.now) if keep_back else 0
    protocol.release(context.tx)
    context.record("invitations.released", kept_back=kept)
    return describe({"held": False, "kept_back": kept})


def _recorded(context: CommandContext, action: str, invitation_id: int) -> Output:
    """What the invitation is now, after an action that gets its audit entry here."""
    invitation, _ = delivery.get_invitation(context.tx, invitation_id)
    context.record(action, account_id=invitation.account_id, subject_id=invitation_id)
    return describe(_details(invitation))


def _details(invitation: Invitation) -> dict[str, Any]:
    names = "attempts losses reason relay_code message_id due_at offered_at settled_at"
    return _item(invitation) | picked(invitation, names)


def _item(invitation: Invitation) -> dict[str, Any]:
    return {
        **picked(invitation, "id account_id plan_id member_id kind delivery state"),
        "address_masked": masked(invitation.address),
        **picked(invitation, "created_at updated_at"),
    }


def masked(address: str) -> str:
    """`r***@e***.com`: enough to recognise a known address, too little to learn it."""
    local, _, domain = address.rpartition("@")
    name, dot, ending = domain.rpartition(".")
    return f"{local[:1]}***@{name[:1]}***{dot}{ending}"
