"""A held change file that is approved after newer changes (docs/files.md, Decide about a held file)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from frontdesk.files.load import ChunkWriter
from frontdesk.files.model import ChunkItem, EligibilityFile, WrongState
from frontdesk.worker.background import CoverageDeriver
from tests.conftest import SetClock
from tests.files.loading import Desk, csv_of, row

DAY = 86_400
MANY = 30


def held(desk: Desk, clock: SetClock, rows: Sequence[dict[str, Any]] = ()) -> EligibilityFile:
    """A change file that would move all members of plan 0, held since a second after they came."""
    desk.load(csv_of(row(n) for n in range(MANY)))
    clock.advance(1)
    given = rows or [row(n, zipcode="10001") for n in range(MANY)]
    file = desk.load(csv_of(given), plan=1)
    assert file.problem is not None
    assert (file.state, file.problem["code"]) == ("held", "too_many_moves")
    return file


def zips(desk: Desk) -> dict[str, str]:
    return {key: member["zipcode"] for key, member in desk.members().items()}


def test_rows_of_members_that_were_changed_in_three_days_are_refused_and_the_others_applied(
    desk: Desk, clock: SetClock
) -> None:
    file = held(desk, clock, [*(row(n, zipcode="10001") for n in range(MANY)), row(80)])
    clock.advance(DAY)
    desk.post(external_id="E00001", zipcode="20001")
    clock.advance(DAY)
    newer = desk.load(csv_of([row(2, zipcode="20002"), row(3), row(80, zipcode="20080")]))
    assert newer.counts == {"updated": 1, "unchanged": 1, "created": 1}
    clock.advance(DAY)
    undone = desk.load(csv_of([row(4, zipcode="20004")]))
    desk.undo(undone)
    done = desk.approve(file)
    assert done.counts == {"refused": 4, "moved": MANY - 3}
    refused = [line["external_id"] for line in desk.report(done) if line["code"] == "changed_since"]
    assert refused == ["E00001", "E00002", "E00004", "E00080"]
    found = zips(desk)
    assert [found[key] for key in refused] == ["20001", "20002", "02134", "20080"]
    assert {zipcode for key, zipcode in found.items() if key not in refused} == {"10001"}
    assert desk.load(csv_of([row(1, zipcode="10001")]), plan=1).counts == {"moved": 1}, (
        "a file that was not held"
    )


def test_an_approved_full_file_writes_no_old_values_over_newer_ones(
    desk: Desk, clock: SetClock
) -> None:
    desk.load(csv_of(map(row, range(MANY))))
    clock.advance(1)
    file = desk.load(csv_of(map(row, range(10))), full=True)
    assert file.state == "held"
    clock.advance(DAY)
    desk.post(external_id="E00001", zipcode="20001")
    done = desk.approve(file)
    assert (done.counts["refused"], done.counts["ended"]) == (1, MANY - 10)
    assert zips(desk)["E00001"] == "20001"


def test_what_a_worker_derived_is_no_change_of_others(desk: Desk, clock: SetClock) -> None:
    later = [row(n, effective_date="2026-12-01") for n in range(MANY)]
    first = [row(n, expiry_date="2026-11-25") for n in range(MANY)]
    desk.load(csv_of(first, first[0]))
    again = [each | {"expiry_date": "2027-12-31"} for each in later]
    desk.load(csv_of(again, again[0]))
    ends = [{"external_id": each["external_id"], "expiry_date": "2026-12-10"} for each in later]
    file = desk.load(csv_of(ends, ends[0]))
    assert file.state == "held"
    clock.advance(7 * DAY)
    assert CoverageDeriver(desk.db, clock=clock).derive() == MANY
    assert desk.approve(file).counts == {"updated": MANY, "lost": MANY}


def test_what_an_approved_file_wrote_itself_is_no_change_of_others(
    desk: Desk, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are there twice, and have no digest because of a warning. Between the two a POST
    changes one of the members.
    """
    twice = [row(n, zipcode="10001", email="nothing") for n in range(MANY)]
    desk.options = replace(desk.options, chunk_rows=MANY)
    file = held(desk, clock, [*twice, *twice])
    clock.advance(DAY)
    write = ChunkWriter.write

    def post_before(writer: ChunkWriter, rows: Sequence[ChunkItem]) -> None:
        clock.advance(1)
        if rows[0].place == MANY + 2:
            desk.post(external_id="E00007", zipcode="20007")
            clock.advance(1)
        write(writer, rows)

    monkeypatch.setattr(ChunkWriter, "write", post_before)
    done = desk.approve(file)
    assert (done.counts["moved"], done.counts["unchanged"]) == (MANY, MANY - 1)
    assert (done.counts["refused"], done.codes["changed_since"]) == (1, 1)
    assert zips(desk)["E00007"] == "20007"


def test_an_approved_file_that_a_worker_left_goes_on_with_its_own_members(
    desk: Desk, clock: SetClock
) -> None:
    twice = [row(n, zipcode="10001", email="nothing") for n in range(MANY)]
    running = desk.options
    file = held(desk, clock, [*twice, *twice])
    clock.advance(DAY)
    desk.options = replace(
        running, chunk_rows=MANY, should_stop=lambda: desk.reread(file).rows_done > 0
    )
    assert desk.approve(file).state == "waiting"
    clock.advance(DAY)
    desk.post(external_id="E00007", zipcode="20007")
    desk.options = running
    done = desk.work(file)
    assert (done.counts["moved"], done.counts["unchanged"]) == (MANY, MANY - 1)
    assert [
        line["external_id"] for line in desk.report(done) if line["code"] == "changed_since"
    ] == ["E00007"]


def test_a_full_file_with_a_newer_one_can_only_be_cancelled(desk: Desk, clock: SetClock) -> None:
    desk.load(csv_of(row(n) for n in range(MANY)))
    full = desk.load(csv_of([row(0)]), full=True)
    assert full.state == "held"
    clock.advance(DAY)
    desk.load(csv_of([row(1, zipcode="10001")]))
    with pytest.raises(WrongState, match="newer file"):
        desk.approve(full)


@pytest.mark.parametrize("is_full", [False, True])
def test_a_newer_file_that_has_applied_nothing_overtakes_no_full_file(
    desk: Desk, clock: SetClock, is_full: bool
) -> None:
    desk.load(csv_of(row(n) for n in range(MANY)))
    full = desk.load(csv_of([row(0)]), full=True)
    clock.advance(DAY)
    newer = [row(n, dob="not a day") for n in range(MANY)]
    refused = desk.load(csv_of(newer), full=is_full)
    assert (refused.state, refused.counts.keys() <= {"refused", "kept"}) == ("done", True)
    assert desk.load(b"\x00", full=True).state == "failed"
    desk.load(csv_of([row(1, zipcode="10001")]), dry_run=True)
    done = desk.approve(full)
    assert (done.state, done.counts["ended"]) == ("done", MANY - 1)


def test_a_change_file_that_waits_behind_a_newer_one_is_applied_once_approved(
    desk: Desk, clock: SetClock
) -> None:
    """The newer one lists the same members, and changes none of them."""
    held_change = desk.approve(held(desk, clock), work=False)
    clock.advance(DAY)
    assert desk.load(csv_of([row(n) for n in range(MANY)]), full=True).state == "done"
    done = desk.work(held_change)
    assert done.counts == {"moved": MANY}
