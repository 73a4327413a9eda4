"""`frontdesk file`: load, show, approve and undo eligibility files (docs/files.md).

Exit status: 0 every row was applied; 3 some rows were refused; 4 the file is held, or would be held
(dry run); 1 it could not be read, or was stopped.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import typer
from rich.progress import MofNCompleteColumn

from frontdesk import codes, usage
from frontdesk.access.accounts import get_account, set_reopens_absent
from frontdesk.audit import Requester
from frontdesk.cli.command_group import CommandContext, CommandGroup, change_in, migrated_database
from frontdesk.cli.layout import Part, json_text, progress, table
from frontdesk.cli.options import (
    AccountId,
    Json,
    OnlyAccount,
    PlanId,
    given,
    id_argument,
    id_option,
    option,
    reach_of,
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
from frontdesk.cli.remedies import command_for
from frontdesk.clock import account_day, system_clock
from frontdesk.codes import Remedy, Where
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.errors import FrontdeskError, Invalid, Unavailable
from frontdesk.files import actions, get_file_settings, list_mappings, model, set_file_settings
from frontdesk.files.actions import DEFAULT_NAME, get_file
from frontdesk.files.content import PART_BYTES
from frontdesk.files.report import ReportFilter, read_report
from frontdesk.files.run import run_next
from frontdesk.formats.model import SEARCHED_ROWS, FileMode, Format
from frontdesk.formats.source import START_BYTES, check_start
from frontdesk.installation import run_options
from frontdesk.interface import present
from frontdesk.mapping.parser import parse_mapping
from frontdesk.mapping.suggest.suggestion import suggest_mapping
from frontdesk.plans import get_plan
from frontdesk.reach import EVERY

SOME_REFUSED = 3
IS_HELD = 4
POLL_SECONDS = 0.5
MOST_LIMIT = 1_000_000_000  # as many members as no account has

_ENDED = {
    model.FileState.DONE,
    model.FileState.FAILED,
    model.FileState.HELD,
    model.FileState.CANCELLED,
}
_STEPS = {
    model.FileStep.CHECK: "checking",
    model.FileStep.APPLY: "applying",
    model.FileStep.END: "ending",
}

FileId = Annotated[int, id_argument("ID", "Id of the file (see `file list`).")]

FilePath = Annotated[
    Path,
    typer.Argument(
        metavar="PATH", exists=True, dir_okay=False, help="The file; gzip is recognised."
    ),
]
FormatOption = Annotated[
    Format | None, option("Its format; by default its first letters decide.", "--format")
]
Encoding = Annotated[str, option("The encoding of its text.", metavar="NAME")]
Sheet = Annotated[
    str | None, option("The sheet of a workbook; by default the first visible one.", metavar="NAME")
]


def _json_file(sentence: str, *names: str) -> Any:
    return option(sentence, *names, metavar="F", exists=True, dir_okay=False)


commands = CommandGroup("file")


@commands.standalone("load", "members.csv --plan 1 --mode full --dry-run")
def load(  # noqa: PLR0913 - one parameter per option
    path: FilePath,
    plan: PlanId,
    format_: FormatOption = None,
    mode: Annotated[
        FileMode | None,
        option(
            "`full` ends members that the file omits, `compare` writes nothing; an 834 has a mode."
        ),
    ] = None,
    *,
    dry_run: Annotated[bool, option("Make the report, but write no member.", "--dry-run")] = False,
    mapping: Annotated[
        Path | None, _json_file("JSON file: the names in this sender's files.")
    ] = None,
    mapping_name: Annotated[
        str | None, option("A mapping of the account (see `file mappings`).", metavar="NAME")
    ] = None,
    encoding: Encoding = "utf-8",
    sheet: Sheet = None,
    header_row: Annotated[
        int | None,
        option(
            "The row of the columns' names. Default: it is found.",
            metavar="N",
            min=1,
            max=SEARCHED_ROWS,
        ),
    ] = None,
) -> Output:
    """Load a file of members under a plan: the same rules and codes as a POST, row by row."""
    if mapping is not None and mapping_name is not None:
        fail(
            "--mapping and --mapping-name both give a mapping: use one of the two.", status=MISUSED
        )
    own = None if mapping is None else _read_mapping(mapping)
    if path.is_file():  # a pipe can be read once only
        with path.open("rb") as stream:
            start = stream.read(START_BYTES)
        if not start:
            fail("The file is empty: nothing was loaded.")
        check_start(start, encoding=encoding, format=format_)

    def begin(context: CommandContext) -> model.EligibilityFile:
        account_id = get_plan(context.tx, EVERY, plan).account_id
        options = (own, mode, dry_run, mapping_name, sheet, header_row, path.name)
        new = model.NewFile(account_id, plan, format_, encoding, *options)
        return actions.begin_file(context.tx, new, context.requester)

    return _work_on(begin, path)


@commands.standalone("resume", "7")
def resume(file_id: FileId) -> Output:
    """Continue a waiting file where it stopped. A running worker does the same."""
    return _work_on(lambda context: get_file(context.tx, model.FileKey(file_id, EVERY)))


@commands.query("list", "--account 1")
def list_(
    tx: Tx,
    account: OnlyAccount = None,
    limit: Annotated[int, option("The most to list, the newest first.", min=1, max=1000)] = 50,
    plan: Annotated[int | None, id_option("--plan", "Only files of this plan.")] = None,
    state: Annotated[model.FileState | None, option("Only files in this state.")] = None,
) -> Output:
    """List eligibility files, newest first."""
    found = actions.find_files(tx, model.FileFilter(reach_of(account), limit, plan, state))
    items = [present.file(file) for file in found]
    columns = "id plan_id state mode dry_run rows_done rows_total counts created_at"
    return listing(items, columns, nothing="There is no eligibility file.")


@commands.query("show", "7")
def show(tx: Tx, file_id: FileId) -> Output:
    """Show a file: its progress, its counts, its problem."""
    file = get_file(tx, model.FileKey(file_id, EVERY))
    shown: dict[str, Any] = {**present.file(file)}
    if file.state is model.FileState.RUNNING:
        shown["rows_checked"] = file.rows_checked
    return describe(shown)


@commands.command("report")
def report(  # noqa: PLR0913 - one parameter per option
    file_id: FileId,
    *,
    format_: Annotated[
        Literal["csv", "jsonl"], option("The format of the report.", "--format")
    ] = "csv",
    outcome: Annotated[
        str | None, option("Only lines with this outcome, such as would_end.", metavar="WORD")
    ] = None,
    code: Annotated[str | None, option("Only lines with this code.", metavar="CODE")] = None,
    external_id: Annotated[
        str | None, option("Only the rows of this member.", metavar="EXTERNAL_ID")
    ] = None,
    out: Annotated[
        str, option("The file to write; by default stdout.", metavar="PATH", show_default=False)
    ] = "-",
    as_json: Json = False,
) -> None:
    """Write the outcome of each row, with its code, its changes and a hint. `--json` is `--format
    jsonl`.

    Example: frontdesk file report 7 --format csv --out report.csv
    """
    as_csv = format_ == "csv" and not as_json

    def record_read(context: CommandContext) -> None:
        file = get_file(context.tx, model.FileKey(file_id, EVERY))
        context.record("file.report_read", account_id=file.account_id, subject_id=file_id)

    with migrated_database(settings()) as db:
        change_in(db, record_read)
        with opened_file(
            out, "wb", "The report can't be written: {}. Give another --out."
        ) as stream:
            filter_ = ReportFilter(outcome, code, external_id)
            stream.writelines(read_report(db, file_id, filter_, as_csv=as_csv))


@commands.standalone("approve", "7")
def approve(file_id: FileId) -> Output:
    """Let a held file or undo continue. An approval covers what its sentence and its report show."""
    return _act_on(file_id, actions.approve_file)


@commands.standalone("accept", "7")
def accept(
    file_id: FileId,
    mapping: Annotated[Path | None, _json_file("JSON file: a mapping of your own.")] = None,
    *,
    keep: Annotated[bool, option("Make it the account's default for later files.")] = True,
) -> Output:
    """Give a held 834 a mapping: the suggested one, or your own. The file then continues."""
    own = {} if mapping is None else _read_mapping(mapping)
    return _act_on(file_id, partial(actions.accept_mapping, mapping=own, keep=keep))


@commands.change("cancel", "7")
def cancel(context: CommandContext, file_id: FileId) -> Output:
    """Cancel a waiting, running or held file. Applied rows stay until an undo."""
    return _described(
        actions.cancel_file(context.tx, model.FileKey(file_id, EVERY), context.requester)
    )


@commands.standalone("undo", "7")
def undo(file_id: FileId) -> Output:
    """Undo a file's changes, except of records changed since. The undo is a file too: it is held if
    many members would lose access, until `file approve`, and it can be undone.
    """
    return _act_on(file_id, actions.undo_file)


@commands.change("mapping", "--account 1 --name hr-export --set mapping.json --default")
def mapping_(
    context: CommandContext,
    account: AccountId,
    name: Annotated[
        str | None, option("Its name; by default the account's default mapping.", metavar="NAME")
    ] = None,
    set_: Annotated[Path | None, _json_file("JSON file with the new mapping.", "--set")] = None,
    *,
    default: Annotated[
        bool, option("With --set: use it for files without a mapping.", "--default")
    ] = False,
    clear: Annotated[bool, option("Remove the mapping.", "--clear")] = False,
) -> Output:
    """Show, set or remove a mapping of an account's files. A mapping that is sent with a file
    overrides it.
    """
    if set_ is not None and clear:
        fail(
            "--set gives the account a mapping and --clear removes it: give one of the two.",
            status=MISUSED,
        )
    if default and set_ is None:
        fail("--default needs --set.", status=MISUSED)
    usual = next(
        (each.name for each in list_mappings(context.tx, account) if each.is_default), None
    )
    key = model.MappingName(account, name or usual or DEFAULT_NAME)
    if set_ is not None:
        is_default = True if default or name is None else None
        content = _read_mapping(set_)
        actions.check_mapping(key.name, content)
        actions.save_mapping(context.tx, key, content, context.requester, default=is_default)
    elif clear and (name or usual):
        actions.delete_mapping(context.tx, key, context.requester)
    if clear or not (name or usual or set_):
        return Output(
            None, ["The account has no mapping: its files use the names of the interface."]
        )
    found = actions.get_mapping(context.tx, key).mapping
    return Output(found, [json_text(found)])


@commands.change("settings", "--account 1 --no-reopen-absent")
def settings_(
    context: CommandContext,
    account: AccountId,
    *,
    reopen_absent: Annotated[
        bool | None,
        option(
            "Whether a later full file or a POST reopens members that were ended by absence. "
            "Default: yes."
        ),
    ] = None,
    second_approver: Annotated[
        bool | None,
        option("Whether a held file needs another approver than its uploader. Default: no."),
    ] = None,
    most_members: Annotated[
        int | None,
        option(
            "A file is held if more members than this, and more than --most-percent of them, would "
            "lose access, move or be mistaken. Default: 25.",
            metavar="N",
            min=0,
            max=MOST_LIMIT,
        ),
    ] = None,
    most_percent: Annotated[
        int | None, option("See --most-members. Default: 10.", metavar="N", min=0, max=100)
    ] = None,
) -> Output:
    """Show how the files of an account are treated, or change it. An option that is left out keeps
    its value.
    """
    tx = context.tx
    if reopen_absent is not None:
        set_reopens_absent(tx, account, reopens_absent=reopen_absent)
    of_files = given(
        second_approver=second_approver, most_members=most_members, most_percent=most_percent
    )
    if of_files:
        set_file_settings(tx, account, **of_files)
    if changes := given(reopen_absent=reopen_absent) | of_files:
        context.record("file_settings.changed", account_id=account, subject_id=account, **changes)
    reopens = {"reopen_absent": get_account(tx, account).reopens_absent}
    stored = asdict(get_file_settings(tx, account))
    return describe({"account_id": stored.pop("account_id")} | reopens | stored)


@commands.query("mappings", "--account 1")
def mappings(tx: Tx, account: AccountId) -> Output:
    """List the mappings of an account's files."""
    items = [present.mapping(each) for each in list_mappings(tx, account)]
    return listing(items, "name is_default changed_at", nothing="The account has no mapping.")


