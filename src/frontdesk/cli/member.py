"""`frontdesk member`: a member's record and history; members that may be one person; erasure,
export and legal hold (docs/erasure.md). Only these commands show a person's data on a terminal.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from itertools import compress
from typing import Annotated, Any

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup, migrated_database, new_request
from frontdesk.cli.invitations import describe_mail, parts_of
from frontdesk.cli.layout import Part, field_table, heading, picked, progress, table
from frontdesk.cli.options import (
    LARGEST_ID,
    WHO_NAMES,
    OnlyAccount,
    argument,
    end_of,
    option,
    reach_of,
    read_text,
)
from frontdesk.cli.output import (
    FAILED,
    MISUSED,
    Output,
    describe,
    fail,
    listing,
    opened_file,
    settings,
)
from frontdesk.clock import account_day, system_clock
from frontdesk.db import Tx
from frontdesk.db.engine import write_together
from frontdesk.eligibility import enrol, list_history, people, read_external_id
from frontdesk.eligibility.dry_run import dry_run as dry_runs
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.eligibility.people import RENAMED, UNCHANGED, find_eligibility, find_member
from frontdesk.errors import FrontdeskError
from frontdesk.files.actions import get_file
from frontdesk.files.model import FileKey
from frontdesk.privacy import erasure, find_holds, report_rows_of
from frontdesk.privacy.erasure import export_person
from frontdesk.privacy.model import Person
from frontdesk.reach import EVERY, Reach

# columns that serve the database only
_INTERNAL = ("uniqueness_scope", "email_folded", "merged_into")
REFERENCE_LENGTH = 100

ExternalId = Annotated[
    str, argument("EXTERNAL_ID", "The member's external_id; letter case and inner spaces count.")
]
Who = Annotated[str, argument("WHO", f"The member: {WHO_NAMES}.")]
AfterPair = Annotated[
    tuple[int, int], option("Go on after this pair of ids.", metavar="ID OTHER_ID")
]
ById = Annotated[bool, option("The argument is the member's id, and not its external_id.", "--id")]
RENAMED_TOGETHER = 500
LONGEST_CSV = 64 * 2**20  # bytes
_PAIR = "account_id id external_id plan_id other_id other_external_id other_plan_id"
Other = Annotated[str, argument("OTHER", "The external_id of the other member.")]

commands = CommandGroup("member")


@commands.change("show", "robin@example.com --account 1")
def show(context: CommandContext, who: Who, account: OnlyAccount = None) -> Output:
    """Show a member: why no mail came, the record, its invitation, files and history. The audit
    trail records the reading.
    """
    tx = context.tx
    member = find_member(tx, reach_of(account), read_text("WHO", who))
    context.record("member.read", account_id=member["account_id"], subject_id=member["id"])
    record = {name: value for name, value in member.items() if name not in _INTERNAL}
    names = "changed_at outcome plan_id changes member_id client request_id file_id"
    persons = erasure.find_persons_of(tx, Reach.of(member["account_id"]), member["id"])
    ids = [person.member_id for person in persons]
    history = [picked(entry, names) for entry in list_history(tx, *ids)]
    mail = describe_mail(tx, member, ids)
    files = _files(tx, persons)
    sections: dict[str, list[Part]] = {
        "Record": [field_table(record | {"suppression": mail["suppression"]})],
        "Invitation": [part for each in mail["invitations"] for part in parts_of(each)],
        "Files": [table(files, "file_id file_name state created_at place outcome faults")],
        "History": [table(history, "changed_at outcome changes plan_id member_id client file_id")],
    }
    parts = [part for title, content in sections.items() for part in ("", heading(title), *content)]
    value = record | mail | {"files": files, "history": history}
    return Output(value, [heading(mail["mail"]["why"]), *parts])


def _files(tx: Tx, persons: Sequence[Person]) -> list[dict[str, Any]]:
    """The rows of files about the member that changed something or were refused."""
    rows = [row for person in persons for row in report_rows_of(tx, person)]
    return [
        {name: row[name] for name in ("file_id", "place", "outcome", "faults")}
        | picked(get_file(tx, FileKey(row["file_id"], EVERY)), "file_name state created_at")
        for row in sorted(rows, key=lambda row: row["file_id"])
    ]


@commands.query("eligible", '"AB 123356" --on 2026-03-01 --as-known-on 2026-03-15')
def eligible(
    tx: Tx,
    external_id: ExternalId,
    *,
    on: Annotated[datetime, option("The day of the answer.", metavar="DATE", formats=["%Y-%m-%d"])],
    as_known_on: Annotated[
        datetime | None,
        option(
            (
                "Ignore changes recorded after this: a date or a time (UTC, "
                "2026-03-15T12:00:00Z), to its end. Default: now."
            ),
            metavar="TIME",
            parser=end_of,
        ),
    ] = None,
    account: OnlyAccount = None,
) -> Output:
    """Show from the history whether a member was eligible on a day: as known now, or as known at a
    time.
    """
    name = read_text("EXTERNAL_ID", external_id)
    day = on.date().isoformat()
    reach = reach_of(account)
    return describe(find_eligibility(tx, reach, name, on=day, known_at=as_known_on)._asdict())


@commands.standalone("duplicates", "--account 1 --limit 20")
def duplicates(
    account: OnlyAccount = None,
    *,
    limit: Annotated[int, option("How many pairs at most.", min=1, max=1000)] = 100,
    after: AfterPair = (0, 0),
) -> Output:
    """List pairs of open members that may be one person: the same names and birth date, or the same
    family and birth date.
    """
    with migrated_database(settings()) as db, progress() as bar:
        track = partial(bar.track, description="searching")
        today = account_day(system_clock(), None).earliest
        pairs = people.find_duplicates(
            db, reach_of(account), after=after, limit=limit, today=today, track=track
        )
    more = [f"More: --after {pairs[-1].id} {pairs[-1].other_id}"] if len(pairs) == limit else []
    rows = [pair._asdict() for pair in pairs]
    return listing(rows, _PAIR, *more, nothing="No two open members look alike.")


@commands.change("merge", '"AB 123356" "AB 900001" --account 1')
def merge(
    context: CommandContext,
    keep: ExternalId,
    drop: Other,
    *,
    account: OnlyAccount = None,
    undo: Annotated[bool, option("Undo the merge.", "--undo")] = False,
) -> Output:
    """Merge two members: the first stays as it is, and the external_id of the OTHER leads to it
    from now on.
    """
    tx = context.tx
    requester = context.requester
    survivor, dropped = _pair(tx, keep, drop, account)
    keep_id = survivor["id"]
    drop_id = dropped["id"]
    erasure.require_not_held(tx, [keep_id, drop_id])
    if undo:
        people.unmerge(tx, survivor, dropped, requester, uniqueness=settings().uniqueness)
        sentence = f"Members {keep_id} and {drop_id} are two again."
    else:
        people.merge(tx, survivor, dropped, requester)
        sentence = f"Member {drop_id} leads to member {keep_id}. Take it back with --undo."
    return Output({"kept": keep_id, "merged": None if undo else drop_id}, [sentence])


@commands.change("distinct", '"AB 123356" "AB 900001" --account 1')
def distinct(
    context: CommandContext, external_id: ExternalId, other: Other, account: OnlyAccount = None
) -> Output:
    """Mark two similar members as two people: `member duplicates` leaves them out."""
    first, second = _pair(context.tx, external_id, other, account)
    people.call_distinct(context.tx, first, second, context.requester)
    ids = sorted((first["id"], second["id"]))
    return Output({"distinct": ids}, [f"Members {ids[0]} and {ids[1]} are two people."])


@commands.standalone("rename", "--csv numbers.csv --account 1 --dry-run")
def rename(
    old: Annotated[str | None, typer.Argument(help="The external_id that a member has.")] = None,
    new: Annotated[str | None, typer.Argument(help="The external_id that it gets.")] = None,
    *,
    account: OnlyAccount = None,
    csv_file: Annotated[
        str | None,
        option("A CSV file with the columns old,new; - is stdin.", "--csv", metavar="FILE"),
    ] = None,
    dry_run: Annotated[bool, option("Change nothing; report the outcomes.", "--dry-run")] = False,
) -> Output:
    """Give a member, or the thousands of a CSV file, another external_id: a sender has renumbered
    its members.
    """
    if (csv_file is None) is (old is None or new is None):
        fail("Give either OLD and NEW, or --csv.", status=MISUSED)
    one = (old or "", new or "")
    pairs = (
        _read_pairs(csv_file)
        if csv_file
        else [(read_text("OLD", one[0]), read_text("NEW", one[1]))]
    )
    outcomes = _rename(pairs, account, is_dry=dry_run)
    rows = [{"row": number, "outcome": outcome} for number, outcome in enumerate(outcomes, 1)]
    failed = [row for row in rows if row["outcome"] not in (RENAMED, UNCHANGED)]
    would = "would be renamed" if dry_run else "renamed"
    sentence = f"{outcomes.count(RENAMED)} of {len(rows)} {would}."
    parts = [table(failed, "row outcome")] if failed else []
    return Output(rows, [*parts, sentence], status=FAILED if failed else 0)


def _rename(pairs: Sequence[tuple[str, str]], account: int | None, *, is_dry: bool) -> list[str]:
    config = settings()
    requester = new_request()
    outcomes = list[str]()
    rehearsal = dry_runs(config.uniqueness) if is_dry else nullcontext()
    with migrated_database(config) as db, progress() as bar, rehearsal as dry:

        def decide(
            tx: Tx, submissions: Sequence[Submission]
        ) -> Iterable[Enrolled | FrontdeskError]:
            if dry is None:
                return enrol(tx, submissions, now=requester.now, uniqueness=config.uniqueness)
            dry.begin_chunk()
            return dry.enrol(tx, submissions, now=requester.now)

        reach = reach_of(account)
        work = partial(people.rename, reach=reach, requester=requester, decide=decide)
        for start in bar.track(range(0, len(pairs), RENAMED_TOGETHER), description="renaming"):
            for outcome in write_together(db, pairs[start : start + RENAMED_TOGETHER], work):
                if isinstance(outcome, Exception):
                    raise outcome
                outcomes.append(outcome)
            if dry is not None:
                dry.keep_chunk()
    return outcomes


def _read_pairs(path: str) -> list[tuple[str, str]]:
    """The pairs of a CSV file, in their stored form."""
    with opened_file(path, "rb", "The file can't be read: {}.") as stream:
        content = stream.read(LONGEST_CSV + 1)
    if len(content) > LONGEST_CSV:
        fail(f"The file has more than {LONGEST_CSV // 2**20} MiB. Split it.")
    pairs = []
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig")), strict=True)
        if [name.strip().lower() for name in next(lines, [])] != ["old", "new"]:
            fail("The first line must be: old,new")
        for number, line in enumerate(lines, 1):
            read = [read_external_id(cell) for cell in line]
            if len(read) != 2 or read[0] is None or read[1] is None:
                fail(f"Row {number} does not have two external_ids of at most 255 characters.")
            pairs.append((read[0], read[1]))
    except (UnicodeDecodeError, csv.Error):
        fail("The file is not CSV in UTF-8.")
    return pairs


def _pair(
    tx: Tx, first: str, second: str, account: int | None
) -> tuple[people.Values, people.Values]:
    return people.lock_pair(
        tx, reach_of(account), read_text("EXTERNAL_ID", first), read_text("OTHER", second)
    )


@commands.standalone("erase", '"AB 123356" --account 1 --yes')
def erase(
    external_id: ExternalId,
    *,
    by_id: ById = False,
    account: OnlyAccount = None,
    yes: Annotated[bool, option("Erase. Without it, only list the records.", "--yes")] = False,
) -> Output:
    """Erase all values of a person: record, history, invitations, reports. Ids and times stay. It
    can't be undone.
    """
    with migrated_database(settings()) as db:
        persons = db.ask(lambda tx: _persons(tx, external_id, account, by_id=by_id))
        ids = [person.member_id for person in persons]
        named = ", ".join(map(str, ids))
        if not yes:
            sentence = (
                f"Member {named} of account {persons[0].account_id} would be erased for good. "
                "Repeat it with --yes."
            )
            return Output({"would_erase": ids}, [sentence])
        erased = erasure.erase_person(db, persons, new_request())
        rows = [picked(each, "member_id account_id erased_at cause is_new") for each in erased]
    is_new = any(each.is_new for each in erased)
    sentence = f"Member {named} is erased." if is_new else f"Member {named} had been erased before."
    left = "Backups still hold it, and PostgreSQL's files until they are cleaned: docs/erasure.md."
    return Output(rows, [sentence, left])


@commands.standalone("export", '"AB 123356" --account 1 --json')
def export(external_id: ExternalId, *, by_id: ById = False, account: OnlyAccount = None) -> Output:
    """Show all stored data of a person, by table. The export is recorded in the audit trail."""
    with migrated_database(settings()) as db:
        persons = db.ask(lambda tx: _persons(tx, external_id, account, by_id=by_id))
        request = new_request()
        found = [export_person(db, person, request) for person in persons]
    parts: list[Part] = []
    for each in found:
        parts.append(heading(f"Member {each['member_id']} of account {each['account_id']}"))
        for name, rows in each["tables"].items():
            parts.append(f"\n{name}: {len(rows) or 'nothing'}")
            parts += [field_table(row) for row in rows]
    return Output(found, parts)


@commands.change("hold", '"AB 123356" --account 1 --reference "Case 2026-114"')
def hold(
    context: CommandContext,
    external_id: ExternalId,
    *,
    reference: Annotated[str, option("The name of the case, not of the person.")],
    by_id: ById = False,
    account: OnlyAccount = None,
) -> Output:
    """Put a member under legal hold: its data is not erased or pruned until the release."""
    case = read_text("reference", reference, limit=REFERENCE_LENGTH)
    persons = _persons(context.tx, external_id, account, by_id=by_id)
    is_new = [erasure.place_hold(context.tx, each, case, context.requester) for each in persons]
    held, named = _changed(persons, is_new)
    return Output(
        {"held": held}, [f"Member {named} is under legal hold." if held else "It is held already."]
    )


@commands.change("release", '"AB 123356" --account 1')
def release(
    context: CommandContext,
    external_id: ExternalId,
    *,
    by_id: ById = False,
    account: OnlyAccount = None,
) -> Output:
    """End a legal hold."""
    persons = _persons(context.tx, external_id, account, by_id=by_id)
    was_held = [erasure.release_hold(context.tx, each, context.requester) for each in persons]
    released, named = _changed(persons, was_held)
    sentence = (
        f"Member {named} is no longer under legal hold."
        if released
        else "It was not under legal hold."
    )
    return Output({"released": released}, [sentence])


def _changed(persons: Sequence[Person], has_changed: Sequence[bool]) -> tuple[list[int], str]:
    """The ids of those that have changed, for programs and for people."""
    ids = [person.member_id for person in compress(persons, has_changed)]
    return ids, ", ".join(map(str, ids))


@commands.query("holds", "--account 1")
def holds(tx: Tx, account: OnlyAccount = None) -> Output:
    """List the members under legal hold."""
    rows = [each._asdict() for each in find_holds(tx, reach_of(account))]
    names = "member_id account_id reference held_at actor"
    return listing(rows, names, nothing="No member is under legal hold.")


def _persons(tx: Tx, named: str, account: int | None, *, by_id: bool) -> list[Person]:
    """All records with the external_id, or the record with the id."""
    if not by_id:
        return erasure.find_persons(tx, reach_of(account), read_text("EXTERNAL_ID", named))
    if not (named.isascii() and named.isdigit() and int(named) <= LARGEST_ID):
        fail(f"After --id, give a whole number from 1 to {LARGEST_ID}.", status=MISUSED)
    return erasure.find_persons_of(tx, reach_of(account), int(named))
