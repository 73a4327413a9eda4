"""What has been kept long enough goes, and nothing else; two workers at once are harmless."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update
from sqlalchemy.exc import DBAPIError

from frontdesk.access.tables import failed_attempts
from frontdesk.audit import AuditEntry, AuditQuery, Requester, entries_after, list_entries, record
from frontdesk.audit.chain import TrailPruning, first_line, sealed
from frontdesk.audit.tables import audit_entries
from frontdesk.config import Config, read_config
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility import find_members
from frontdesk.eligibility.people import find_eligibility
from frontdesk.eligibility.tables import member_history, members
from frontdesk.files.model import WrongState
from frontdesk.invitations.tables import invitations
from frontdesk.privacy.erasure import get_person, place_hold, release_hold
from frontdesk.privacy.model import RetentionKind
from frontdesk.privacy.retention import Counts, RetentionTurn, kept_days
from frontdesk.worker.background import RetentionPruner
from tests.cli.conftest import CommandLine
from tests.conftest import SetClock
from tests.files.loading import csv_of, row
from tests.privacy.conftest import KEY, Life

K = RetentionKind
YEAR = timedelta(days=366)


def turn_of(life: Life, config: Config | None = None) -> RetentionTurn:
    actor = Requester("retention", "retention-1", life.clock())
    return RetentionTurn(life.db, life.clock, kept_days(config or life.config), actor)


def run(life: Life) -> Counts:
    return turn_of(life).run()


def erased(life: Life) -> set[int]:
    table = metadata.tables["erasures"]
    return set(life.db.ask(lambda tx: list(tx.execute(select(table.c.member_id)).scalars())))


def count(db: Database, table: str) -> int:
    return int(
        db.ask(lambda tx: tx.execute(select(func.count()).select_from(metadata.tables[table])).scalar_one())
    )


def test_nothing_goes_that_is_not_old_enough(life: Life) -> None:
    before = list(life.cells())
    assert run(life) == {}
    assert turn_of(life).count() == dict.fromkeys(K, 0)
    assert list(life.cells()) == before


def test_a_member_is_erased_ten_years_after_its_access(life: Life) -> None:
    body = {"external_id": KEY, "expiry_date": "2026-12-31"}
    assert life.api.post(life.path, body).status_code == 200
    life.clock.advance(10 * YEAR.total_seconds())
    assert run(life).get(K.ENDED) is None
    life.clock.advance(60 * 86_400)
    assert turn_of(life).count()[K.ENDED] == 1
    assert run(life)[K.ENDED] == 1
    assert erased(life) == {life.member_id}
    assert life.mentions() == set()  # the reports and addresses were gone long before
    assert run(life).get(K.ENDED) is None


def test_a_withdrawn_member_is_erased_after_ninety_days(life: Life) -> None:
    life.desk.undo(life.desk.load(csv_of([row(30)])))
    [gone] = life.db.ask(lambda tx: find_members(tx, "E00030", None, withdrawn=True))
    life.clock.advance(89 * 86_400)
    assert run(life).get(K.WITHDRAWN) is None
    life.clock.advance(2 * 86_400)
    assert run(life)[K.WITHDRAWN] == 1
    assert erased(life) == {gone["id"]}


def test_old_reports_go_and_their_files_can_not_be_undone(life: Life) -> None:
    file = life.desk.load(csv_of([row(31)]))
    life.clock.advance(401 * 86_400)
    counts = run(life)
    assert counts[K.REPORTS] >= 4
    assert count(life.db, "file_rows") == 0
    assert life.desk.reread(file).counts == file.counts
    with pytest.raises(WrongState, match="too old"):
        life.desk.undo(file)
    assert counts[K.INVITATIONS] == 1
    with life.db.read() as tx:
        assert tx.execute(select(invitations.c.address)).scalars().all() == [""]


def test_the_history_loses_old_values_and_still_tells_the_access(life: Life) -> None:
    with life.db.write() as tx:  # an old entry, since the database looks at its own clock
        tx.execute(
            insert(member_history).values(
                member_id=life.member_id,
                outcome="updated",
                plan_id=life.customer.plan_ids[0],
                changes={"first_name": [None, "Antiquary"], "effective_date": [None, "2014-01-01"]},
                client="c",
                request_id="r",
                changed_at=life.clock() - 11 * YEAR,
            )
        )
        # Ids follow time: the others come after it.
        newest = tx.execute(select(func.max(member_history.c.id))).scalar_one()
    turn = turn_of(life)
    assert "Antiquary" in str([*life.cells()])
    assert newest > 1
    # The window holds newer entries too: only the old one loses its values.
    assert turn.count()[K.HISTORY] == 1
    assert turn.run()[K.HISTORY] == 1
    assert "Antiquary" not in str([*life.cells()])
    assert "Zebediah" in str([*life.cells()])
    assert run(life).get(K.HISTORY) is None
    answer = life.db.ask(lambda tx: find_eligibility(tx, KEY, account_id=None, on="2015-01-01"))
    assert answer.effective_date == "2014-01-01"


def test_young_values_of_the_history_are_kept_by_the_database_itself(life: Life, owner: Database) -> None:
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(update(member_history).values(changes={}))


@pytest.fixture
def trail(db: Database, clock: SetClock, config: Config) -> RetentionTurn:
    """An audit trail of three entries that are eight years old, and three of today."""
    for days in (8 * 366, 0):
        entries = [AuditEntry("plan.changed", "someone", "request", subject_id=n) for n in range(3)]
        with db.write() as tx:
            record(tx, entries, now=clock() - timedelta(days=days))
    return RetentionTurn(db, clock, kept_days(config), Requester("retention", "retention-1", clock()))


def test_the_audit_trail_is_pruned_from_its_beginning_and_its_chain_goes_on(
    trail: RetentionTurn, database_url: str, tmp_path: Path
) -> None:
    cli = CommandLine(database_url)
    whole, part, cut = (str(tmp_path / name) for name in ("whole.jsonl", "part.jsonl", "cut.jsonl"))
    before = cli.json("audit", "export", whole)
    assert trail.count()[K.AUDIT] == 3
    assert trail.run() == {K.AUDIT: 3}
    assert trail.run() == {}
    first, *_ = exported = _export(cli, part)
    assert first["pruned_through"] == 3
    # It names the chain that a file with every entry has there.
    assert first["pruned_chain"] == json.loads(Path(whole).read_bytes().splitlines()[2])["chain"]
    for noted in ([], ["--chain", exported[-1]["chain"], "--entries", str(len(exported) - 1)]):
        verified = cli.json("audit", "verify", part, *noted)
        assert (verified["last_id"], verified["pruned_through"]) == (exported[-1]["id"], 3)
    assert cli.json("audit", "verify", whole)["last_id"] >= before["last_id"]
    Path(cut).write_bytes(b"".join(Path(whole).read_bytes().splitlines(keepends=True)[:2]))
    assert "were pruned since" in cli.refused("audit", "export", cut)
    Path(part).write_bytes(Path(part).read_bytes().replace(b"someone", b"nobody."))
    assert cli.run("audit", "verify", part).exit_code == 1


def test_a_beginning_that_was_cut_off_is_not_taken_for_a_pruning(
    trail: RetentionTurn, database_url: str, tmp_path: Path
) -> None:
    """Every digest is computed anew: the file alone shows nothing, its noted chain does, and so does the database."""
    cli = CommandLine(database_url)
    whole, cut, honest = (tmp_path / name for name in ("whole.jsonl", "cut.jsonl", "honest.jsonl"))
    noted = cli.json("audit", "export", str(whole))
    lines = whole.read_bytes().splitlines(keepends=True)
    through = json.loads(lines[1])
    line, end = first_line(TrailPruning(through["id"], through["chain"]))
    kept = trail.db.ask(lambda tx: entries_after(tx, through["id"], until=trail.clock(), limit=100))
    cut.write_bytes(line + b"".join(made for made, _ in sealed(kept, end)))
    assert "end with this chain" in cli.refused("audit", "verify", str(cut), "--chain", noted["chain"])
    assert "was cut off" in cli.refused("audit", "verify", str(cut))
    assert "was cut off" in cli.refused("audit", "export", str(cut))
    # Nor elsewhere, where no database knows what was pruned.
    nowhere = f"sqlite:///{tmp_path / 'nowhere.db'}"
    assert "Give --chain" in CommandLine(nowhere).refused("audit", "verify", str(cut))
    trail.run()
    last = _export(cli, str(honest))[-1]["chain"]
    assert CommandLine(nowhere).json("audit", "verify", str(honest), "--chain", last)["pruned_through"] == 3
    assert "was cut off" in cli.refused("audit", "verify", str(cut))  # pruned since, but not there
    # The made-up line of before, alone or in the place of the beginning.
    old = json.dumps({"pruned_through": through["id"], "chain": noted["chain"]}) + "\n"
    for text in (old.encode(), old.encode() + b"".join(lines[2:])):
        cut.write_bytes(text)
        assert "Line 1" in cli.refused("audit", "verify", str(cut), "--chain", noted["chain"])
    cut.write_bytes(honest.read_bytes().splitlines(keepends=True)[0])
    chain = json.loads(cut.read_bytes())["chain"]
    assert "nothing to verify" in cli.refused("audit", "verify", str(cut), "--chain", chain)


def test_while_anything_is_held_the_audit_trail_stays(trail: RetentionTurn, life: Life) -> None:
    actor = Requester("cli:counsel", "request-3", life.clock())
    person = life.db.ask(lambda tx: get_person(tx, life.member_id))
    with life.db.write() as tx:
        place_hold(tx, person, "Case 1", actor)
    assert trail.count()[K.AUDIT] == 0
    assert K.AUDIT not in trail.run()
    with life.db.write() as tx:
        release_hold(tx, person, actor)
    assert trail.run()[K.AUDIT] == 3


def _export(cli: CommandLine, path: str) -> list[dict[str, Any]]:
    cli.json("audit", "export", path)
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_the_database_keeps_young_audit_entries_whatever_the_program_does(
    life: Life, owner: Database
) -> None:
    with owner.write() as tx:
        prunings = metadata.tables["audit_prunings"]
        tx.execute(insert(prunings).values(through_id=10**6, chain="", pruned_at=life.clock()))
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(audit_entries.delete())
    with pytest.raises(DBAPIError, match="append-only"), owner.write() as tx:
        tx.execute(prunings.delete())


def test_a_legal_hold_keeps_the_member_its_reports_and_the_audit_trail(life: Life) -> None:
    actor = Requester("cli:counsel", "request-3", life.clock())
    person = life.db.ask(lambda tx: get_person(tx, life.member_id))
    assert life.api.post(life.path, {"external_id": KEY, "expiry_date": "2026-12-31"}).status_code == 200
    with life.db.write() as tx:
        place_hold(tx, person, "Case 1", actor)
    life.clock.advance(12 * YEAR.total_seconds())
    before = life.mentions()
    counts = run(life)
    assert not {K.ENDED, K.REPORTS, K.INVITATIONS, K.AUDIT} & set(counts)
    assert life.mentions() >= before - {"caught_messages.recipient", "caught_messages.content"}
    with life.db.write() as tx:
        release_hold(tx, person, actor)
    assert run(life)[K.ENDED] == 1
    assert life.mentions() == set()


def test_settings_say_how_long_and_nought_is_for_ever(life: Life) -> None:
    names = (
        "REPORTS_DAYS",
        "INVITATIONS_DAYS",
        "WITHDRAWN_DAYS",
        "ENDED_YEARS",
        "HISTORY_YEARS",
        "AUDIT_YEARS",
    )
    forever = read_config({f"FRONTDESK_KEEP_{name}": "0" for name in names})
    assert set(kept_days(forever)) == {K.MAILBOX, K.COUNTERS}
    for name in ("HISTORY_YEARS", "AUDIT_YEARS"):
        with pytest.raises(Exception, match="at least 6"):
            read_config({f"FRONTDESK_KEEP_{name}": "5"})


def test_two_turns_at_once_do_the_work_once(life: Life) -> None:
    life.desk.undo(life.desk.load(csv_of([row(n) for n in range(100, 400)])))
    life.clock.advance(91 * 86_400)
    turns = [turn_of(life) for _ in range(2)]
    with ThreadPoolExecutor() as threads:
        counts = [*threads.map(lambda turn: turn.run(), turns)]
    assert sum(each.get(K.WITHDRAWN, 0) for each in counts) == 300
    entries = life.db.ask(lambda tx: list_entries(tx, AuditQuery(action="member.erased"), limit=1000))
    assert len(entries) == len({entry["subject_id"] for entry in entries}) == 300


def test_one_of_all_workers_takes_the_turn_of_a_night(life: Life) -> None:
    with life.db.write() as tx:
        old = life.clock() - timedelta(days=3)
        tx.execute(insert(failed_attempts).values(subject_hash=b"x" * 32, failed_at=old))
    workers = [RetentionPruner(life.config, life.db, clock=life.clock) for _ in range(2)]
    assert [worker.step() for worker in workers] == [False, False]
    assert count(life.db, "failed_attempts") == 0
    with life.db.write() as tx:
        tx.execute(insert(failed_attempts).values(subject_hash=b"x" * 32, failed_at=old))
    workers[1].step()
    assert count(life.db, "failed_attempts") == 1  # not before the next night
    life.clock.advance(86_400)
    workers[1].step()
    assert count(life.db, "failed_attempts") == 0


def test_the_command_counts_and_does(life: Life, database_url: str) -> None:
    cli = CommandLine(database_url)
    with life.db.write() as tx:
        tx.execute(update(members).where(members.c.id == life.member_id).values(expiry_date="2001-01-01"))
    counted = {each["kind"]: each for each in cli.json("retention", "--dry-run")}
    assert counted["ended"] == {"kind": "ended", "kept_days": 3660, "count": 1}
    assert erased(life) == set()
    assert "nothing is gone yet" in cli.text("retention", "--dry-run")
    assert {each["kind"]: each["count"] for each in cli.json("retention")}["ended"] == 1
    assert erased(life) == {life.member_id}