@commands.standalone("suggest", "export.csv --out mapping.json")
def suggest(
    path: FilePath,
    format_: FormatOption = None,
    sheet: Sheet = None,
    encoding: Encoding = "utf-8",
    out: Annotated[
        str | None,
        option("A file to write the mapping to, for `file load --mapping`.", metavar="F"),
    ] = None,
) -> Output:
    """Suggest a mapping for a file: the likely field of each column with a confidence, and the rows
    that would still be refused. Nothing is loaded, and no value of a member is shown.
    """
    today = account_day(system_clock(), None).latest
    with path.open("rb") as stream:
        found = suggest_mapping(stream, today=today, format=format_, encoding=encoding, sheet=sheet)
    mapping = json_text(found["mapping"])
    if out is not None:
        with opened_file(
            out, "wb", "The mapping can't be written: {}. Give another --out."
        ) as target:
            target.write(mapping.encode())
    if found["format"] == Format.X12:
        figures = table(found["references"], "reference people with_others looks_like_ssn")
        return Output(found, [figures, *found["reasons"], mapping])
    left_out = f", {found['skipped_rows']:,} would be left out" if found["skipped_rows"] else ""
    parts: list[Part] = [
        table(found["columns"], "column fields confidence samples note"),
        mapping,
        f"Of {found['rows']:,} rows {found['refused_rows']:,} would be refused{left_out}.",
    ]
    if found["refused"]:
        parts.append(table(found["refused"], "field code rows advice"))
    for question in found["questions"]:
        is_open = question["column"] in found["mapping"].get("questions", {})
        lead = "To be answered before the mapping can be used" if is_open else "To be checked"
        parts.append(f"{lead}: {question['column']}. {question['question']}")
        parts += [
            f"- {choice['does']} Put into the mapping: {json.dumps(choice['mapping'], ensure_ascii=False)}"
            for choice in question["choices"]
        ]
    return Output(found, parts)


