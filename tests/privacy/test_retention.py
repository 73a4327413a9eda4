"""What has been kept long enough goes, and nothing else; two workers at once are harmless."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, text, update
from sqlalchemy.exc import DBAPIError

from frontdesk.access.tables import failed_attempts
from frontdesk.audit import AuditEntry, AuditQuery, Requester, entries_after, list_entries, record
from frontdesk.audit.chain import TrailPruning, first_line, sealed
from frontdesk.audit.tables import audit_entries
from frontdesk.config import SETTINGS, Config, ConfigError, read_config
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility import find_members
from frontdesk.eligibility.people import find_eligibility
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files.model import WrongState
from frontdesk.invitations.tables import invitations
from frontdesk.privacy.erasure import get_person, place_hold, release_hold
from frontdesk.privacy.model import RetentionKind, UnderLegalHold
from frontdesk.privacy.retention import Counts, RetentionTurn, retention_days
from frontdesk.reach import EVERY
from frontdesk.usage.model import Usage
from frontdesk.usage.store import add_usage, usage_of_day
from frontdesk.worker.background import RetentionPruner
from tests.cli.conftest import CommandLine
from tests.conftest import SetClock
from tests.files.loading import csv_of, row
from tests.privacy.conftest import KEY, Life

K = RetentionKind
YEAR = timedelta(days=366)


def turn_of(life: Life) -> RetentionTurn:
    return RetentionTurn(life.db, life.clock, retention_days(life.config), life.requester())


def run(life: Life) -> Counts:
    return turn_of(life).run()


def erased(life: Life) -> set[int]:
    query = select(metadata.tables["erasures"].c.member_id)
    return set(life.db.ask(lambda tx: tx.execute(query).scalars().all()))


def test_nothing_goes_that_is_not_old_enough(life: Life) -> None:
    before = list(life.cells())
    assert run(life) == {}
    assert turn_of(life).count() == dict.fromkeys(K, 0)
    assert list(life.cells()) == before


def test_a_member_is_erased_years_after_its_access_or_withdrawal(life: Life) -> None:
    assert (
        life.api.post(life.path, {"external_id": KEY, "expiry_date": "2026-12-31"}).status_code
        == 200
    )
    life.desk.undo(life.desk.load(csv_of([row(30)])))
    [gone] = life.db.ask(lambda tx: find_members(tx, EVERY, "E00030", withdrawn=True))
    life.clock.advance(89 * 86_400)
    assert run(life).get(K.WITHDRAWN) is None
    life.clock.advance(2 * 86_400)
    assert run(life)[K.WITHDRAWN] == 1
    assert erased(life) == {gone["id"]}
    life.clock.advance((10 * YEAR - timedelta(days=91)).total_seconds())
    assert run(life).get(K.ENDED) is None
    life.clock.advance(60 * 86_400)
    assert turn_of(life).count()[K.ENDED] == 1
    assert run(life)[K.ENDED] == 1
    assert erased(life) == {gone["id"], life.member_id}
    assert life.mentions() == set()  # the reports and addresses were gone long before
    assert run(life).get(K.ENDED) is None


def test_a_stored_answer_is_deleted_after_a_day(life: Life) -> None:
    plan = life.path.removesuffix("/eligibility")
    headers = {"Idempotency-Key": "old"}
    assert life.api.patch(plan, {"name": "Plus"}, headers=headers).status_code == 200
    life.clock.advance(86_300)
    assert run(life).get(K.ANSWERS) is None
    life.clock.advance(200)
    due = turn_of(life).count()[K.ANSWERS]
    assert due > 0
    assert run(life)[K.ANSWERS] == due
    assert [place for place, _ in life.cells() if place.startswith("stored_answers")] == []


def test_what_an_account_stored_is_known_by_day_for_four_hundred_days(life: Life) -> None:
    today = life.clock().date()
    days = [(today - timedelta(days=age)).isoformat() for age in (0, 401, 403)]
    account_id = life.customer.account_id
    with life.db.write() as tx:
        for day in days:
            add_usage(tx, day, {account_id: Usage(1, 0, 0)})
    run(life)
    with life.db.read() as tx:
        kept = [day for day in days if account_id in usage_of_day(tx, day)]
    assert kept == days[:2]  # counters are kept for two days, and these for four hundred more


def test_old_reports_go_and_their_files_can_not_be_undone(life: Life) -> None:
    file = life.desk.load(csv_of([row(31)]), file_name="march.csv")
    unreadable = life.desk.load(b"no,header\n1,2\n", file_name="april.csv")
    life.clock.advance(401 * 86_400)
    counts = run(life)
    assert counts[K.REPORTS] >= 4
    assert life.desk.count("file_rows") == life.desk.count("file_lists") == 0
    assert life.desk.reread(file).counts == file.counts
    assert [life.desk.reread(each).file_name for each in (file, unreadable)] == [None, None]
    with pytest.raises(WrongState, match="too old"):
        life.desk.undo(file)
    assert counts[K.INVITATIONS] == 1
    assert life.db.ask(lambda tx: tx.execute(select(invitations.c.address)).scalars().all()) == [""]


def test_the_history_loses_old_values_and_still_tells_the_access(life: Life) -> None:
    changes = {"first_name": [None, "Antiquary"], "effective_date": [None, "2014-01-01"]}
    old = {"member_id": life.member_id, "plan_id": life.customer.plan_ids[0], "changes": changes}
    old |= {
        "outcome": "updated",
        "client": "c",
        "request_id": "r",
        "changed_at": life.clock() - 11 * YEAR,
    }
    with life.db.write() as tx:  # an old entry, since the database looks at its own clock
        tx.execute(insert(member_history).values(old))
    turn = turn_of(life)
    assert "Antiquary" in str([*life.cells()])
    assert turn.count()[K.HISTORY] == 1  # newer entries keep their values
    assert turn.run()[K.HISTORY] == 1
    assert "Antiquary" not in str([*life.cells()])
    assert "Zebediah" in str([*life.cells()])
    assert run(life).get(K.HISTORY) is None
    answer = life.db.ask(lambda tx: find_eligibility(tx, EVERY, KEY, on="2015-01-01"))
    assert answer.effective_date == "2014-01-01"


@pytest.fixture
def trail(db: Database, clock: SetClock, config: Config) -> RetentionTurn:
    """An audit trail of three entries that are eight years old, and three of today."""
    for days in (8 * 366, 0):
        entries = [AuditEntry("plan.changed", "someone", "request", subject_id=n) for n in range(3)]
        with db.write() as tx:
            record(tx, entries, now=clock() - timedelta(days=days))
    return RetentionTurn(
        db, clock, retention_days(config), Requester("retention", "retention-1", clock())
    )


def test_the_audit_trail_is_pruned_only_from_its_beginning(
    trail: RetentionTurn, database_url: str, tmp_path: Path
) -> None:
    """Every digest is computed anew: the file alone shows nothing, its noted chain does, and so
    does the database.
    """
    cli = CommandLine(database_url)
    whole, cut, honest = (tmp_path / name for name in ("whole.jsonl", "cut.jsonl", "honest.jsonl"))
    early = tmp_path / "early.jsonl"
    noted = cli.json("audit", "export", str(whole))
    lines = whole.read_bytes().splitlines(keepends=True)
    through = json.loads(lines[1])
    line, end = first_line(TrailPruning(through["id"], through["chain"]))
    kept = trail.db.ask(lambda tx: entries_after(tx, through["id"], until=trail.clock(), limit=100))
    cut.write_bytes(line + b"".join(made for made, _ in sealed(kept, end)))
    assert "end with this chain" in cli.refused(
        "audit", "verify", str(cut), "--chain", noted["chain"]
    )
    assert "was cut off" in cli.refused("audit", "verify", str(cut))
    assert "was cut off" in cli.refused("audit", "export", str(cut))
    # Nor elsewhere, where no database knows what was pruned.
    nowhere = f"sqlite:///{tmp_path / 'nowhere.db'}"
    assert "Give --chain" in CommandLine(nowhere).refused("audit", "verify", str(cut))
    assert trail.count()[K.AUDIT] == 3
    assert trail.run() == {K.AUDIT: 3}
    assert trail.run() == {}
    cli.json("audit", "export", str(honest))
    first, *_, last = map(json.loads, honest.read_text().splitlines())
    # The first line names the chain that a file with every entry has there.
    assert (first["pruned_through"], first["pruned_chain"]) == (3, json.loads(lines[2])["chain"])
    verified = CommandLine(nowhere).json("audit", "verify", str(honest), "--chain", last["chain"])
    assert (verified["last_id"], verified["pruned_through"]) == (last["id"], 3)
    assert cli.json("audit", "verify", str(whole))["last_id"] >= noted["last_id"]
    early.write_bytes(b"".join(lines[:2]))
    assert "were pruned since" in cli.refused("audit", "export", str(early))
    assert "was cut off" in cli.refused("audit", "verify", str(cut))  # pruned since, but not there
    cut.write_bytes(honest.read_bytes().splitlines(keepends=True)[0])
    chain = json.loads(cut.read_bytes())["chain"]
    assert "nothing to verify" in cli.refused("audit", "verify", str(cut), "--chain", chain)


def test_the_database_keeps_young_entries_whatever_the_program_does(
    life: Life, owner: Database
) -> None:
    prunings = metadata.tables["audit_prunings"]
    with owner.write() as tx:
        tx.execute(insert(prunings).values(through_id=10**6, chain="", pruned_at=life.clock()))
    deeds: list[Any] = [
        audit_entries.delete(),
        update(audit_entries).values(actor="other"),
        prunings.delete(),
    ]
    deeds += [member_history.delete(), update(member_history).values(changes={})]
    if owner.is_sqlite:  # which has its own way round an UPDATE
        deeds.append(text("INSERT OR REPLACE INTO audit_entries SELECT * FROM audit_entries"))
        deeds.append(text("INSERT OR REPLACE INTO member_history SELECT * FROM member_history"))
    for deed in deeds:
        with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
            tx.execute(deed)


def test_a_legal_hold_keeps_the_member_its_reports_and_the_trail(
    trail: RetentionTurn, life: Life
) -> None:
    actor = life.requester()
    person = life.db.ask(lambda tx: get_person(tx, EVERY, life.member_id))
    assert (
        life.api.post(life.path, {"external_id": KEY, "expiry_date": "2026-12-31"}).status_code
        == 200
    )
    with life.db.write() as tx:
        assert place_hold(tx, person, "Case 1", actor)
        assert not place_hold(tx, person, "Case 2", actor)
    with pytest.raises(UnderLegalHold, match="Case 1"):
        life.erase()
    life.clock.advance(12 * YEAR.total_seconds())
    before = life.mentions()
    assert turn_of(life).count()[K.AUDIT] == 0
    counts = run(life)
    assert not {K.ENDED, K.REPORTS, K.INVITATIONS, K.AUDIT} & set(counts)
    copies = {"caught_messages.recipient", "caught_messages.content", "stored_answers.body"}
    assert life.mentions() >= before - copies
    with life.db.write() as tx:
        assert release_hold(tx, person, actor)
        assert not release_hold(tx, person, actor)
    counts = run(life)
    assert (counts[K.ENDED], counts[K.AUDIT]) == (1, 3)
    assert life.mentions() == set()
    found = life.db.ask(lambda tx: list_entries(tx, EVERY, AuditQuery(action="member")))
    assert [entry["action"] for entry in found] == [
        "member.erased",
        "member.released",
        "member.held",
    ]


def test_settings_say_how_long_and_nought_is_for_ever() -> None:
    names = [each.variable for each in SETTINGS if each.variable.startswith("FRONTDESK_KEEP_")]
    forever = read_config(dict.fromkeys(names, "0"))
    assert set(retention_days(forever)) == {K.MAILBOX, K.ANSWERS, K.EVENTS, K.COUNTERS}
    for name in ("HISTORY_YEARS", "AUDIT_YEARS"):
        with pytest.raises(ConfigError, match="at least 6"):
            read_config({f"FRONTDESK_KEEP_{name}": "5"})


def test_two_turns_at_once_do_the_work_once(life: Life) -> None:
    life.desk.undo(life.desk.load(csv_of([row(n) for n in range(100, 400)])))
    life.clock.advance(91 * 86_400)
    turns = [turn_of(life) for _ in range(2)]
    with ThreadPoolExecutor() as threads:
        counts = [*threads.map(lambda turn: turn.run(), turns)]
    assert sum(each.get(K.WITHDRAWN, 0) for each in counts) == 300
    entries = life.db.ask(
        lambda tx: list_entries(tx, EVERY, AuditQuery(action="member.erased"), limit=1000)
    )
    assert len(entries) == len({entry["subject_id"] for entry in entries}) == 300


def test_one_of_all_workers_takes_the_turn_of_a_night(life: Life) -> None:
    old = insert(failed_attempts).values(
        subject_hash=b"x" * 32, failed_at=life.clock() - timedelta(days=3)
    )
    with life.db.write() as tx:
        tx.execute(old)
    workers = [RetentionPruner(life.config, life.db, clock=life.clock) for _ in range(2)]
    assert [worker.step() for worker in workers] == [False, False]
    assert life.desk.count("failed_attempts") == 0
    with life.db.write() as tx:
        tx.execute(old)
    workers[1].step()
    assert life.desk.count("failed_attempts") == 1  # not before the next night
    life.clock.advance(86_400)
    workers[1].step()
    assert life.desk.count("failed_attempts") == 0


def test_the_command_counts_and_does(life: Life, database_url: str) -> None:
    cli = CommandLine(database_url)
    with life.db.write() as tx:
        tx.execute(
            update(members).where(members.c.id == life.member_id).values(expiry_date="2001-01-01")
        )
    counted = {each["kind"]: each for each in cli.json("retention", "--dry-run")}
    assert counted["ended"] == {"kind": "ended", "kept_days": 3660, "count": 1}
    assert erased(life) == set()
    assert "nothing is gone yet" in cli.text("retention", "--dry-run")
    assert {each["kind"]: each["count"] for each in cli.json("retention")}["ended"] == 1
    assert erased(life) == {life.member_id}
