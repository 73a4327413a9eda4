"""Provider groups, plans, duties and patients that wait."""

from contextlib import closing
from datetime import timedelta
from typing import Any

from frontdesk.clock import system_clock
from frontdesk.queues.model import EventType, QueueEvent
from frontdesk.text import wire_time
from tests.cli.conftest import CommandLine
from tests.queues.feed import feed


def test_a_created_group_is_printed_in_the_words_of_the_interface(cli: CommandLine) -> None:
    named = ("provider-group", "create", "--external-id", "docs-1", "--name")
    group = cli.json(*named, "Doctors")
    assert list(group) == ["id", "type", "name", "external_id", "created_at", "duty_hours"]
    assert (group["type"], group["external_id"]) == ("provider_groups", "docs-1")
    assert cli.json("provider-group", "list") == [group]
    assert "docs-1" in cli.text("provider-group", "list")
    assert cli.refused(*named, "Others") == "Error: --external-id is already in use.\n"
    assert [entry["action"] for entry in cli.audit_trail()] == ["provider_group.created"]
    assert cli.json("provider-group", "create", "--name", "Nurses")["external_id"] is None


def test_a_group_has_its_own_hours_after_which_a_duty_ends(cli: CommandLine, group: str) -> None:
    assert [one["duty_hours"] for one in cli.json("provider-group", "list")] == [12]
    change = ("provider-group", "set", group, "--duty-hours")
    assert cli.json(*change, "8")["duty_hours"] == 8
    cli.json(*change, "8")
    night = cli.json("provider-group", "create", "--name", "Night", "--duty-hours", "24")
    assert [one["duty_hours"] for one in cli.json("provider-group", "list")] == [8, 24]
    changes = [
        (entry["action"], entry["subject_id"], entry["detail"]) for entry in cli.audit_trail()[-2:]
    ]
    assert changes == [
        ("provider_group.changed", int(group), {"fields": ["duty_hours"]}),
        ("provider_group.created", night["id"], None),
    ]
    for hours in ("0", "73"):
        assert "--duty-hours" in cli.refused(*change, hours, status=2)
    said = cli.refused("provider-group", "set", "77", "--duty-hours", "8")
    assert "frontdesk provider-group list" in said


def test_a_created_plan_is_printed_in_the_words_of_the_interface(
    cli: CommandLine, account: str, group: str
) -> None:
    create = ("plan", "create", "--account", account, "--provider-group", group, "--name", "Gold")
    plan = cli.json(*create, "--external-id", "gold", "--description", "Day and night")
    said = "id type account_id external_id name description active created_at provider_group"
    assert list(plan) == said.split()
    assert (plan["type"], plan["active"], plan["description"]) == ("plans", True, "Day and night")
    assert plan["provider_group"]["id"] == int(group)
    assert cli.json("plan", "list", "--account", account) == [plan]
    assert "Doctors" in cli.text("plan", "list")
    second = cli.json(*create, "--external-id", "silver", "--not-accepting")
    assert second["active"] is False
    said = cli.refused("plan", "set", str(second["id"]), "--external-id", "gold")
    assert said == "Error: --external-id is already in use.\n"


def test_a_shown_plan_has_its_queue_as_it_is_now(cli: CommandLine, group: str, plan: str) -> None:
    nobody = {"estimated_wait_time": -1, "queue_length": 0, "is_active": False}
    assert cli.json("plan", "show", plan)["queue_info"] == nobody
    cli.json("duty", "on", "--provider-group", group, "--doctor", "dr-1")
    cli.json("queue", "join", "--plan", plan, "--patient", "visit-1")
    queue = cli.json("plan", "show", plan)["queue_info"]
    assert (queue["queue_length"], queue["is_active"]) == (1, True)
    assert "queue_length: 1" in cli.text("plan", "show", plan)


def test_setting_changes_what_is_given_and_keeps_the_rest(cli: CommandLine, plan: str) -> None:
    change = ("plan", "set", plan)
    before = cli.json(*change, "--description", "Day and night")
    changed = cli.json(*change, "--name", "Gold 2026", "--not-accepting")
    assert changed == before | {"name": "Gold 2026", "active": False}
    assert cli.json(*change, "--description", "")["description"] is None
    cli.json(*change, "--name", "Gold 2026", "--external-id", "gold-2", "--accepting")
    trail = cli.audit_trail()
    changes = [(entry["action"], entry["detail"]["fields"]) for entry in trail[-2:]]
    assert changes == [
        ("plan.changed", ["description"]),
        ("plan.changed", ["accepting_patients", "external_id"]),
    ]
    cli.json(*change, "--name", "Gold 2026", "--accepting")
    assert cli.audit_trail() == trail
    said = cli.refused(*change, "--name", " ", "--external-id", "x" * 256)
    assert "--name must not be null or blank." in said
    assert "--external-id must have at most 255 characters." in said