def _act_on(file_id: int, action: Callable[..., model.EligibilityFile]) -> Output:
    return _work_on(
        lambda context: action(context.tx, model.FileKey(file_id, EVERY), context.requester)
    )


def _work_on(
    begin: Callable[[CommandContext], model.EligibilityFile], path: Path | None = None
) -> Output:
    """Work to its end on the file that `begin` gives, with the content at `path`. The result has
    its exit status.
    """
    with migrated_database(settings(), index_scans=True) as db:
        file = change_in(db, begin)
        if path is not None:
            _upload(db, file, path)
        file = work_on(db, settings(), file.id)
    if file.needs_approval:
        return _described(file, IS_HELD)
    if file.state != model.FileState.DONE:
        return _described(file, FAILED)
    return _described(file, SOME_REFUSED if file.counts.get(model.REFUSED) else 0)


def summary(file: model.EligibilityFile) -> list[str]:
    """The result of the file in sentences, with the commands that come next."""
    kind = (
        "Undo"
        if file.undoes_id
        else "Dry run: nothing was written. File"
        if file.dry_run
        else "File"
    )
    counted = ", ".join(
        f"{file.counts[name]:,} {name}" for name in model.COUNTS if file.counts.get(name)
    )
    has_failed = file.state is model.FileState.FAILED
    nothing = "nothing was applied" if file.needs_mapping or has_failed else "no rows"
    became = f"{'has failed' if has_failed else f'is {file.state}'}: {counted or nothing}"
    lines = [f"{kind} {file.id} {became}."]
    if file.state is model.FileState.WAITING:
        lines.append(
            f"A worker continues where it stopped. To continue here: frontdesk file resume {file.id}"
        )
    if file.problem is not None:
        lines += _problem_lines(file, file.problem)
    lines += [
        f"Which members: frontdesk file report {file.id} --outcome {outcome}"
        for outcome in model.COUNTS
        if outcome.startswith("would_") and file.counts.get(outcome)
    ]
    if file.ignored:
        lines.append(
            "Columns or keys that are no field were left out: "
            + ", ".join(map(unquote, file.ignored))
            + "."
        )
    if file.counts.get(model.REFUSED) or file.counts.get(model.WARNED):
        lines.append(f"Row by row: frontdesk file report {file.id}")
    return lines


