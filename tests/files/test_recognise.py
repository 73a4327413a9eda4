"""Rows that say what the same member's last row said are recognised before they are parsed, and nothing else differs."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from frontdesk import eligibility
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.eligibility import enrol, find_members, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.eligibility.tables import installation, member_history, members
from frontdesk.files import load
from frontdesk.files.actions import approve_file
from frontdesk.files.load import RowRecogniser
from frontdesk.files.model import FileKey
from frontdesk.formats.model import FileMode
from tests.conftest import SetClock
from tests.factories import close_plan, make_customer
from tests.faults.callers import times
from tests.files.loading import COLUMNS, Desk, csv_of, lines_of, row

FIFTY = [row(n, email=f"r{n}@example.com") for n in range(50)]


@contextmanager
def counting_parsed() -> Iterator[list[object]]:
    """Gathers the identifiers of the rows that are parsed in the block."""
    parsed: list[object] = []

    def parse(values: Any, **options: Any) -> Any:
        if "external_id" in values:  # else the check reads who a new member is
            parsed.append(values["external_id"])
        return parse_member(values, **options)

    with patch.object(eligibility, "parse_member", parse):
        yield parsed


def post(desk: Desk, plan: int = 0, **values: Any) -> None:
    """Write one member as a POST does, at the time at which the files were loaded."""
    record = parse_member(values, today="2026-06-01")
    plan_id = desk.customer.plan_ids[plan]
    submission = Submission(desk.customer.account_id, plan_id, record, "client", "request")
    with desk.db.write() as tx:
        enrol(tx, [submission], now=desk.clock(), uniqueness=Uniqueness.SERVICE)


def history_of(desk: Desk) -> list[tuple[Any, ...]]:
    """Each change of the customer's members, member by member, without the numbers that the database gives."""
    columns = (members.c.external_id, member_history.c.outcome, member_history.c.changes)
    query = select(*columns, member_history.c.changed_at).join_from(member_history, members)
    query = query.where(members.c.account_id == desk.customer.account_id).order_by(
        members.c.external_id, member_history.c.id
    )
    number = {plan: position for position, plan in enumerate(desk.customer.plan_ids)}
    with desk.db.read() as tx:
        return [
            (key, outcome, {**changes, "plan_id": [*map(number.get, changes.get("plan_id", ()))]}, at)
            for key, outcome, changes, at in tx.execute(query)
        ]


def stored_of(desk: Desk) -> list[dict[str, Any]]:
    own = ("id", "account_id", "plan_id", "person_digest", "family_digest")  # digests differ by account
    return [
        {name: value for name, value in found.items() if name not in own}
        | {"plan": desk.customer.plan_ids.index(found["plan_id"])}
        for found in sorted(desk.members().values(), key=lambda found: str(found["external_id"]))
    ]


def quoted(content: bytes) -> bytes:
    """The CSV with each cell in quotation marks."""
    page = io.StringIO(newline="")
    csv.writer(page, quoting=csv.QUOTE_ALL).writerows(csv.reader(io.StringIO(content.decode())))
    return page.getvalue().encode()


@pytest.mark.parametrize("content", [csv_of(FIFTY), lines_of(FIFTY), quoted(csv_of(FIFTY))])
def test_an_unchanged_file_is_not_parsed_and_has_the_same_report(desk: Desk, content: bytes) -> None:
    desk.load(content)
    before = desk.members(), desk.count("member_history"), desk.count("invitations")
    with counting_parsed() as parsed:
        again = desk.load(content)
    assert parsed == []
    assert again.counts == {"unchanged": 50}
    with patch.object(RowRecogniser, "known_digests", return_value={}):
        assert desk.report(again) == desk.report(desk.load(content))
    assert (desk.members(), desk.count("member_history"), desk.count("invitations")) == before