def test_unknown_ids_are_told_with_the_list_to_look_in(
    cli: CommandLine, account: str, group: str
) -> None:
    create = ("plan", "create", "--external-id", "gold", "--name", "Gold")
    for ids, place in (("77", group), "account"), ((account, "77"), "provider-group"):
        said = cli.refused(*create, "--account", ids[0], "--provider-group", ids[1])
        assert f"frontdesk {place} list" in said
    for plan_id in ("77", str(2**63 - 1)):
        assert "frontdesk plan list" in cli.refused("plan", "show", plan_id)
    for plan_id in ("0", str(2**63), "9" * 5000, "one"):  # no database holds it
        assert "PLAN_ID" in cli.refused("plan", "show", plan_id, status=2)
    for word in ("on", "off"):
        said = cli.refused("duty", word, "--provider-group", "77", "--doctor", "dr-1")
        assert "frontdesk provider-group list" in said
    for word in ("join", "leave"):
        assert "frontdesk plan list" in cli.refused(
            "queue", word, "--plan", "77", "--patient", "visit-1"
        )


def test_a_pause_is_listed_with_its_end_until_that_is_past(cli: CommandLine, group: str) -> None:
    now = system_clock().replace(microsecond=0)
    until = {"over": now - timedelta(minutes=5), "pauses": now + timedelta(minutes=20)}
    events = []
    for doctor, end in until.items():
        of_doctor: dict[str, Any] = {"provider_group_id": int(group), "doctor": doctor}
        begin = now - timedelta(hours=1)
        paused = EventType.DOCTOR_PAUSED
        events += [
            QueueEvent(f"on-{doctor}", EventType.DOCTOR_ON_DUTY, begin, **of_doctor),
            QueueEvent(f"pause-{doctor}", paused, begin, until=end, **of_doctor),
        ]
    with closing(cli.open()) as db:
        feed(db, *events, now=now)
    over, pauses = cli.json("duty", "list")
    assert over["paused_until"] is None
    assert pauses["paused_until"] == wire_time(until["pauses"])
    assert "paused until" in cli.text("duty", "list")


def test_a_doctor_goes_on_and_off_duty(cli: CommandLine, group: str, plan: str) -> None:
    on, off = (
        ("duty", word, "--provider-group", group, "--doctor", "dr-1") for word in ("on", "off")
    )
    known = {"provider_group_id": int(group), "doctor": "dr-1"}
    assert cli.json(*on) == known | {"on_duty": True, "changed": True}
    assert "is already on duty" in cli.text(*on)
    [listed] = cli.json("duty", "list")
    assert list(listed) == ["provider_group_id", "doctor", "since_at", "paused_until"]
    assert listed["paused_until"] is None
    assert "dr-1" in cli.text("duty", "list")
    assert cli.json(*off) == known | {"on_duty": False, "changed": True}
    assert cli.text("duty", "list") == "No doctor is on duty.\n"
    assert "is already off duty" in cli.text(*off)
    actions = [entry["action"] for entry in cli.audit_trail()][3:]
    assert actions == ["doctor.on_duty", "doctor.off_duty"]
    assert "--doctor must not be blank" in cli.refused(*on[:-1], " ")


def test_a_patient_joins_and_leaves_a_queue(cli: CommandLine, plan: str) -> None:
    join, leave = (
        ("queue", word, "--plan", plan, "--patient", "visit-1") for word in ("join", "leave")
    )
    known = {"plan_id": int(plan), "patient": "visit-1"}
    assert cli.json(*join) == known | {"waiting": True, "changed": True}
    [listed] = cli.json("queue", "list")
    assert list(listed) == ["plan_id", "patient", "joined_at", "class", "priority"]
    assert "waits already" in cli.text(*join)
    assert cli.json("queue", "list") == [listed]
    assert cli.json(*leave) == known | {"waiting": False, "changed": True}
    assert "was not waiting" in cli.text(*leave)
    assert cli.text("queue", "list") == "Nobody is waiting.\n"
    assert [entry["action"] for entry in cli.audit_trail()][3:] == ["queue.joined", "queue.left"]
    again = (*join[:-1], "visit-2")
    assert "now waits" in cli.text(*again)
    assert "waits no longer" in cli.text(*leave[:-1], "visit-2")
    assert "--patient must not be blank" in cli.refused(*join[:-1], "")
