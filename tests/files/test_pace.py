"""A load on SQLite holds the database for a short time while others write, and for longer while nobody does."""

from dataclasses import replace

import pytest

from frontdesk.db import Database, open_database
from frontdesk.db.sqlite import others_wrote
from frontdesk.files import pace
from frontdesk.files.model import ChunkItem, FileStep, RowOutcome
from frontdesk.files.pace import FEWEST_ROWS, FIRST_ROWS, LONGEST_HOLD, MOST_ROWS, SHORTEST_HOLD, ChunkPace
from tests.files.loading import Desk, csv_of, row

REFUSED = RowOutcome.refused(1, None, [])


def test_while_others_write_a_chunk_takes_as_long_as_they_can_wait() -> None:
    chunks = ChunkPace()
    chunks.note(200, 2 * SHORTEST_HOLD, others_wrote=True)
    assert chunks.rows == 100
    chunks.note(100, SHORTEST_HOLD, others_wrote=True)
    assert chunks.rows == 100


def test_chunks_grow_by_and_by_while_nobody_else_writes() -> None:
    chunks, sizes = ChunkPace(), []
    chunks.note(100, SHORTEST_HOLD, others_wrote=True)
    for _ in range(20):
        chunks.note(chunks.rows, chunks.rows * SHORTEST_HOLD / 100, others_wrote=False)
        sizes.append(chunks.rows)
    assert sizes == sorted(sizes)
    assert sizes[0] < 120
    assert sizes[-1] == pytest.approx(100 * LONGEST_HOLD / SHORTEST_HOLD, abs=1)


def test_a_slow_disk_never_stops_a_load_and_a_quick_one_never_makes_a_chunk_huge() -> None:
    chunks = ChunkPace()
    chunks.note(250, 9.0, others_wrote=True)
    assert chunks.rows == FEWEST_ROWS
    for _ in range(20):
        chunks.note(chunks.rows, 9.0, others_wrote=False)
    assert chunks.rows == FIRST_ROWS
    for _ in range(20):
        chunks.note(chunks.rows, 1e-9, others_wrote=False)
    assert chunks.rows == MOST_ROWS


def test_a_chunk_that_writes_nothing_says_nothing_about_the_next_one() -> None:
    chunks = ChunkPace()
    chunks.note(0, 5.0, others_wrote=False)
    assert chunks.rows == FIRST_ROWS


def test_rows_that_are_not_written_do_not_count() -> None:
    rows: list[ChunkItem] = [REFUSED] * 1000
    assert list(ChunkPace().cut(rows for _ in range(2))) == [rows, rows]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("others", "chunks"), [(False, 3), (True, 7)])
def test_a_load_makes_room_for_those_that_write(
    desk: Desk, database_url: str, monkeypatch: pytest.MonkeyPatch, others: bool, chunks: int
) -> None:
    """However fast this machine is: beside others each hold is far too long, and alone far too short. It takes two chunks to
    see them."""
    monkeypatch.setattr(pace, "SHORTEST_HOLD", 0.0)
    monkeypatch.setattr(pace, "LONGEST_HOLD", 1e9)
    other = open_database(database_url)

    def write(step: FileStep, _done: int, _total: int | None) -> None:
        if others and step is FileStep.APPLY:
            with other.write() as tx:
                tx.exec_driver_sql("UPDATE accounts SET name = name || '.'")

    desk.options = replace(desk.options, on_progress=write)
    file = desk.load(csv_of(row(number) for number in range(3 * FIRST_ROWS + 5 * FEWEST_ROWS)))
    assert (file.state, file.counts, file.chunks_done) == ("done", {"created": file.rows_total}, chunks)
    assert len(desk.report(file)) == file.rows_total
    other.close()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_load_can_be_stopped_between_the_pieces_of_a_chunk(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "FIRST_ROWS", 10)
    file = desk.hand_in(csv_of(row(number) for number in range(30)))
    desk.options = replace(desk.options, should_stop=lambda: desk.reread(file).rows_done >= 10)
    stopped = desk.work(file)
    assert (stopped.state, stopped.rows_done) == ("waiting", 10)
    desk.options = replace(desk.options, should_stop=lambda: False)
    assert desk.work(file).counts == {"created": 30}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_a_connection_commits_itself_is_not_what_others_wrote(db: Database, database_url: str) -> None:
    other = open_database(database_url)
    seen = []
    for writer in (db, db, other, db):
        with db.write() as tx:
            seen.append(others_wrote(tx))
        with writer.write() as tx:
            tx.exec_driver_sql("UPDATE installation SET id = id")
    with db.write() as tx:
        seen.append(others_wrote(tx))
    assert seen == [False, False, False, True, False]
    other.close()
