"""`frontdesk member`: a member's record and history. Only these commands show a person's data on a terminal."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import ask
from frontdesk.cli.options import Json, OnlyAccount, read_text
from frontdesk.cli.output import print_heading, print_json, print_table, say, show_one
from frontdesk.clock import wire_time
from frontdesk.db import Tx
from frontdesk.eligibility import find_eligibility, find_member, list_history
from frontdesk.eligibility.model import HistoryEntry

_INTERNAL = ("uniqueness_scope", "email_folded")  # columns that serve the database only

ExternalId = Annotated[
    str,
    typer.Argument(
        metavar="EXTERNAL_ID", help="The member's external_id; letter case and inner spaces count."
    ),
]

commands = typer.Typer(no_args_is_help=True, help="Eligible members.")


@commands.callback()
def group() -> None:
    """Eligible members."""


@commands.command("show")
def show(external_id: ExternalId, *, account: OnlyAccount = None, as_json: Json = False) -> None:
    """Show a member's record and its history.

    Example: frontdesk member show "AB 123356" --account 1
    """

    def question(tx: Tx) -> dict[str, Any]:
        member = find_member(tx, read_text("EXTERNAL_ID", external_id), account)
        return _record(member) | {"history": [_change(entry) for entry in list_history(tx, member["id"])]}

    member = ask(question, account=account)
    if as_json:
        print_json(member)
        return
    history = member.pop("history")
    print_heading("Record")
    show_one(member, as_json=False)
    print_heading("\nHistory")
    for change in history:
        say("\n{changed_at}  {outcome} under plan {plan_id}".format_map(change))
        say("client {client}, request {request_id}".format_map(change))
        print_table(("field", "from", "to"), [[name, *values] for name, values in change["changes"].items()])


@commands.command("eligible")
def eligible(
    external_id: ExternalId,
    *,
    on: Annotated[
        datetime, typer.Option(metavar="DATE", formats=["%Y-%m-%d"], help="The day of the answer.")
    ],
    as_known_on: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="What was known at this time: a date or a time (UTC, 2026-03-15T12:00:00Z), to its end. Default: now.",
        ),
    ] = None,
    account: OnlyAccount = None,
    as_json: Json = False,
) -> None:
    """Say whether a member was eligible on a day, from the history: as known now, or as known at a time.

    Example: frontdesk member eligible "AB 123356" --on 2026-03-01 --as-known-on 2026-03-15
    """
    known_at = None if as_known_on is None else _moment(as_known_on)
    name, day = read_text("EXTERNAL_ID", external_id), on.date().isoformat()
    found = ask(
        lambda tx: find_eligibility(tx, name, account_id=account, on=day, known_at=known_at), account=account
    )
    answer = asdict(found)
    since = answer["known_since"]
    show_one(answer | {"known_since": None if since is None else wire_time(since)}, as_json=as_json)


def _moment(text: str) -> datetime:
    """The last moment of the day or of the second: `member show` gives whole seconds, and a change in one was known then."""
    for form, length in (("%Y-%m-%d", timedelta(days=1)), ("%Y-%m-%dT%H:%M:%SZ", timedelta(seconds=1))):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC) + length - timedelta(microseconds=1)
        except (ValueError, OverflowError):
            continue
    raise typer.BadParameter(
        "must be a date or a time in UTC, such as 2026-03-15 or 2026-03-15T12:00:00Z",
        param_hint="'--as-known-on'",
    )


def _record(member: dict[str, Any]) -> dict[str, Any]:
    times = {name: wire_time(member[name]) for name in ("created_at", "updated_at")}
    return {name: value for name, value in member.items() if name not in _INTERNAL} | times


def _change(entry: HistoryEntry) -> dict[str, Any]:
    names = ("outcome", "plan_id", "changes", "client", "request_id")
    return {name: getattr(entry, name) for name in names} | {"changed_at": wire_time(entry.changed_at)}