@pytest.mark.parametrize("written", [csv_of, lines_of])
def test_only_what_changed_is_parsed_and_written(
    desk: Desk, written: Callable[[list[dict[str, Any]]], bytes]
) -> None:
    desk.load(written(FIFTY))
    changed = [
        FIFTY[0] | {"last_name": "Changed"}, *FIFTY[1:20], FIFTY[20] | {"last_name": "Changed"}, *FIFTY[21:], row(50),
    ]  # fmt: skip
    with counting_parsed() as parsed:
        file = desk.load(written(changed))
    assert file.counts == {"created": 1, "updated": 2, "unchanged": 48}
    assert parsed == ["E00000", "E00020", "E00050"]
    report = desk.report(file)
    assert [line["external_id"] for line in report] == [each["external_id"] for each in changed]
    assert [line["row"] for line in report] == [*range(report[0]["row"], report[0]["row"] + 51)]
    assert desk.members()["E00000"]["last_name"] == "Changed"
    with counting_parsed() as parsed:
        assert desk.load(written(changed)).counts == {"unchanged": 51}
    assert parsed == []


def test_every_other_write_of_a_member_makes_its_row_count_again(desk: Desk) -> None:
    """The clock stands still, so that no time of a change could tell."""
    content = lines_of([row(1)])
    desk.load(content)
    post(desk, external_id="E00001", last_name="Posted")
    assert desk.load(content).counts == {"updated": 1}
    post(desk, plan=1, external_id="E00001")
    assert desk.load(content).counts == {"moved": 1}
    other = desk.load(lines_of([row(1, last_name="Other")]))
    desk.undo(other)
    desk.undo(desk.load(lines_of([row(1, city="Boston")])))
    with counting_parsed() as parsed:
        assert desk.load(content).counts == {"unchanged": 1}
    assert parsed == ["E00001"]
    first = desk.load(lines_of([row(2)]))
    desk.undo(first)
    assert desk.load(lines_of([row(2)])).counts == {"created": 1}


def test_the_row_of_a_member_that_a_full_file_ended_is_parsed(desk: Desk) -> None:
    desk.load(lines_of([row(1), row(2)]))
    assert desk.load(lines_of([row(1)]), full=True).counts == {"unchanged": 1, "ended": 1}
    assert desk.load(lines_of([row(1), row(2)])).counts == {"unchanged": 2, "warned": 1}


def test_known_rows_count_as_present_in_a_full_file_that_waits_for_approval(desk: Desk) -> None:
    desk.load(lines_of(FIFTY))
    held = desk.load(lines_of(FIFTY[:20]), full=True)
    assert (held.state, held.counts, held.members_missing) == ("held", {"would_end": 30}, 30)
    with desk.db.write() as tx:
        approve_file(tx, FileKey(held.id), desk.requester())
    assert desk.work(held).counts == {"unchanged": 20, "ended": 30}


@pytest.mark.parametrize(
    "values", [{"state": "Nowhere"}, {"dob": "1980-02-03T05:00:00Z"}, {"email": "no address"}]
)
def test_a_row_with_a_warning_is_parsed_each_time_and_warns_each_time(
    desk: Desk, values: dict[str, str]
) -> None:
    content = lines_of([row(1, **values)])
    desk.load(content)
    with counting_parsed() as parsed:
        assert desk.load(content).counts == {"unchanged": 1, "warned": 1}
    assert parsed == ["E00001"]


def test_a_stored_expiry_date_that_the_row_does_not_have_is_warned_of_once_it_is_past(
    desk: Desk, clock: SetClock
) -> None:
    post(desk, **row(1, expiry_date="2026-12-31"))
    for full, counts in ((False, {"unchanged": 1}), (True, {"unchanged": 1})):
        assert desk.load(lines_of([row(1)]), full=full).counts == counts
    clock.advance(400 * 86_400)
    assert desk.load(lines_of([row(1)])).counts == {"unchanged": 1, "warned": 1}


