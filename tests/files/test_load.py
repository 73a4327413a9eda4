"""Loading a file: what each row becomes, and what is stored."""

import threading
from typing import Any

import pytest

from frontdesk.cli.file import summary
from frontdesk.db import Database
from frontdesk.files.model import FileState
from tests.conftest import SetClock
from tests.factories import make_customer
from tests.files.loading import Desk, csv_of, lines_of, row


def test_every_row_of_a_new_file_creates_a_member_and_is_reported(desk: Desk) -> None:
    file = desk.load(csv_of(row(n) for n in range(1200)))
    assert (file.state, file.counts, file.rows_total, file.rows_done) == (
        "done",
        {"created": 1200},
        1200,
        1200,
    )
    assert desk.count("members") == desk.count("member_history") == 1200
    assert desk.outcomes(file) == [(n + 2, "created", "") for n in range(1200)]


def test_the_same_file_twice_changes_nothing_and_invites_nobody(desk: Desk) -> None:
    content = lines_of(row(n, email=f"r{n}@example.com", invite_immediately=True) for n in range(700))
    desk.load(content)
    invited, history = desk.count("invitations"), desk.count("member_history")
    assert desk.load(content).counts == {"unchanged": 700}
    assert (desk.count("invitations"), desk.count("member_history")) == (invited, history) == (700, 700)


def test_a_refused_row_does_not_stop_its_neighbours(desk: Desk) -> None:
    file = desk.load(csv_of([row(1), row(2, gender="x", zipcode="1"), row(3), row(4, member_id="M00001")]))
    assert file.counts == {"created": 2, "refused": 2}
    assert desk.outcomes(file) == [
        (2, "created", ""),
        (3, "refused", "not_allowed"),
        (3, "refused", "malformed_zipcode"),
        (4, "created", ""),
        (5, "refused", "not_unique"),
    ]
    assert set(desk.members()) == {"E00001", "E00003"}


def test_a_malformed_email_costs_only_itself(desk: Desk) -> None:
    desk.load(csv_of([row(1, email="old@example.com")]))
    file = desk.load(csv_of([row(1, email="not an address", last_name="New"), row(2, email="nor this")]))
    assert file.counts == {"updated": 1, "created": 1, "warned": 2}
    assert desk.members()["E00001"]["email"] == "old@example.com"
    assert desk.outcomes(file)[1] == (2, "warned", "email_dropped")
    assert "was applied without it" in desk.report(file)[1]["hint"]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("phone", "12345"),
        ("middle_name", "L" * 101),
        ("state", "M" * 256),
        ("relationship_code_hipaa", "1" * 256),
        ("subscriber_relationship", "spouse"),
        ("medical_enrollment", "maybe"),
        ("metadata", {"": "x"}),
        ("invite_immediately", "perhaps"),
    ],
)
def test_an_optional_value_that_cannot_be_used_costs_only_itself(desk: Desk, field: str, bad: Any) -> None:
    file = desk.load(lines_of([row(1, **{field: bad})]))
    assert desk.outcomes(file) == [(1, "created", ""), (1, "warned", f"{field}_dropped")]
    assert desk.report(file)[1]["field"] == field


@pytest.mark.parametrize(
    ("field", "bad", "hint"),
    [
        ("phone", "+49 30 1234567", "it looks like a number outside North America"),
        ("email", "robin.example.com", "it has no @"),
        ("medical_enrollment", "Y", "it looks like yes or no"),
    ],
)
def test_the_report_says_what_a_dropped_value_looks_like_and_never_the_value(
    desk: Desk, field: str, bad: str, hint: str
) -> None:
    file = desk.load(lines_of([row(1, **{field: bad})]))
    said = desk.report(file)[1]
    assert (said["code"], hint in said["hint"], bad in str(desk.report(file))) == (
        f"{field}_dropped",
        True,
        False,
    )
    assert file.codes == {f"{field}_dropped": 1}


def test_a_dropped_value_leaves_the_stored_one_and_an_end_that_cannot_be_used_is_refused(desk: Desk) -> None:
    desk.load(lines_of([row(1, phone="6175550100")]))
    desk.load(lines_of([row(1, phone="1", last_name="New")]))
    assert (desk.members()["E00001"]["phone"], desk.members()["E00001"]["last_name"]) == ("6175550100", "New")
    assert desk.outcomes(desk.load(lines_of([row(1, expiry_date="soon")]))) == [(1, "refused", "not_a_date")]


def test_identical_repeats_are_one_and_differing_ones_are_both_refused(desk: Desk) -> None:
    rows = [row(1), row(2), row(1), row(2, last_name="Other"), row(3)]
    file = desk.load(csv_of(rows))
    assert file.counts == {"created": 2, "unchanged": 1, "refused": 2}
    assert [line[2] for line in desk.outcomes(file) if line[1] == "refused"] == ["repeated_differently"] * 2
    assert set(desk.members()) == {"E00001", "E00003"}


def test_a_row_under_another_plan_moves_the_member(desk: Desk) -> None:
    desk.load(csv_of([row(1)]))
    assert desk.load(csv_of([row(1)]), plan=1).counts == {"moved": 1}


