"""`frontdesk file`: from a file on disk to its report and its undo."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from frontdesk.cli.file import work_on
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.errors import FrontdeskError, Unavailable
from frontdesk.files.model import FileState
from frontdesk.files.store import change_file
from tests.cli.conftest import CommandLine
from tests.files.exports import hr_export
from tests.files.loading import csv_of, lines_of, row
from tests.patience import PATIENCE_SECONDS

SETTINGS = {"account_id": 1, "reopen_absent": True, "second_approver": False}
SETTINGS |= {"most_members": 25, "most_percent": 10}

Words = tuple[str, ...]


def written(folder: Path, rows: list[dict[str, Any]]) -> str:
    path = folder / "members.csv"
    path.write_bytes(csv_of(rows, rows[0]))
    return str(path)


@pytest.fixture
def load(plan: str, tmp_path: Path) -> Words:
    """The words that load a file of one member into the plan."""
    return "file", "load", written(tmp_path, [row(1)]), "--plan", plan


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    """A mapping in a file."""
    path = tmp_path / "mapping.json"
    path.write_text('{"columns": {"Employee No": "external_id"}}')
    return path


def test_a_file_is_loaded_and_undone(
    cli: CommandLine, plan: str, load: Words, tmp_path: Path
) -> None:
    rehearsed = cli.json(*load, "--dry-run")
    assert rehearsed["counts"] == {"created": 1}
    assert "There is no such eligible member" in cli.refused("member", "show", "E00001")
    loaded = cli.json("file", "load", written(tmp_path, [row(1), row(2)]), "--plan", plan)
    assert (loaded["state"], loaded["counts"], loaded["rows_total"]) == ("done", {"created": 2}, 2)
    lines = cli.text("file", "report", "2").splitlines()
    assert cli.audit_trail()[-1]["action"] == "file.report_read"
    assert lines == [
        (
            "row,external_id,outcome,code,field,hint,changed,left_plan,transaction,ordinal,"
            "access_before,access_after"
        ),
        "2,E00001,created,,,,,,,,,",
        "3,E00002,created,,,,,,,,,",
    ]
    undone = cli.json("file", "undo", "2")
    assert (undone["undoes_id"], undone["counts"]) == (2, {"withdrawn": 2, "lost": 2})
    assert cli.json("member", "show", "E00001")["mail"]["reason"] == "withdrawn"
    assert [file["id"] for file in cli.json("file", "list")] == [3, 2, 1]
    assert "can't be written" in cli.refused(
        "file", "report", "2", "--out", str(tmp_path / "no" / "a.csv")
    )
    out = tmp_path / "report.csv"
    cli.refused("file", "report", "7", "--out", str(out))
    assert not out.exists()


def test_an_undo_of_many_is_held_and_says_what_to_do(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    path = written(tmp_path, [row(n) for n in range(6)])
    assert cli.json("file", "load", path, "--plan", plan)["counts"] == {"created": 6}
    held = cli.run("file", "undo", "1")
    assert held.exit_code == 4
    assert "Undo 2 is held" in held.stdout
    assert "frontdesk file approve 2; to leave it applied: frontdesk file cancel 2" in held.stdout
    approved = cli.json("file", "approve", "2")
    assert (approved["state"], approved["counts"]) == ("done", {"withdrawn": 6, "lost": 6})


def test_a_file_that_runs_is_shown_with_the_row_that_its_check_is_at(
    cli: CommandLine, db: Database, plan: str, tmp_path: Path
) -> None:
    cli.json("file", "load", written(tmp_path, [row(1)]), "--plan", plan)
    assert "rows_checked" not in cli.json("file", "show", "1")
    running = {"state": FileState.RUNNING, "rows_checked": 48_200}
    with db.write() as tx:
        change_file(tx, 1, **running)
    assert cli.json("file", "show", "1")["rows_checked"] == 48_200
    assert "48200" in cli.run("file", "show", "1").stdout


def test_a_pipe_is_read_from_its_first_byte(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = lines_of(row(n) for n in range(90))
    writer = threading.Thread(target=path.write_bytes, args=[content], daemon=True)
    writer.start()
    assert cli.json("file", "load", str(path), "--plan", plan)["counts"] == {"created": 90}
    writer.join(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        (b"", (), "The file is empty"),
        (b"PK\x03\x04", ("--format", "csv"), "an Excel workbook"),
        (csv_of([row(1)]), ("--encoding", "klingon"), "not one of those that are read"),
    ],
)
def test_a_file_is_refused_by_its_first_bytes_before_it_is_stored(
    cli: CommandLine, plan: str, tmp_path: Path, content: bytes, options: Words, told: str
) -> None:
    path = tmp_path / "members"
    path.write_bytes(content)
    assert told in cli.refused("file", "load", str(path), "--plan", plan, *options)
    assert cli.json("file", "list") == []


def test_the_exit_status_tells_of_refused_rows_and_failures(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    path = written(tmp_path, [row(1), row(2, dob="never")])
    result = cli.run("file", "load", path, "--plan", plan)
    assert (result.exit_code, result.stderr) == (3, "")
    assert "1 created, 1 refused" in result.stdout
    report = tmp_path / "report.jsonl"
    cli.text("file", "report", "1", "--format", "jsonl", "--out", str(report))
    assert [json.loads(line)["code"] for line in report.read_text().splitlines()] == [
        "",
        "not_a_date",
    ]
    Path(path).write_bytes(csv_of([row(1), row(2)]) + "Zoë".encode("latin-1"))
    result = cli.run("file", "load", path, "--plan", plan)
    assert (result.exit_code, "failed" in result.stdout) == (1, True)


def test_a_file_that_would_end_too_many_is_held(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    cli.json("file", "load", written(tmp_path, [row(n) for n in range(40)]), "--plan", plan)
    full = (
        "file",
        "load",
        written(tmp_path, [row(n) for n in range(10)]),
        "--plan",
        plan,
        "--mode",
        "full",
    )
    held = cli.run(*full)
    rehearsed = cli.run(*full, "--dry-run")
    assert (held.exit_code, rehearsed.exit_code) == (4, 4)
    assert "The real run would be held" in rehearsed.stdout
    assert "30 of the 40 members with access under plan gold would lose it" in held.stdout
    assert "30 of the plan's 40 members would be ended" in held.stdout
    approved = cli.json("file", "approve", "2")
    assert approved["counts"] == {"unchanged": 10, "ended": 30, "lost": 30}
    assert "only one that is held" in cli.refused("file", "approve", "2")


def test_whether_a_member_was_eligible_is_told_from_the_history(
    cli: CommandLine, load: Words
) -> None:
    cli.json(*load)
    asked = ("member", "eligible", "E00001", "--on", "2026-03-01")
    found = cli.json(*asked)
    assert found["eligible"] is True
    assert cli.json(*asked[:-1], "2025-12-31")["reason"] == "not_yet"
    since = found["known_since"]  # what was known at that second includes it
    for known in (since, since[:10]):
        assert cli.json(*asked, "--as-known-on", known)["eligible"] is True
    assert cli.json(*asked, "--as-known-on", since[:10] + "T00:00:00Z")["reason"] == "not_enrolled"
    for wrong in ("2026-13-01", "2026-03-01T12:00:00"):
        assert "must be a date or a time in UTC" in cli.refused(
            *asked, "--as-known-on", wrong, status=2
        )


def test_mappings_have_names_and_one_is_the_default(
    cli: CommandLine, load: Words, mapping: Path
) -> None:
    path = Path(load[2])
    path.write_text(path.read_text().replace("external_id", "Employee No"))
    default = ("file", "mapping", "--account", "1")
    named = (*default, "--name", "hr")
    assert "no such eligibility mapping" in cli.refused(*named)
    assert cli.json(*named, "--set", str(mapping)) == json.loads(mapping.read_text())
    assert cli.json(*default) is None
    assert cli.json(*load, "--mapping-name", "hr")["counts"] == {"created": 1}
    for misuse in (
        (*load, "--mapping-name", "hr", "--mapping", str(mapping)),
        (*named, "--default"),
    ):
        cli.refused(*misuse, status=2)
    cli.json(*named, "--set", str(mapping), "--default")
    assert cli.json(*load)["counts"] == {"unchanged": 1}
    [listed] = cli.json("file", "mappings", "--account", "1")
    assert (listed["name"], listed["is_default"]) == ("hr", True)
    assert cli.json(*default, "--clear") is None
    assert cli.json("file", "mappings", "--account", "1") == []


def test_a_mapping_is_refused_with_all_its_faults(
    cli: CommandLine, load: Words, mapping: Path
) -> None:
    keep = ("file", "mapping", "--account", "1", "--set", str(mapping))
    mapping.write_text('{"columns": {"Zip": "postcode"}, "delimiter": "#"}')
    for command in ((*load, "--mapping", str(mapping)), keep):
        told = cli.refused(*command)
        assert told.startswith(
            "Error: The mapping's columns.Zip must be a field of a member, or null "
        )
        assert "The mapping's delimiter must be" in told
    mapping.write_text("columns")
    assert "not a JSON object" in cli.refused(*keep)
    assert "give one of the two" in cli.refused(*keep, "--clear", status=2)


def test_a_database_that_goes_away_ends_the_load_with_how_to_go_on(
    config: Config, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def try_in_vain(*_args: object, only: int) -> bool:
        raise Unavailable("The database is away.")

    monkeypatch.setattr("frontdesk.cli.file.run_next", try_in_vain)
    with pytest.raises(
        FrontdeskError, match=r"The database is away\. .* frontdesk file resume 7"
    ) as stopped:
        work_on(db, config, 7)
    assert stopped.value.code == "unavailable"


def test_how_the_files_of_an_account_are_treated_is_shown_and_changed(
    cli: CommandLine, plan: str
) -> None:
    asked = ("file", "settings", "--account", "1")
    assert cli.json(*asked) == SETTINGS
    assert (
        cli.json(*asked, "--no-reopen-absent")
        == cli.json(*asked)
        == SETTINGS | {"reopen_absent": False}
    )
    assert cli.json("audit", "list")[0]["action"] == "file_settings.changed"


def test_a_suggested_mapping_loads_the_file(cli: CommandLine, plan: str, mapping: Path) -> None:
    export = mapping.with_name("export.csv")
    export.write_bytes(hr_export())
    text = cli.text("file", "suggest", str(export), "--out", str(mapping))
    assert "Of 41 rows 0 would be refused, 1 would be left out." in text
    assert json.loads(mapping.read_text()) == cli.json("file", "suggest", str(export))["mapping"]
    loaded = cli.json("file", "load", str(export), "--plan", plan, "--mapping", str(mapping))
    assert loaded["counts"] == {"created": 40, "skipped": 1}


def test_a_suggestions_question_is_to_be_answered_first(
    cli: CommandLine, plan: str, mapping: Path
) -> None:
    export = written(mapping.parent, [row(1, Status="Active"), row(2, Status="Terminated")])
    text = cli.text("file", "suggest", export, "--out", str(mapping))
    assert "To be answered before the mapping can be used: Status." in text
    assert '{"end": [{"column": "Status", "equals": ["terminated"]}]}' in text
    load = ("file", "load", export, "--plan", plan, "--mapping", str(mapping))
    assert "questions.Status must be answered" in cli.refused(*load)
    answer = {"skip": [{"column": "Status", "equals": ["terminated"]}]}
    mapping.write_text(json.dumps(json.loads(mapping.read_text()) | answer))
    assert cli.json(*load)["counts"] == {"created": 1, "skipped": 1}


def test_a_refused_file_says_the_command_that_reads_it(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    path = tmp_path / "members.csv"
    path.write_text("Blue,Green\n1,2\n")
    said = cli.run("file", "load", str(path), "--plan", plan).stdout
    assert "frontdesk file load … --header-row N" in said
    path.write_bytes("external_id,last_name\nE1,Müller\n".encode("cp1252"))
    said = cli.run("file", "load", str(path), "--plan", plan).stdout
    assert "frontdesk file load … --encoding NAME" in said