def _problem_lines(file: model.EligibilityFile, problem: Mapping[str, Any]) -> list[str]:
    """The problem of the file, and the commands that decide about it or load it again."""
    lines = [str(problem["message"])]
    code = codes.find(Where.FILE, problem["code"])
    ids = {"file_id": file.id}
    if file.needs_mapping:
        suggestion = problem["suggestion"]
        lines.append(f"Suggested mapping: {json.dumps(suggestion['mapping'], ensure_ascii=False)}")
        lines += suggestion["reasons"]
        accept = (
            f"{command_for(Remedy.ACCEPT_MAPPING, ids)}; to give another: frontdesk file "
            f"accept {file.id} --mapping F"
        )
        again = "Load the file with a mapping: frontdesk file load … --mapping F"
        return [*lines, again if file.dry_run else accept]
    if file.state is model.FileState.CANCELLED:
        return lines
    only_cancelled = code == codes.files.OVERTAKEN and file.mode is not FileMode.CHANGE
    if not file.needs_approval or only_cancelled:
        return [*lines, *filter(None, [command_for(code.remedy if code else None, ids)])]
    if code is not None and code.remedy is Remedy.RENAME_MEMBERS:
        lines.append(command_for(code.remedy, ids))
    if file.dry_run:
        return [*lines, "The real run would be held before its first row, until it is approved."]
    if file.undoes_id is not None:
        approve = f"To take the file back: frontdesk file approve {file.id}"
        cancel = f"to leave it applied: frontdesk file cancel {file.id}"
        return [*lines, f"Nothing was taken back. {approve}; {cancel}"]
    approve = command_for(Remedy.APPROVE_FILE, ids)
    cancel = f"to cancel the file: frontdesk file cancel {file.id}"
    return [*lines, f"Nothing was applied. {approve}; {cancel}"]


