"""`frontdesk file`: eligibility files are loaded, looked at, approved, undone. What a file does is decided in `files`.

Exit status: 0 every row was applied; 3 some rows were refused; 4 the file is held, or a dry run says that it would be; 1 it
could not be read, or was stopped.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from frontdesk.access import get_account
from frontdesk.cli.file_progress import work_on
from frontdesk.cli.installation import CommandContext, ask, change, change_in, migrated_database
from frontdesk.cli.options import AccountId, Json, OnlyAccount, PlanId, checked_id
from frontdesk.cli.output import FAILED, MISUSED, fail, print_json, say, settings, show_list, show_one
from frontdesk.db import Database, Tx
from frontdesk.errors import FrontdeskError, Invalid
from frontdesk.files import (
    Upload,
    approve_file,
    begin_file,
    cancel_file,
    file_body,
    get_file,
    get_mapping,
    list_files,
    report_csv,
    report_json_lines,
    set_mapping,
    summary,
    undo_file,
)
from frontdesk.files.content import PART_BYTES
from frontdesk.files.mapping import parse_mapping
from frontdesk.files.model import EligibilityFile, FileMode, FileState, Format, NewFile, Requester
from frontdesk.plans import get_plan

SOME_REFUSED, IS_HELD = 3, 4
LARGEST_LIMIT = 1000

FileId = Annotated[
    int, typer.Argument(metavar="ID", callback=checked_id, help="Id of the file (see `file list`).")
]


class Mode(StrEnum):
    CHANGE = "change"
    FULL = "full"


class ReportFormat(StrEnum):
    CSV = "csv"
    JSON_LINES = "jsonl"


commands = typer.Typer(no_args_is_help=True, help="Eligibility files: load, look at, approve, undo.")


@commands.callback()
def group() -> None:
    """Eligibility files: load, look at, approve, undo."""


@commands.command("load")
def load(  # noqa: PLR0913 - one parameter per option
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", exists=True, dir_okay=False, help="The file; gzip is recognised."),
    ],
    plan: PlanId,
    *,
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="How it is written; if not given, its first letters tell."),
    ] = None,
    mode: Annotated[
        Mode,
        typer.Option(
            help="`full` ends the plan's members that the file does not name. An 834 says so itself."
        ),
    ] = Mode.CHANGE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="The same report and counts; nothing is written.")
    ] = False,
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="F", exists=True, dir_okay=False, help="JSON file: how this sender names things."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="The encoding of its text.")] = "utf-8",
    as_json: Json = False,
) -> None:
    """Load a file of members under a plan: the same rules and codes as a POST, row by row.

    Example: frontdesk file load members.csv --plan 1 --mode full --dry-run
    """
    named = None if mapping is None else _read_mapping(mapping)

    def begin(deed: CommandContext) -> EligibilityFile:
        account_id = get_plan(deed.tx, None, plan).account_id
        new = NewFile(account_id, plan, format_, encoding, named, FileMode(mode.value), dry_run)
        return begin_file(deed.tx, new, _asked(deed))

    with migrated_database(settings(), index_scans=True) as db:
        file = change_in(db, begin)
        _take_in(db, file, path)
        _finish(db, file.id, as_json=as_json)


@commands.command("resume")
def resume(file_id: FileId, *, as_json: Json = False) -> None:
    """Go on with a file that waits, where it stopped; without a worker running, nobody else does.

    Example: frontdesk file resume 7
    """
    ask(lambda tx: get_file(tx, file_id, account_id=None))
    with migrated_database(settings(), index_scans=True) as db:
        _finish(db, file_id, as_json=as_json)


@commands.command("list")
def list_(
    account: OnlyAccount = None,
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="At most so many, the newest first.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """List eligibility files, newest first.

    Example: frontdesk file list --account 1
    """

    def question(tx: Tx) -> list[dict[str, Any]]:
        if account is not None:
            get_account(tx, account)
        return [file_body(file) for file in list_files(tx, account_id=account, limit=limit)]

    columns = ("id", "plan_id", "state", "mode", "dry_run", "rows_done", "rows_total", "counts", "created_at")
    show_list(ask(question), columns=columns, as_json=as_json, nothing="There is no eligibility file.")


@commands.command("show")
def show(file_id: FileId, *, as_json: Json = False) -> None:
    """Show a file: how far it is, its counts, what is wrong with it.

    Example: frontdesk file show 7
    """
    show_one(file_body(ask(lambda tx: get_file(tx, file_id, account_id=None))), as_json=as_json)


@commands.command("report")
def report(
    file_id: FileId,
    *,
    format_: Annotated[
        ReportFormat, typer.Option("--format", help="How the report is written.")
    ] = ReportFormat.CSV,
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where to write it; stdout if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what became of each row: row, external_id, outcome, code, field, hint. `--json` is `--format jsonl`.

    Example: frontdesk file report 7 --format csv --out report.csv
    """
    lines = as_json or format_ is ReportFormat.JSON_LINES
    with migrated_database(settings()) as db:
        db.ask(lambda tx: get_file(tx, file_id, account_id=None))
        with _opened(out) as stream:
            for piece in (report_json_lines if lines else report_csv)(db, file_id):
                stream.write(piece)


