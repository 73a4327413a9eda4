"""Commands of `frontdesk member` about members that may be one person: duplicates, merge, distinct, rename."""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import typer
from rich.progress import Progress

from frontdesk.access.accounts import get_account
from frontdesk.cli.command_group import CommandContext, ask, migrated_database, new_request
from frontdesk.cli.options import OnlyAccount, limit_option, read_text
from frontdesk.cli.output import FAILED, MISUSED, Output, console, fail, listing, opened_file, settings
from frontdesk.cli.personal_data import ExternalId
from frontdesk.clock import system_clock
from frontdesk.db import Tx
from frontdesk.db.races import write_together
from frontdesk.eligibility import dry_run as dry_runs
from frontdesk.eligibility import enrol, people, read_external_id
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.eligibility.people import RenameOutcome
from frontdesk.eligibility.probes import ProbeLimit
from frontdesk.errors import FrontdeskError
from frontdesk.privacy.erasure import require_not_held

RENAMED_TOGETHER = 500
LONGEST_CSV = 64 * 2**20  # bytes
_PAIR = "account_id id external_id plan_id other_id other_external_id other_plan_id"
Other = Annotated[str, typer.Argument(metavar="OTHER", help="The external_id of the other member.")]


def duplicates(
    account: OnlyAccount = None,
    *,
    limit: Annotated[int, limit_option(1000, "How many pairs at most.")] = 100,
    after: Annotated[str, typer.Option(metavar="ID-OTHER_ID", help="Go on after this pair of ids.")] = "0-0",
) -> Output:
    """List pairs of open members that may be one person: the same names and birth date, or the same family and birth date.

    Example: frontdesk member duplicates --account 1 --limit 20
    """
    try:
        first, second = map(int, after.split("-"))
    except ValueError:
        fail("--after takes the two ids of a pair, such as 120-340.", status=MISUSED)
    if account is not None:
        ask(partial(get_account, account_id=account))
    with migrated_database(settings()) as db, _progress() as bar:
        task = bar.add_task("searching", total=100)
        show = partial(bar.update, task)
        today = system_clock().date().isoformat()
        pairs = people.find_duplicates(
            db,
            account,
            after=(first, second),
            limit=limit,
            today=today,
            go_on=lambda done: show(completed=done),
        )
    output = listing([pair._asdict() for pair in pairs], _PAIR, nothing="No two open members look alike.")
    more = [f"More: --after {pairs[-1].id}-{pairs[-1].other_id}"] if len(pairs) == limit else []
    return Output(output.value, [*output.parts, *more])


def merge(
    context: CommandContext,
    keep: ExternalId,
    drop: Other,
    *,
    account: OnlyAccount = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take the merge back.")] = False,
) -> Output:
    """Make two members one: the first stays as it is, and the external_id of the OTHER leads to it from now on.

    Example: frontdesk member merge "AB 123356" "AB 900001" --account 1
    """
    tx, requester = context.tx, context.requester
    keep_id, drop_id = _pair(tx, keep, drop, account)
    require_not_held(tx, [keep_id, drop_id])
    if undo:
        config = settings()
        limit = ProbeLimit(config.taken_per_day, config.uniqueness)
        people.unmerge(tx, keep_id, drop_id, requester, uniqueness=config.uniqueness, probe_limit=limit)
        said = f"Members {keep_id} and {drop_id} are two again."
    else:
        people.merge(tx, keep_id, drop_id, requester)
        said = f"Member {drop_id} leads to member {keep_id}. Take it back with --undo."
    return Output({"kept": keep_id, "merged": None if undo else drop_id}, [said])


def distinct(
    context: CommandContext, external_id: ExternalId, other: Other, account: OnlyAccount = None
) -> Output:
    """Say that two members who look alike are two people: `member duplicates` leaves them out.

    Example: frontdesk member distinct "AB 123356" "AB 900001" --account 1
    """
    first, second = _pair(context.tx, external_id, other, account)
    is_new = people.call_distinct(context.tx, first, second, context.requester)
    said = f"Members {first} and {second} are two people." if is_new else "That was said before."
    return Output({"distinct": sorted((first, second)), "is_new": is_new}, [said])


def rename(
    old: Annotated[str | None, typer.Argument(help="The external_id that a member has.")] = None,
    new: Annotated[str | None, typer.Argument(help="The external_id that it gets.")] = None,
    *,
    account: OnlyAccount = None,
    csv_file: Annotated[
        str | None,
        typer.Option("--csv", metavar="FILE", help="A CSV file with the columns old,new; - is stdin."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; say what would be.")] = False,
) -> Output:
    """Give a member, or the thousands of a CSV file, another external_id: a sender has renumbered its members.

    Example: frontdesk member rename --csv numbers.csv --account 1 --dry-run
    """
    if account is not None:
        ask(partial(get_account, account_id=account))
    if (csv_file is None) is (old is None or new is None):
        fail("Give either OLD and NEW, or --csv.", status=MISUSED)
    one = (old or "", new or "")
    pairs = _read_pairs(csv_file) if csv_file else [(read_text("OLD", one[0]), read_text("NEW", one[1]))]
    outcomes = _rename(pairs, account, is_dry=dry_run)
    rows = [{"row": number, "outcome": str(outcome)} for number, outcome in enumerate(outcomes, 1)]
    failed = [row for row in rows if row["outcome"] not in (RenameOutcome.RENAMED, RenameOutcome.UNCHANGED)]
    would = "would be renamed" if dry_run else "renamed"
    said = f"{outcomes.count(RenameOutcome.RENAMED)} of {len(rows)} {would}."
    parts = [*listing(failed, "row outcome", nothing="").parts] if failed else []
    return Output(rows, [*parts, said], status=FAILED if failed else 0)


def _rename(pairs: Sequence[tuple[str, str]], account: int | None, *, is_dry: bool) -> list[RenameOutcome]:
    config, requester, outcomes = settings(), new_request(), list[RenameOutcome]()
    limit = ProbeLimit(config.taken_per_day, config.uniqueness)
    with ExitStack() as stack:
        db, bar = stack.enter_context(migrated_database(config)), stack.enter_context(_progress())
        dry = stack.enter_context(dry_runs(config.uniqueness, probe_limit=limit)) if is_dry else None

        def decide(tx: Tx, submissions: Sequence[Submission]) -> Sequence[Enrolled | FrontdeskError]:
            if dry is None:
                return enrol(
                    tx, submissions, now=requester.now, uniqueness=config.uniqueness, probe_limit=limit
                )
            dry.begin_chunk()
            return dry.enrol(tx, submissions, now=requester.now, reopens_absent=False)

        work = partial(people.rename, account_id=account, requester=requester, decide=decide)
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
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig")), strict=True)
        if [name.strip().lower() for name in next(lines, [])] != ["old", "new"]:
            fail("The first line must be: old,new")
        return [*_pairs_of(lines)]
    except (UnicodeDecodeError, csv.Error):
        fail("The file is not CSV in UTF-8.")


def _pairs_of(lines: Iterator[list[str]]) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, 1):
        read = [read_external_id(cell) for cell in line]
        if len(read) != 2 or read[0] is None or read[1] is None:
            fail(f"Row {number} does not have two external_ids of at most 255 characters.")
        yield read[0], read[1]


def _pair(tx: Tx, first: str, second: str, account: int | None) -> tuple[int, int]:
    return people.find_pair(tx, read_text("EXTERNAL_ID", first), read_text("OTHER", second), account)


def _progress() -> Progress:
    screen = console(stderr=True)
    return Progress(console=screen, transient=True, disable=not screen.is_terminal)