def _described(file: model.EligibilityFile, status: int = 0) -> Output:
    return Output(present.file(file), summary(file), status)


def _upload(db: Database, file: model.EligibilityFile, path: Path) -> None:
    """Store the content. After a broken upload, the file is deleted within a day or two."""
    upload = actions.Upload(db, file)
    try:
        with path.open("rb") as stream:
            while piece := stream.read(PART_BYTES):
                upload.write(piece)
                upload.flush()
        upload.finish(Requester(file.client, file.request_id, system_clock()))
    except Invalid:
        upload.discard()
        raise FrontdeskError("The file is empty.", code=codes.operators.EMPTY) from None


def _read_mapping(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        body = None
    if not isinstance(body, dict):
        raise FrontdeskError(
            "The mapping is not a JSON object in UTF-8.", code=codes.operators.MALFORMED_MAPPING
        )
    try:
        parse_mapping(body)
    except Invalid as error:
        sentences = (f"The mapping's {fault.field} {fault.message}." for fault in error.faults)
        raise FrontdeskError("\n".join(sentences), code=codes.operators.INVALID_MAPPING) from None
    return body


def work_on(db: Database, config: Config, file_id: int) -> model.EligibilityFile:
    """Work on the file, or watch the worker that does, until it ends or Ctrl-C stops it. Raises
    FrontdeskError.
    """
    with progress(MofNCompleteColumn()) as bar, _stop_signals() as signals:
        task = bar.add_task("waiting", total=None)

        def show(step: model.FileStep, done: int, total: int | None) -> None:
            bar.update(task, description=_STEPS[step], completed=done, total=total)

        options = run_options(config, should_stop=lambda: bool(signals), on_progress=show)
        try:
            while True:
                usage.counter_of(db.engine).save_rest(db, system_clock())
                worked = run_next(db, system_clock, options, only=file_id)
                file = db.ask(lambda tx: get_file(tx, model.FileKey(file_id, EVERY)))
                if file.state in _ENDED or signals:
                    return file
                if not worked:
                    show(file.step, file.rows_done, file.rows_total)
                time.sleep(POLL_SECONDS)
        except Unavailable as error:
            how = f"{error.detail} The file goes on with: frontdesk file resume {file_id}"
            raise FrontdeskError(how, code=codes.operators.UNAVAILABLE) from None


@contextmanager
def _stop_signals() -> Iterator[list[int]]:
    """The Ctrl-C and SIGTERM so far. The work stops after the current chunk, so that the next
    worker need not wait for the lease.

    Not an Event: a handler that sets it can interrupt the thread that is about to wait for it, and
    never ends.
    """
    signals: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        signals.append(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
