"""`frontdesk invitations`: in what state invitations are. Addresses are masked: whose they are, `member show` tells."""

from dataclasses import asdict
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Protocol

import typer

from frontdesk.access import get_account
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, Json, OnlyAccount, checked_id
from frontdesk.cli.output import print_json, print_table, show_list, show_one
from frontdesk.clock import system_clock, wire_time
from frontdesk.db import Tx
from frontdesk.invitations import delivery, list_invitations
from frontdesk.invitations.model import InvitationState, InvitationStep

LARGEST_LIMIT = 10_000


class Settled(StrEnum):
    """What a look-up of an ambiguous invitation can show."""

    SENT = "sent"
    FAILED = "failed"


class Decision(Protocol):
    """What an operator decides about one invitation."""

    def __call__(self, tx: Tx, invitation_id: int, /, *, now: datetime) -> None: ...


commands = typer.Typer(no_args_is_help=True, help="Invitations of new members.")


@commands.callback()
def group() -> None:
    """Invitations of new members."""


@commands.command("list")
def list_(
    account: OnlyAccount = None,
    *,
    state: Annotated[InvitationState | None, typer.Option(help="Only those in this state.")] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="At most so many, the newest first.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List invitations, newest first.

    Example: frontdesk invitations list --account 1 --state pending --limit 20
    """

    def question(tx: Tx) -> list[Any]:
        if account is not None:
            get_account(tx, account)
        return list_invitations(tx, account_id=account, state=state, limit=limit)

    items = [_item(row._asdict()) for row in ask(question)]
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
    row, events = ask(lambda tx: delivery.get_invitation(tx, invitation_id))
    item = _details(row)
    steps = [_event(event) for event in events]
    if as_json:
        print_json(item | {"timeline": steps})
        return
    show_one(item, as_json=False)
    print_table(
        ("at", "from", "to", "code", "why"),
        [
            (item["created_at"], None, "pending", None, "A new member."),
            *(
                (
                    step["at"],
                    step["from"],
                    step["to"],
                    step["code"],
                    InvitationStep(step["reason"]).description,
                )
                for step in steps
            ),
        ],
    )


@commands.command("cancel")
def cancel(invitation_id: InvitationId, as_json: Json = False) -> None:
    """Cancel an invitation that has not left yet.

    Example: frontdesk invitations cancel 1
    """
    _decide(invitation_id, "cancelled", delivery.cancel_invitation, as_json=as_json)


@commands.command("resend")
def resend(invitation_id: InvitationId, as_json: Json = False) -> None:
    """Put an invitation in line again, a day after the last mail to it at the earliest.

    Example: frontdesk invitations resend 1
    """
    _decide(invitation_id, "resent", delivery.resend_invitation, as_json=as_json)


@commands.command("settle")
def settle(
    invitation_id: InvitationId,
    outcome: Annotated[Settled, typer.Option("--as", help="What the look-up has shown.")],
    as_json: Json = False,
) -> None:
    """Settle an ambiguous invitation, one whose answer was lost, after looking it up at the relay.

    Example: frontdesk invitations settle 1 --as sent
    """

    def work(tx: Tx, id_: int, *, now: datetime) -> None:
        delivery.settle_invitation(tx, id_, InvitationState(outcome), now=now)

    _decide(invitation_id, "settled", work, as_json=as_json)


@commands.command("forecast")
def forecast(account: AccountId, as_json: Json = False) -> None:
    """Tell an account's backlog, what it sent in the last hour, and when the last one will go at the present limits.

    Example: frontdesk invitations forecast --account 1
    """
    now = system_clock()

    def question(tx: Tx) -> delivery.DeliveryForecast:
        get_account(tx, account)
        return delivery.forecast(tx, account, now=now)

    found = ask(question)
    show_one(
        asdict(found) | {"last_at": wire_time(found.last_at) if found.last_at else None}, as_json=as_json
    )


@commands.command("hold")
def hold(as_json: Json = False) -> None:
    """Deliver nothing from now on, to nobody, until `invitations release`.

    Example: frontdesk invitations hold
    """

    def work(deed: CommandContext) -> None:
        delivery.hold(deed.tx, delivery.HoldReason.BY_OPERATOR, now=deed.now)
        deed.record("invitations.held")

    change(work)
    show_one(
        {"held": True}, as_json=as_json, note="Nothing is delivered until `frontdesk invitations release`."
    )


@commands.command("release")
def release(
    *,
    keep_back: Annotated[
        bool,
        typer.Option(
            "--keep-back",
            help="What is not settled may have been sent since the backup: hold it as ambiguous.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Deliver again, after `invitations hold` or after a backup was restored (docs/operations.md).

    Example: frontdesk invitations release --keep-back
    """

    def work(deed: CommandContext) -> int:
        kept = delivery.keep_back(deed.tx, now=deed.now) if keep_back else 0
        delivery.release(deed.tx)
        deed.record("invitations.released", kept_back=kept)
        return kept

    kept = change(work)
    show_one({"held": False, "kept_back": kept}, as_json=as_json)


def _decide(invitation_id: int, done: str, decision: Decision, *, as_json: bool) -> None:
    def work(deed: CommandContext) -> dict[str, Any]:
        decision(deed.tx, invitation_id, now=deed.now)
        row, _ = delivery.get_invitation(deed.tx, invitation_id)
        deed.record(f"invitation.{done}", account_id=row["account_id"], subject_id=invitation_id)
        return row

    show_one(_details(change(work)), as_json=as_json)


def _details(row: dict[str, Any]) -> dict[str, Any]:
    counts = {name: row[name] for name in ("attempts", "losses", "reason", "relay_code", "message_id")}
    times = {
        name: wire_time(row[name]) if row[name] else None for name in ("due_at", "offered_at", "settled_at")
    }
    return _item(row) | counts | times


def _event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": wire_time(event["at"]),
        "from": event["from_state"],
        "to": event["to_state"],
        "reason": event["reason"],
        "code": event["code"],
    }


def _item(row: dict[str, Any]) -> dict[str, Any]:
    names = ("id", "account_id", "plan_id", "member_id", "kind", "delivery", "state")
    times = {name: wire_time(row[name]) for name in ("created_at", "updated_at")}
    return {name: row[name] for name in names} | {"address_masked": masked(row["address"])} | times


def masked(address: str) -> str:
    """Enough to recognise an address that one knows, too little to learn it: `r***@e***.com`."""
    local, _, domain = address.rpartition("@")
    name, dot, ending = domain.rpartition(".")
    return f"{local[:1]}***@{name[:1]}***{dot}{ending}"
