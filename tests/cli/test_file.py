"""`frontdesk file`: from a file on disk to its report and its undo."""

import csv
import io
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
from tests.cli.conftest import CommandLine
from tests.files.exports import hr_export
from tests.files.loading import csv_of, lines_of, row
from tests.patience import PATIENCE_SECONDS


def written(folder: Path, rows: list[dict[str, Any]]) -> str:
    path = folder / "members.csv"
    path.write_bytes(csv_of(rows))
    return str(path)


def test_a_file_is_loaded_reported_and_undone(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    path = written(tmp_path, [row(1), row(2)])
    loaded = cli.json("file", "load", path, "--plan", plan)
    assert (loaded["state"], loaded["counts"], loaded["rows_total"]) == ("done", {"created": 2}, 2)
    lines = list(csv.reader(io.StringIO(cli.text("file", "report", "1"))))
    assert cli.audit_trail()[-1]["action"] == "file.report_read"
    assert lines == [
        ["row", "external_id", "outcome", "code", "field", "hint", "changed", "left_plan"],
        ["2", "E00001", "created", "", "", "", "", ""],
        ["3", "E00002", "created", "", "", "", "", ""],
    ]
    undone = cli.json("file", "undo", "1")
    assert (undone["undoes_id"], undone["counts"]) == (1, {"withdrawn": 2})
    assert "There is no such eligible member" in cli.refused("member", "show", "E00001")
    assert [file["id"] for file in cli.json("file", "list")] == [2, 1]


def test_a_pipe_is_read_from_its_first_byte(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(
        target=path.write_bytes, args=[lines_of([row(n) for n in range(90)])], daemon=True
    )
    writer.start()
    assert cli.json("file", "load", str(path), "--plan", plan)["counts"] == {"created": 90}
    writer.join(PATIENCE_SECONDS)


def test_a_file_is_refused_by_its_first_bytes_before_it_is_stored(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    path = tmp_path / "members"
    path.write_bytes(b"")
    assert "The file is empty" in cli.refused("file", "load", str(path), "--plan", plan)
    path.write_bytes(b"PK\x03\x04")
    assert "an Excel workbook" in cli.refused("file", "load", str(path), "--plan", plan, "--format", "csv")
    path.write_bytes(csv_of([row(1)]))
    assert "not one of those that are read" in cli.refused(
        "file", "load", str(path), "--plan", plan, "--encoding", "klingon"
    )
    assert cli.json("file", "list") == []


def test_the_exit_status_tells_that_rows_were_refused(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    result = cli.run("file", "load", written(tmp_path, [row(1), row(2, dob="never")]), "--plan", plan)
    assert (result.exit_code, result.stderr) == (3, "")
    assert "1 created, 1 refused" in result.stdout
    report = tmp_path / "report.jsonl"
    cli.text("file", "report", "1", "--format", "jsonl", "--out", str(report))
    assert [json.loads(line)["code"] for line in report.read_text().splitlines()] == ["", "not_a_date"]


def test_a_file_that_cannot_be_read_says_where(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes(csv_of([row(1), row(2)]) + "Zoë".encode("latin-1"))
    result = cli.run("file", "load", str(path), "--plan", plan)
    assert result.exit_code == 1
    assert "failed" in result.stdout


def test_a_full_file_that_would_end_too_many_is_held_until_approved(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    cli.json("file", "load", written(tmp_path, [row(n) for n in range(40)]), "--plan", plan)
    path = written(tmp_path, [row(n) for n in range(10)])
    held = cli.run("file", "load", path, "--plan", plan, "--mode", "full")
    assert held.exit_code == 4
    rehearsed = cli.run("file", "load", path, "--plan", plan, "--mode", "full", "--dry-run")
    assert rehearsed.exit_code == 4
    assert "The real run would be held" in rehearsed.stdout
    assert "30 of the plan's 40 members would be ended" in held.stdout
    assert cli.json("file", "approve", "2")["counts"] == {"unchanged": 10, "ended": 30}
    assert "only one that is held" in cli.refused("file", "approve", "2")


def test_a_dry_run_writes_nothing(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    path = written(tmp_path, [row(1), row(2, gender="")])
    result = cli.run("file", "load", path, "--plan", plan, "--dry-run", "--json")
    assert json.loads(result.stdout)["counts"] == {"created": 1, "refused": 1}
    assert "There is no such eligible member" in cli.refused("member", "show", "E00001")


def test_whether_a_member_was_eligible_is_told_from_the_history(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    cli.json("file", "load", written(tmp_path, [row(1)]), "--plan", plan)
    asked = ("member", "eligible", "E00001", "--on")
    assert cli.json(*asked, "2026-03-01")["eligible"] is True
    assert cli.json(*asked, "2025-12-31")["reason"] == "not_yet"
    assert cli.json(*asked, "2026-03-01", "--as-known-on", "2020-01-01")["reason"] == "not_enrolled"


def test_a_mapping_that_is_no_json_is_refused(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text("columns")
    path = written(tmp_path, [row(1)])
    assert "not a JSON object" in cli.refused("file", "load", path, "--plan", plan, "--mapping", str(mapping))


def test_an_accounts_mapping_reads_the_files_that_bring_none(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"columns": {"Employee No": "external_id"}}')
    assert cli.json("file", "mapping", "--account", "1") is None
    cli.json("file", "mapping", "--account", "1", "--set", str(mapping))
    path = Path(written(tmp_path, [row(1)]))
    path.write_text(path.read_text().replace("external_id", "Employee No"))
    assert cli.json("file", "load", str(path), "--plan", plan)["counts"] == {"created": 1}
    cli.json("file", "mapping", "--account", "1", "--clear")
    assert cli.run("file", "load", str(path), "--plan", plan).exit_code == 1


def test_mappings_are_kept_by_name_and_one_is_the_default(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"columns": {"Employee No": "external_id"}}')
    path = Path(written(tmp_path, [row(1)]))
    path.write_text(path.read_text().replace("external_id", "Employee No"))
    asked = ("file", "mapping", "--account", "1", "--name", "hr")
    assert "no such eligibility mapping" in cli.refused(*asked)
    assert cli.json(*asked, "--set", str(mapping)) == json.loads(mapping.read_text())
    assert cli.json("file", "mapping", "--account", "1") is None
    load = ("file", "load", str(path), "--plan", plan)
    assert cli.run(*load).exit_code == 1
    assert cli.json(*load, "--mapping-name", "hr")["counts"] == {"created": 1}
    assert "no such eligibility mapping" in cli.refused(*load, "--mapping-name", "other")
    cli.refused(*load, "--mapping-name", "hr", "--mapping", str(mapping), status=2)
    cli.refused(*asked, "--default", status=2)
    cli.json(*asked, "--set", str(mapping), "--default")
    assert cli.json(*load)["counts"] == {"unchanged": 1}
    listed = cli.json("file", "mappings", "--account", "1")
    assert [(each["name"], each["is_default"]) for each in listed] == [("hr", True)]
    assert cli.json(*asked, "--clear") is None
    assert cli.json("file", "mappings", "--account", "1") == []


def test_a_mapping_with_faults_is_refused_with_all_of_them(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    mapping = tmp_path / "mapping.json"
    mapping.write_text('{"columns": {"Zip": "postcode"}, "delimiter": "#", "834": {"identify": "REF*1L"}}')
    for command in (
        ("load", written(tmp_path, [row(1)]), "--plan", plan, "--mapping", str(mapping)),
        ("mapping", "--account", "1", "--set", str(mapping)),
    ):
        told = cli.refused("file", *command)
        assert told.startswith("Error: The mapping's columns.Zip must be a field of a member, or null ")
        assert "The mapping's delimiter must be" in told
        assert "The mapping's 834.identify must name REF*.., NM109" in told
        assert "with a number of the member or of its family" in told
    assert "give one of the two" in cli.refused(
        *("file", "mapping", "--account", "1", "--set", str(mapping), "--clear"), status=2
    )


def test_a_report_that_cannot_be_written_says_so(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    cli.json("file", "load", written(tmp_path, [row(1)]), "--plan", plan)
    told = cli.refused("file", "report", "1", "--out", str(tmp_path / "nowhere" / "report.csv"))
    assert "can't be written" in told
    out = tmp_path / "report.csv"
    cli.refused("file", "report", "7", "--out", str(out))
    assert not out.exists()


def test_what_was_known_at_a_second_that_the_history_shows_includes_it(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    cli.json("file", "load", written(tmp_path, [row(1)]), "--plan", plan)
    since = cli.json("member", "eligible", "E00001", "--on", "2026-03-01")["known_since"]
    asked = ("member", "eligible", "E00001", "--on", "2026-03-01", "--as-known-on")
    assert cli.json(*asked, since)["eligible"] is True
    assert cli.json(*asked, since[:10])["eligible"] is True
    assert cli.json(*asked, since[:10] + "T00:00:00Z")["reason"] == "not_enrolled"
    for wrong in ("2026-13-01", "2026-03-01T12:00:00", "yesterday"):
        assert "must be a date or a time in UTC" in cli.refused(*asked, wrong, status=2)


def test_a_database_that_goes_away_ends_the_load_with_how_to_go_on(
    config: Config, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def try_in_vain(*_args: object, only: int) -> bool:
        raise Unavailable("The database is away.")

    monkeypatch.setattr("frontdesk.cli.file.run_next", try_in_vain)
    with pytest.raises(FrontdeskError, match=r"The database is away\. .* frontdesk file resume 7") as stopped:
        work_on(db, config, 7)
    assert stopped.value.code == "unavailable"


def test_how_the_files_of_an_account_are_treated_is_shown_and_changed(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    asked = ("file", "settings", "--account", "1")
    assert cli.json(*asked) == {"account_id": 1, "reopen_absent": True, "second_approver": False}
    assert cli.json(*asked, "--no-reopen-absent")["reopen_absent"] is False
    assert cli.json(*asked)["reopen_absent"] is False
    assert cli.json("audit", "list")[0]["action"] == "file_settings.changed"


def test_a_suggested_mapping_loads_the_file(cli: CommandLine, plan: str, tmp_path: Path) -> None:
    export, mapping = tmp_path / "export.csv", tmp_path / "mapping.json"
    export.write_bytes(hr_export())
    text = cli.text("file", "suggest", str(export), "--out", str(mapping))
    assert "Of 41 rows 0 would be refused, 1 would be left out." in text
    assert json.loads(mapping.read_text()) == cli.json("file", "suggest", str(export))["mapping"]
    loaded = cli.json("file", "load", str(export), "--plan", plan, "--mapping", str(mapping))
    assert loaded["counts"] == {"created": 40, "skipped": 1}


def test_a_suggested_mapping_is_refused_until_its_question_is_answered(
    cli: CommandLine, plan: str, tmp_path: Path
) -> None:
    export, mapping = tmp_path / "export.csv", tmp_path / "mapping.json"
    rows = [row(1, Status="Active"), row(2, Status="Terminated")]
    export.write_bytes(csv_of(rows, rows[0]))
    text = cli.text("file", "suggest", str(export), "--out", str(mapping))
    assert "To be answered before the mapping can be used: Status." in text
    assert '{"end": [{"column": "Status", "equals": ["terminated"]}]}' in text
    load = ("file", "load", str(export), "--plan", plan, "--mapping", str(mapping))
    assert "questions.Status must be answered" in cli.refused(*load)
    keep = ("file", "mapping", "--account", "1", "--set", str(mapping))
    assert "questions.Status must be answered" in cli.refused(*keep)
    answer = {"skip": [{"column": "Status", "equals": ["terminated"]}]}
    mapping.write_text(json.dumps(json.loads(mapping.read_text()) | answer))
    assert cli.json(*load)["counts"] == {"created": 1, "skipped": 1}


def test_a_file_without_names_of_columns_gets_no_suggestion(cli: CommandLine, tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_text("1,Robin\n2,Lee\n")
    assert "names of columns" in cli.refused("file", "suggest", str(export))
