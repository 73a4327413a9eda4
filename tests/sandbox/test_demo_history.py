"""A new demo account has two weeks of history, made by the product's own functions."""

import json
from collections import Counter
from datetime import timedelta
from functools import partial

import pytest

from frontdesk.audit import Requester, list_entries
from frontdesk.cli import demo
from frontdesk.clock import system_clock
from frontdesk.config import read_config
from frontdesk.db import Database
from frontdesk.eligibility.people import find_member
from frontdesk.eligibility.search import ByBirthDate, search_people
from frontdesk.files.actions import find_files
from frontdesk.files.model import FileFilter, FileState
from frontdesk.invitations import list_invitations, list_suppressions
from frontdesk.privacy.retention import RetentionTurn, retention_days
from frontdesk.queues.board import read_board, read_day
from frontdesk.queues.upkeep import rebuild
from frontdesk.reach import EVERY, Reach
from frontdesk.sandbox.demo_history import History
from tests.cli.conftest import CommandLine
from tests.postgres import free_port


def test_a_new_demo_account_has_two_weeks_of_history(cli: CommandLine) -> None:
    result = cli.run("demo", "--history", "--json")
    made = json.loads(result.stdout)
    assert made["history"] == "made"
    # It says so only where it takes long.
    assert result.stderr in ("", "Making two weeks of history for the demo account ...\n")
    db = cli.open()
    try:
        account = Reach.of(made["account_id"])
        _has_files_of_every_state(db, account)
        _has_namesakes(db, account)
        _has_mails(db, account)
        _has_visits(db, account, made["plan_ids"])
        _is_consistent(db, cli)
        before = _numbers(db)
        again = cli.json("demo", "--history")
        assert (again["history"], again["account_created"]) == ("made", False)
        assert _numbers(db) == before
    finally:
        db.close()
    assert "All is well" in cli.text("check")


def test_a_demo_that_is_not_served_has_no_history_unless_it_is_asked_for(cli: CommandLine) -> None:
    made = cli.json("demo")
    assert made["history"] == "none"
    # It is for a new account only: what is there already is later than any history.
    assert cli.json("demo", "--history")["history"] == "none"
    assert cli.json("file", "list") == []


def test_a_served_demo_can_do_without_a_history(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "serve", lambda **_: None)
    made = cli.run(
        "demo", "--serve", "--no-history", "--still", "--json", "--port", str(free_port())
    )
    assert json.loads(made.stdout)["history"] == "none"


def test_a_run_that_was_ended_is_told_by_the_next(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "serve", lambda **_: None)
    # As if the process had been killed at the first step.
    monkeypatch.setattr(History, "make", lambda _: None)
    cli.run("demo", "--serve", "--still", "--port", str(free_port()))
    assert cli.json("demo")["history"] == "incomplete"
    assert "Its history is incomplete" in cli.text("demo", "--history")
    assert cli.json("file", "list") == []


def _has_files_of_every_state(db: Database, account: Reach) -> None:
    files = db.ask(lambda tx: find_files(tx, FileFilter(account, limit=100)))
    states = Counter(file.state for file in files)
    assert states[FileState.WAITING] == states[FileState.CANCELLED] == states[FileState.FAILED] == 1
    held = {file.problem["code"] for file in files if file.problem and file.state == "held"}
    assert held == {"too_many_lose_access", "needs_mapping"}
    done = [file for file in files if file.state is FileState.DONE]
    [undo] = [file for file in done if file.undoes_id]
    assert undo.counts["withdrawn"] == 6
    assert any(file.approved for file in done)
    assert any(file.dry_run for file in done)
    refused = max(done, key=lambda file: file.counts.get("refused", 0))
    assert refused.counts["refused"] >= 4
    assert len(refused.codes) >= 4
    # The one that is to run is large, and changes nothing.
    [waiting] = [file for file in files if file.state is FileState.WAITING]
    assert waiting.dry_run
    assert waiting.size_bytes > 1_000_000
    ages = [system_clock() - file.created_at for file in files]
    assert min(ages) < timedelta(hours=1)
    assert timedelta(days=13) < max(ages) < timedelta(days=15)


def _has_namesakes(db: Database, account: Reach) -> None:
    now = system_clock()

    def found(dob: str) -> list[str]:
        by = ByBirthDate(dob, "whitfield")
        people = db.ask(lambda tx: search_people(tx, account, by, now=now)).people
        return sorted(str(person.external_id) for person in people)

    assert found("1984-03-12") == ["DW-1001", "DW-2001"]
    assert found("1991-07-30") == ["DW-1002"]
    with db.read() as tx:
        plans = {find_member(tx, account, key)["plan_id"] for key in ("DW-1001", "DW-2001")}
    assert len(plans) == 2


def _has_mails(db: Database, account: Reach) -> None:
    mails = db.ask(lambda tx: list_invitations(tx, account, state=None, limit=1000))
    states = Counter((mail.state.value, mail.reason and mail.reason.value) for mail in mails)
    assert states["sent", "accepted"] > 50
    assert states["failed", "by_report"] == states["failed", "refused"] == 1
    assert states["cancelled", "suppressed"] == 1
    assert states["pending", None] == 6  # wait for the next batch
    found = db.ask(lambda tx: list_suppressions(tx, EVERY, limit=100))
    reasons = Counter(each.reason.value for each in found)
    assert reasons == {"hard_bounce": 1, "complaint": 1, "unsubscribe": 1, "by_hand": 1}


def _has_visits(db: Database, account: Reach, plan_ids: list[int]) -> None:
    now = system_clock()
    board = db.ask(lambda tx: read_board(tx, account, now))
    assert all(not plan.is_closed for group in board.groups for plan in group.plans)
    for plan_id in plan_ids[:3]:
        day = db.ask(partial(read_day, reach=account, plan_id=plan_id, now=now))
        assert len(day.promised) > 200
        assert sum(step.patients for step in day.waits) > 20
        assert any(step.longest_seconds > 60 for step in day.waits)
    with db.write() as tx:
        assert rebuild(tx)["mended"] == 0


def _is_consistent(db: Database, cli: CommandLine) -> None:
    """The trail is in the order of time, nothing of it lies ahead, and retention finds nothing."""
    entries = list(reversed(db.ask(lambda tx: list_entries(tx, EVERY, limit=10_000))))
    trail = [each["at"] for each in entries if not each["action"].startswith("database.")]
    assert trail == sorted(trail)
    assert trail[-1] <= system_clock()
    kept = retention_days(read_config({"FRONTDESK_DATABASE_URL": cli.database_url}))
    turn = RetentionTurn(db, system_clock, kept, Requester("test", "test", system_clock()))
    assert not +Counter(turn.count())


def _numbers(db: Database) -> list[int]:
    """How many rows there are of what a history makes."""
    tables = ("eligibility_files", "members", "invitations", "caught_messages", "estimate_log")
    with db.read() as tx:
        count = "SELECT count(*) FROM {}"
        return [tx.exec_driver_sql(count.format(each)).scalar_one() for each in tables]