@commands.command("approve")
def approve(file_id: FileId, *, as_json: Json = False) -> None:
    """Let a held full file end the members that it does not name.

    Example: frontdesk file approve 7
    """
    _deed(approve_file, file_id, as_json=as_json, go_on=True)


@commands.command("cancel")
def cancel(file_id: FileId, *, as_json: Json = False) -> None:
    """Give up a file that waits or is held; what it has applied stays until it is undone.

    Example: frontdesk file cancel 7
    """
    _deed(cancel_file, file_id, as_json=as_json, go_on=False)


@commands.command("undo")
def undo(file_id: FileId, *, as_json: Json = False) -> None:
    """Take back what a file changed, except records changed again since. The undo is a file too, and can be undone.

    Example: frontdesk file undo 7
    """
    _deed(undo_file, file_id, as_json=as_json, go_on=True)


@commands.command("mapping")
def mapping_(
    account: AccountId,
    *,
    set_: Annotated[
        Path | None,
        typer.Option(
            "--set", metavar="F", exists=True, dir_okay=False, help="JSON file with the new mapping."
        ),
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take the mapping away.")] = False,
    as_json: Json = False,
) -> None:
    """Show or set how an account's files name things; a file that brings its own mapping is read by that.

    Example: frontdesk file mapping --account 1 --set mapping.json
    """
    if set_ is not None and clear:
        fail("--set gives the account a mapping and --clear takes it away: say one of them.", status=MISUSED)
    named = None if set_ is None else _read_mapping(set_)

    def work(deed: CommandContext) -> dict[str, Any] | None:
        get_account(deed.tx, account)
        if named is not None or clear:
            set_mapping(deed.tx, account, named, now=deed.now)
            deed.record("file.mapping_set", account_id=account)
        return get_mapping(deed.tx, account)

    found = change(work)
    if as_json or found is not None:
        print_json(found)
    else:
        say("The account has no mapping: its files name things as the interface does.")


def _deed(do: Any, file_id: int, *, as_json: bool, go_on: bool) -> None:
    with migrated_database(settings(), index_scans=True) as db:
        file = change_in(db, lambda deed: do(deed.tx, file_id, _asked(deed), account_id=None))
        if go_on:
            _finish(db, file.id, as_json=as_json)
        else:
            _tell(file, as_json=as_json)


def _finish(db: Database, file_id: int, *, as_json: bool) -> None:
    """Work on the file to its end, tell what came of it, and end with the status of that."""
    file = work_on(db, settings(), file_id)
    _tell(file, as_json=as_json)
    if file.needs_approval:
        raise typer.Exit(IS_HELD)
    if file.state != FileState.DONE:
        raise typer.Exit(FAILED)
    if file.counts.get("refused"):
        raise typer.Exit(SOME_REFUSED)


def _tell(file: EligibilityFile, *, as_json: bool) -> None:
    if as_json:
        print_json(file_body(file))
        return
    for line in summary(file):
        say(line)


def _take_in(db: Database, file: EligibilityFile, path: Path) -> None:
    """Store the content; a file that can't be read to its end leaves nothing behind."""
    upload = Upload(db, file)
    with path.open("rb") as stream:
        while piece := stream.read(PART_BYTES):
            upload.take(piece)
            upload.store()
    upload.finish(Requester(file.client, file.request_id, file.created_at))


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        body = None
    if not isinstance(body, dict):
        raise FrontdeskError("The mapping is not a JSON object in UTF-8.", code="malformed_mapping")
    try:
        parse_mapping(body)
    except Invalid as error:
        told = (f"The mapping's {fault.field} {fault.message}." for fault in error.faults)
        raise FrontdeskError("\n".join(told), code="invalid_mapping") from None
    return body


def _asked(deed: CommandContext) -> Requester:
    return Requester(deed.actor, deed.request_id, deed.now)


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.flush()
        return
    try:
        with path.open("wb") as stream:
            yield stream
    except OSError as error:
        fail(f"The report can't be written: {error.strerror}. Give another --out.")