@pytest.mark.parametrize(
    "content", [b" \n", b"external_id,dob\n", b"name,dob\nRobin,1980-01-01\n", b"\x1f\x8bnonsense"]
)
def test_a_file_that_cannot_be_read_applies_nothing_and_says_where(desk: Desk, content: bytes) -> None:
    file = desk.load(content)
    assert file.state == FileState.FAILED
    assert file.problem is not None
    assert desk.count("members") == desk.count("file_rows") == 0


def test_a_fault_late_in_a_file_is_found_before_anything_is_applied(desk: Desk) -> None:
    content = csv_of(row(n) for n in range(3000)) + b"\xff\xfe,,,,,,,,\n"
    file = desk.load(content)
    assert (file.state, desk.count("members")) == ("failed", 0)


def test_the_history_of_a_member_names_the_file_and_the_audit_trail_has_the_file_once(desk: Desk) -> None:
    file = desk.load(csv_of(row(n) for n in range(3)))
    with desk.db.read() as tx:
        keys = tx.exec_driver_sql("SELECT DISTINCT file_id, request_id, client FROM member_history").all()
        actions = tx.exec_driver_sql("SELECT action FROM audit_entries ORDER BY id").scalars().all()
    assert [tuple(key) for key in keys] == [(file.id, "request-1", "client-1")]
    assert actions == ["file.received", "file.done"]


def test_the_content_is_gone_when_the_file_is_done(desk: Desk) -> None:
    desk.load(csv_of([row(1)]))
    assert desk.count("file_parts") == 0


def test_two_accounts_that_load_the_same_identifiers_at_once_get_each_of_them_once(
    desk: Desk, db: Database, clock: SetClock
) -> None:
    """Large chunks race on the unique keys: who comes second is told so, row by row, and no neighbour is lost."""
    other = Desk(db, make_customer(db, name="Other"), clock)
    ours = desk.hand_in(csv_of(row(n) for n in range(400)))
    theirs = other.hand_in(csv_of(row(n) for n in range(399, 0, -1)))
    workers = [threading.Thread(target=desk.work_on_any) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts = [desk.reread(file).counts for file in (ours, theirs)]
    assert sum(count.get("created", 0) for count in counts) == 400
    assert sum(count.get("refused", 0) for count in counts) == 399
    assert desk.count("members") == desk.count("member_history") == 400


def test_keys_that_change_hands_within_one_large_chunk_are_written(desk: Desk) -> None:
    """One statement can't do it, since a key is taken before it is given up; then it goes row by row."""
    desk.load(csv_of(row(n) for n in range(400)))
    rows = [row(0, member_id="FREE"), *(row(n, member_id=f"M{n - 1:05d}") for n in range(1, 400))]
    file = desk.load(csv_of(rows))
    assert file.counts == {"updated": 400}
    assert {key: member["member_id"] for key, member in desk.members().items()} == {
        found["external_id"]: found["member_id"] for found in rows
    }


def test_a_chunk_of_many_changes_writes_whatever_changes_in_any_of_its_records(desk: Desk) -> None:
    """Only the columns that change are written then; each record here changes another one."""
    names = ("last_name", "member_id", "email", "metadata", "expiry_date", "city")
    old = [row(n, email=f"old{n}@example.com", metadata={"a": "1"}) for n in range(150)]
    new = {
        "last_name": "New",
        "member_id": "N{}",
        "email": "New{}@example.com",
        "expiry_date": "2027-01-01",
        "city": "X",
    }
    desk.load(lines_of(old))
    sent = [
        was | {name: {"b": "2"} if name == "metadata" else new[name].format(n)}
        for n, (was, name) in enumerate(zip(old, names * 25, strict=True))
    ]
    assert desk.approve(desk.load(lines_of(sent), plan=1)).counts == {"moved": 150}
    stored = desk.members()
    for wanted in sent:
        found = stored[wanted["external_id"]]
        assert {name: found[name] for name in wanted if name != "metadata"} == {
            name: wanted[name] for name in wanted if name != "metadata"
        }
        assert found["email_folded"] == wanted["email"].lower()
        assert found["plan_id"] == desk.customer.plan_ids[1]
    assert desk.load(lines_of(sent), plan=1).counts == {"unchanged": 150}


def test_a_row_that_the_reader_refuses_is_told_once_why(desk: Desk) -> None:
    file = desk.load(b'{"external_id": "E1",\n[]\n' + lines_of([row(1)]))
    assert desk.outcomes(file) == [(1, "refused", "not_json"), (2, "refused", "not_json"), (3, "created", "")]


def test_keys_of_json_lines_that_are_no_field_are_named(desk: Desk) -> None:
    file = desk.load(lines_of([row(1, zip_code="1"), row(2, zip_code="2", E_Mail="x")]))
    assert (file.counts, file.ignored) == ({"created": 2}, ["zip_code", "E_Mail"])


def test_a_file_that_was_stopped_says_how_it_goes_on(desk: Desk) -> None:
    file = desk.hand_in(csv_of([row(1)]))
    assert f"frontdesk file resume {file.id}" in " ".join(summary(file))
