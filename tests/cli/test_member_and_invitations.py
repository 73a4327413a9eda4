from datetime import UTC, datetime
from typing import Any

import pytest

from frontdesk.config import Uniqueness
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.model import Enrolled, Submission
from tests.cli.conftest import CommandLine

NEW = {
    "external_id": "AB 123356",
    "member_id": "M-100200",
    "first_name": "Robin",
    "last_name": "Sample",
    "dob": "1977-01-11T00:00:00Z",
    "gender": "female",
    "email": "robin.sample@example.com",
    "zipcode": "02134",
    "effective_date": "2026-01-01",
    "invite_immediately": True,
    "metadata": {"department": "North"},
}


@pytest.fixture
def plan(cli: CommandLine, plan: str) -> Any:
    """A plan in which Robin Sample was enrolled and then renamed."""
    made = cli.json("plan", "show", plan)
    enrol_one(cli, made, NEW)
    enrol_one(cli, made, {"external_id": "AB 123356", "last_name": "Changed"})
    return made


def enrol_one(cli: CommandLine, plan: Any, body: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    record = parse_member(body, today=now.date().isoformat())
    submission = Submission(plan["account_id"], plan["id"], record, "client-1", "request-1")
    db = cli.open()
    with db.write() as tx:
        [outcome] = enrol(tx, [submission], now=now, uniqueness=Uniqueness.SERVICE)
    db.close()
    assert isinstance(outcome, Enrolled)


def test_a_member_is_shown_with_history(cli: CommandLine, plan: Any) -> None:
    member = cli.json("member", "show", "AB 123356")
    assert member["last_name"] == "Changed"
    assert (member["dob"], member["plan_id"], member["metadata"]) == (
        "1977-01-11",
        plan["id"],
        {"department": "North"},
    )
    assert {"uniqueness_scope", "email_folded"}.isdisjoint(member)
    created, updated = member["history"]
    assert (created["outcome"], updated["outcome"]) == ("created", "updated")
    assert updated["changes"] == {"last_name": ["Sample", "Changed"]}
    assert (updated["client"], updated["request_id"]) == ("client-1", "request-1")


def test_people_read_the_record_and_what_changed(cli: CommandLine, plan: Any) -> None:
    said = cli.text("member", "show", " AB 123356 ", "--account", str(plan["account_id"]))
    assert "robin.sample@example.com" in said
    assert "department: North" in said
    assert "last_name: Sample, Changed" in said


def test_an_unknown_member_and_another_accounts_member_are_told_alike(cli: CommandLine, plan: Any) -> None:
    other = cli.json("account", "create", "--name", "Other Health")
    foreign = cli.refused("member", "show", "AB 123356", "--account", str(other["id"]))
    assert "There is no such eligible member." in foreign
    assert cli.refused("member", "show", "ab 123356") == foreign
    assert "EXTERNAL_ID must not be blank" in cli.refused("member", "show", " ")


def test_reading_a_record_is_audited_and_errors_repeat_no_value(cli: CommandLine, plan: Any) -> None:
    before = cli.audit_trail()
    member = cli.json("member", "show", "AB 123356")
    *earlier, entry = cli.audit_trail()
    assert earlier == before
    assert (entry["action"], entry["account_id"], entry["subject_id"]) == (
        "member.read",
        plan["account_id"],
        member["id"],
    )
    assert "AB 123356" not in str(entry)
    assert "SECRET-77" not in cli.refused("member", "show", "SECRET-77")


def test_invitations_are_listed_with_masked_addresses(cli: CommandLine, plan: Any) -> None:
    [invitation] = cli.json("invitations", "list")
    assert invitation["address_masked"] == "r***@e***.com"
    assert (invitation["state"], invitation["delivery"], invitation["kind"]) == (
        "pending",
        "immediate",
        "enrolment",
    )
    assert (invitation["account_id"], invitation["plan_id"]) == (plan["account_id"], plan["id"])
    for said in (cli.text("invitations", "list"), str(invitation)):
        assert "robin" not in said
        assert "example.com" not in said


def test_invitations_can_be_narrowed(cli: CommandLine, plan: Any) -> None:
    other = cli.json("account", "create", "--name", "Other Health")
    assert cli.json("invitations", "list", "--account", str(other["id"])) == []
    assert len(cli.json("invitations", "list", "--state", "pending", "--limit", "1")) == 1
    assert "no such invitation" in cli.text("invitations", "list", "--account", str(other["id"]))
    assert "frontdesk account list" in cli.refused("invitations", "list", "--account", "77")
    assert "pending" in cli.refused("invitations", "list", "--state", "lost", status=2)


def test_only_member_show_prints_a_persons_data(cli: CommandLine, plan: Any) -> None:
    plan_id = str(plan["id"])
    for words in (
        ("invitations", "list"),
        ("plan", "show", plan_id),
        ("queue", "list"),
        ("client", "list"),
        ("check",),
    ):
        said = cli.text(*words) + str(cli.json(*words))
        assert not any(
            str(value) in said for value in NEW.values() if value not in (True, NEW["effective_date"])
        )
