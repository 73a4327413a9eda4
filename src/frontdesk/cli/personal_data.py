"""Commands of `frontdesk member` about all that is kept of a person: erase, export, hold, release (docs/erasure.md)."""

from typing import Annotated, Any

import typer

from frontdesk.access.accounts import get_account
from frontdesk.cli.command_group import CommandContext, migrated_database, new_request
from frontdesk.cli.options import OnlyAccount, id_option, read_text
from frontdesk.cli.output import MISUSED, Output, Part, fail, field_table, heading, listing, picked, settings
from frontdesk.db import Tx
from frontdesk.privacy.erasure import (
    erase_person,
    find_persons,
    find_persons_of,
    list_holds,
    place_hold,
    release_hold,
)
from frontdesk.privacy.export import export_person
from frontdesk.privacy.model import Person

REFERENCE_LENGTH = 100

_EXTERNAL_ID: Any = typer.Argument(
    metavar="EXTERNAL_ID", help="The member's external_id; letter case and inner spaces count."
)
ExternalId = Annotated[str, _EXTERNAL_ID]
_MaybeExternalId = Annotated[str | None, _EXTERNAL_ID]
_MemberId = Annotated[int | None, id_option("--id", "The member's id, instead of its external_id.")]


def erase(
    external_id: _MaybeExternalId = None,
    *,
    member_id: _MemberId = None,
    account: OnlyAccount = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase. Without it, only say what would be.")] = False,
) -> Output:
    """Erase all values of a person: record, history, invitations, reports. Ids, times and the fact stay. It can't be undone.

    Example: frontdesk member erase "AB 123356" --account 1 --yes
    """
    with migrated_database(settings()) as db:
        persons = db.ask(lambda tx: _persons(tx, external_id, member_id, account))
        ids = ", ".join(str(person.member_id) for person in persons)
        if not yes:
            said = f"Member {ids} of account {persons[0].account_id} would be erased for good. Repeat it with --yes."
            return Output({"would_erase": [person.member_id for person in persons]}, [said])
        erased = erase_person(db, persons, new_request())
        rows = [picked(each, "member_id account_id erased_at cause is_new") for each in erased]
    is_new = any(each.is_new for each in erased)
    said = f"Member {ids} is erased." if is_new else f"Member {ids} had been erased before."
    return Output(
        rows, [said, "Backups still hold it, and PostgreSQL's files until they are cleaned: docs/erasure.md."]
    )


def export(
    external_id: _MaybeExternalId = None,
    *,
    member_id: _MemberId = None,
    account: OnlyAccount = None,
) -> Output:
    """Show everything that is kept about a person, by table. The audit trail keeps that it was shown.

    Example: frontdesk member export "AB 123356" --account 1 --json
    """
    with migrated_database(settings()) as db:
        persons = db.ask(lambda tx: _persons(tx, external_id, member_id, account))
        request = new_request()
        found = [export_person(db, person, request)._asdict() for person in persons]
    parts: list[Part] = []
    for each in found:
        parts.append(heading(f"Member {each['member_id']} of account {each['account_id']}"))
        for name, rows in each["tables"].items():
            parts.append(f"\n{name}: {len(rows) or 'nothing'}")
            parts += [field_table(row) for row in rows]
    return Output(found, parts)


def hold(
    context: CommandContext,
    external_id: _MaybeExternalId = None,
    *,
    reference: Annotated[str, typer.Option(help="What names the case, and not the person.")],
    member_id: _MemberId = None,
    account: OnlyAccount = None,
) -> Output:
    """Put a member under legal hold: nothing of it is erased or pruned until the release.

    Example: frontdesk member hold "AB 123356" --account 1 --reference "Case 2026-114"
    """
    case = read_text("reference", reference, limit=REFERENCE_LENGTH)
    held = [
        person.member_id
        for person in _persons(context.tx, external_id, member_id, account)
        if place_hold(context.tx, person, case, context.requester)
    ]
    named = ", ".join(map(str, held))
    return Output({"held": held}, [f"Member {named} is under legal hold." if held else "It is held already."])


def release(
    context: CommandContext,
    external_id: _MaybeExternalId = None,
    *,
    member_id: _MemberId = None,
    account: OnlyAccount = None,
) -> Output:
    """End a legal hold.

    Example: frontdesk member release "AB 123356" --account 1
    """
    released = [
        person.member_id
        for person in _persons(context.tx, external_id, member_id, account)
        if release_hold(context.tx, person, context.requester)
    ]
    named = ", ".join(map(str, released))
    said = f"Member {named} is no longer under legal hold." if released else "It was not under legal hold."
    return Output({"released": released}, [said])


def holds(tx: Tx, account: OnlyAccount = None) -> Output:
    """List the members under legal hold.

    Example: frontdesk member holds --account 1
    """
    rows = [each._asdict() for each in list_holds(tx, account)]
    names = "member_id account_id reference held_at actor"
    return listing(rows, names, nothing="No member is under legal hold.")


def _persons(tx: Tx, external_id: str | None, member_id: int | None, account: int | None) -> list[Person]:
    """The records that are meant: all with the external_id, or the one with the id."""
    if account is not None:
        get_account(tx, account)
    if (external_id is None) is (member_id is None):
        fail("Give either an EXTERNAL_ID or --id.", status=MISUSED)
    if member_id is not None:
        return find_persons_of(tx, member_id)
    return find_persons(tx, read_text("EXTERNAL_ID", external_id or ""), account)