def test_a_member_is_shown_without_the_digest_of_its_row(desk: Desk, db: Database) -> None:
    desk.load(lines_of([row(1)]))
    [found] = db.ask(lambda tx: find_members(tx, "E00001", None))
    assert (found["last_name"], "row_digest" in found) == ("Sample", False)


def test_a_row_of_another_plan_moves_the_member_and_back(desk: Desk) -> None:
    content = lines_of([row(1)])
    for plan, counts in ((0, {"created": 1}), (1, {"moved": 1}), (0, {"moved": 1}), (0, {"unchanged": 1})):
        assert desk.load(content, plan=plan).counts == counts


def test_rows_that_contradict_one_another_are_refused_though_one_is_known(desk: Desk) -> None:
    desk.load(lines_of([row(1), row(2)]))
    file = desk.load(lines_of([row(1), row(1, city="Boston"), row(2), row(2)]))
    assert file.counts == {"refused": 2, "unchanged": 2}


def test_a_file_that_only_compares_parses_every_row(desk: Desk) -> None:
    content = lines_of([row(1)])
    desk.load(content)
    with counting_parsed() as parsed:
        assert desk.load(content, mode=FileMode.COMPARE).counts == {"unchanged": 1}
    assert parsed == ["E00001"]


def test_the_row_of_another_account_is_not_recognised(desk: Desk, db: Database, clock: SetClock) -> None:
    desk.load(lines_of([row(1)]))
    other = Desk(db, make_customer(db, name="Other"), clock)
    assert other.load(lines_of([row(1)])).counts == {"refused": 1}
    assert {line["code"] for line in other.report(other.reread(other.load(lines_of([row(1)]))))} == {
        "not_unique"
    }


def test_digests_of_another_key_or_version_are_not_recognised(desk: Desk, owner: Database) -> None:
    content = lines_of([row(1)])
    desk.load(content)
    with counting_parsed() as parsed, patch.object(load, "ROW_MEANING_VERSION", b"other"):
        desk.load(content)
    assert parsed == ["E00001"]
    desk.load(content)
    with owner.write() as tx:
        kept = tx.execute(select(installation.c.row_digest_key)).scalar_one()
        tx.execute(update(installation).values(row_digest_key="00" * 32))
    with counting_parsed() as parsed:
        desk.load(content)
    assert parsed == ["E00001"]
    with owner.write() as tx:
        tx.execute(update(installation).values(row_digest_key=kept))


def test_a_row_of_a_table_is_recognised_under_the_same_columns_and_mapping_only(desk: Desk) -> None:
    rows = [row(1, city="Boston", county="Suffolk"), row(2)]
    columns = (*COLUMNS, "city", "county")
    desk.load(csv_of(rows, columns))
    swapped = (*COLUMNS, "county", "city")
    same_values = csv_of(rows, swapped)
    other_values = csv_of(rows, columns).replace(b"city,county", b"county,city")
    by_mapping = {"mapping": {"columns": {"city": "county", "county": "city"}}}
    for content, options, counts in (
        (same_values, {}, {"unchanged": 2}),
        (csv_of(rows, columns), by_mapping, {"updated": 1, "unchanged": 1}),
        (csv_of(rows, columns), {}, {"updated": 1, "unchanged": 1}),
        (other_values, {}, {"updated": 1, "unchanged": 1}),
    ):
        with counting_parsed() as parsed:
            assert desk.load(content, **options).counts == counts
        assert parsed == ["E00001", "E00002"]
        with counting_parsed() as parsed:
            assert desk.load(content, **options).counts == {"unchanged": 2}
        assert parsed == []


def test_equal_rows_that_are_written_differently_do_not_contradict_one_another(desk: Desk) -> None:
    desk.load(csv_of([row(1), row(2)]))
    header, first, second = csv_of([row(1), row(2)], (*COLUMNS, "note")).decode().splitlines()
    quoted = ",".join(f'"{cell}"' for cell in first.split(","))
    lines = [header, first, first + "seen", quoted, second, second.replace("Sample", "Other")]
    file = desk.load("\n".join(lines).encode())
    assert file.counts == {"unchanged": 3, "refused": 2}
    assert [(line["row"], line["code"]) for line in desk.report(file) if line["outcome"] == "refused"] == [
        (5, "repeated_differently"),
        (6, "repeated_differently"),
    ]


