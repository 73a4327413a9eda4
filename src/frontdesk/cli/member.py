"""`frontdesk member`: a member's record and history; erasure, export and legal hold. Only these commands show a person's data
on a terminal."""

from datetime import datetime
from typing import Annotated

import typer

from frontdesk.cli import member_people, personal_data
from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import OnlyAccount, end_of, read_text
from frontdesk.cli.output import Output, Part, describe, field_table, heading, picked, table
from frontdesk.cli.personal_data import ExternalId
from frontdesk.clock import wire_time
from frontdesk.db import Tx
from frontdesk.eligibility import find_eligibility, find_member, list_history

_INTERNAL = ("uniqueness_scope", "email_folded", "merged_into")  # columns that serve the database only


commands = CommandGroup()
commands.standalone("erase")(personal_data.erase)
commands.standalone("export")(personal_data.export)
commands.change("hold")(personal_data.hold)
commands.change("release")(personal_data.release)
commands.query("holds")(personal_data.holds)
commands.standalone("duplicates")(member_people.duplicates)
commands.change("merge")(member_people.merge)
commands.change("distinct")(member_people.distinct)
commands.standalone("rename")(member_people.rename)


@commands.change("show")
def show(context: CommandContext, external_id: ExternalId, account: OnlyAccount = None) -> Output:
    """Show a member's record and its history. The audit trail keeps who read it.

    Example: frontdesk member show "AB 123356" --account 1
    """
    tx = context.tx
    member = find_member(tx, read_text("EXTERNAL_ID", external_id), account)
    context.record("member.read", account_id=member["account_id"], subject_id=member["id"])
    record = {name: value for name, value in member.items() if name not in _INTERNAL}
    history = list_history(tx, member["id"], merged=True)
    parts: list[Part] = [heading("Record"), field_table(record), heading("\nHistory")]
    for entry in history:
        parts += [
            f"\n{wire_time(entry.changed_at)}  {entry.outcome} under plan {entry.plan_id}",
            f"member {entry.member_id}, client {entry.client}, request {entry.request_id}{_from_file(entry.file_id)}",
            table(("field", "from", "to"), [[name, *values] for name, values in entry.changes.items()]),
        ]
    names = "member_id outcome plan_id changes client request_id file_id changed_at"
    return Output(record | {"history": [picked(entry, names) for entry in history]}, parts)


@commands.query("eligible")
def eligible(
    tx: Tx,
    external_id: ExternalId,
    *,
    on: Annotated[
        datetime, typer.Option(metavar="DATE", formats=["%Y-%m-%d"], help="The day of the answer.")
    ],
    as_known_on: Annotated[
        datetime | None,
        typer.Option(
            metavar="TIME",
            parser=end_of,
            help="What was known at this time: a date or a time (UTC, 2026-03-15T12:00:00Z), to its end. Default: now.",
        ),
    ] = None,
    account: OnlyAccount = None,
) -> Output:
    """Say whether a member was eligible on a day, from the history: as known now, or as known at a time.

    Example: frontdesk member eligible "AB 123356" --on 2026-03-01 --as-known-on 2026-03-15
    """
    name, day = read_text("EXTERNAL_ID", external_id), on.date().isoformat()
    return describe(find_eligibility(tx, name, account_id=account, on=day, known_at=as_known_on)._asdict())


def _from_file(file_id: int | None) -> str:
    return "" if file_id is None else f", file {file_id}"