numbers = st.integers(1, 6)
odd = st.sampled_from(
    [{}, {}, {}, {"state": "Nowhere"}, {"dob": "x"}, {"expiry_date": "2026-02-01"}, {"expiry_date": None},
     {"effective_date": "2027-01-01"}, {"metadata": {"b": "1", "a": "2"}}, {"metadata": {"a": "2", "b": "1"}}]
)  # fmt: skip


def a_row(number: int, last_name: str, member: int, more: dict[str, Any]) -> dict[str, Any]:
    dob = f"1980-02-{number:02d}"  # else they are similar
    return row(number, last_name=last_name, dob=dob, member_id=f"M{member:05d}") | more


contents = st.lists(
    st.builds(a_row, numbers, st.sampled_from(["Zoë", "Sample"]), numbers, odd), min_size=1, max_size=8
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["load", "again", "again", "post", "undo"]),
        contents,
        st.integers(0, 1),
        st.booleans(),
        st.booleans(),
    ),
    min_size=2,
    max_size=6,
)


def written(sent: list[dict[str, Any]]) -> bytes:
    """As CSV, of which rows are recognised before they are read, where cells can say it; else as JSON lines."""
    if all(type(value) is str for values in sent for value in values.values()):
        return csv_of(sent, (*COLUMNS, "state", "expiry_date"))
    return lines_of(sent)


EXAMPLES = times(12, long=400)


def run(db: Database, clock: SetClock, taken: list[Any]) -> tuple[Any, ...]:
    """Take the steps with a new customer; what was told and what is stored then."""
    desk = Desk(db, make_customer(db, name="Known"), clock)
    desk.options = replace(desk.options, chunk_rows=3)
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE members SET uniqueness_scope = -id")  # earlier examples are out of the way
    told: list[Any] = []
    last, content = None, lines_of([row(1)])
    for kind, sent, plan, full, dry_run in taken:
        if kind == "post":
            post(desk, plan, **sent[0])
            continue
        if kind == "undo" and last is not None:
            file, last = desk.undo(last), None
        else:
            content = written(sent) if kind == "load" else content
            file = desk.load(content, plan=plan, full=full, dry_run=dry_run)
            last = None if dry_run else file
            if file.state == "held":
                last = None
        # A warning about a similar member names it by its id.
        report = [
            line | {"hint": re.sub("member [0-9]+", "member", line["hint"])} for line in desk.report(file)
        ]
        told.append((file.state, file.counts, file.members_missing, report))
    return told, stored_of(desk), history_of(desk)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(taken=steps)
def test_files_end_as_they_would_if_every_row_were_parsed(
    db: Database, clock: SetClock, taken: list[Any]
) -> None:
    with patch.object(RowRecogniser, "known_digests", return_value={}):
        expected = run(db, clock, taken)
    assert run(db, clock, taken) == expected


@pytest.mark.parametrize("written", [csv_of, lines_of])
def test_each_row_for_a_plan_that_is_not_active_is_warned_of_in_each_file(
    desk: Desk, written: Callable[[Any], bytes]
) -> None:
    content = written(row(n) for n in range(3))
    assert desk.load(content).counts == {"created": 3}
    close_plan(desk.db, desk.customer.plan_ids[0])
    again = [desk.load(content) for _ in range(2)]
    assert [file.counts for file in again] == [{"unchanged": 3, "warned": 3}] * 2
    line = desk.report(again[1])[1]
    assert (line["outcome"], line["code"], line["field"]) == ("warned", "plan_inactive", "plan")
    assert desk.load(written([row(0)]), full=True, dry_run=True).counts["warned"] == 1, (
        "not of those that end"
    )
