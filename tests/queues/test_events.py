"""Reading one event: what is taken, and every way in which it can be at fault. No database has a say in it."""

import gc
import weakref
from datetime import timedelta
from typing import Any

import pytest

from frontdesk.queues.events import FAULT_CODES, parse_event
from frontdesk.text import wire_time
from tests.factories import NOW
from tests.queues.feed import joined


def faults(sent: object, *, strict: bool = False) -> dict[str, str]:
    reading = parse_event(sent, now=NOW, strict=strict)
    assert (reading.event is None) is bool(reading.faults)
    assert {fault.code for fault in reading.faults} <= set(FAULT_CODES)
    return {fault.field: fault.code for fault in reading.faults}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"id": ...}, {"id": "required"}),
        ({"id": " "}, {"id": "required"}),
        ({"id": 7}, {"id": "wrong_type"}),
        ({"visit": "x" * 256}, {"visit": "too_long"}),
        ({"visit": "a\0b"}, {"visit": "control_character"}),
        ({"visit": "a\nb"}, {"visit": "control_character"}),
        ({"visit": None, "plan_id": None}, {"visit": "required", "plan_id": "required"}),
        ({"type": "patient.died"}, {"type": "not_allowed"}),
        ({"type": []}, {"type": "wrong_type"}),
        ({"plan_id": True}, {"plan_id": "wrong_type"}),
        ({"plan_id": "1"}, {"plan_id": "wrong_type"}),
        ({"plan_id": 2**70}, {"plan_id": "not_found"}),
        ({"plan_id": 0}, {"plan_id": "not_found"}),
        ({"type": "visit.started"}, {"doctor": "required"}),
        ({"type": "doctor.off_duty"}, {"doctor": "required", "provider_group_id": "required"}),
        ({"at": "2026-11-20"}, {"at": "not_a_time"}),
        ({"at": "2026-11-20T12:00:00"}, {"at": "not_a_time"}),
        ({"at": "2026-02-30T12:00:00Z"}, {"at": "not_a_time"}),
        ({"at": "2026-11-20T12:00:00Z\n"}, {"at": "not_a_time"}),
        ({"at": "٢026-11-20T12:00:00Z"}, {"at": "not_a_time"}),
        ({"at": "0001-01-01T00:00:00+23:59"}, {"at": "not_a_time"}),
        ({"at": "2026-11-20T12:05:01Z"}, {"at": "in_the_future"}),
        ({"at": "2026-11-13T11:59:59Z"}, {"at": "too_old"}),
        ({"at": 5}, {"at": "wrong_type"}),
    ],
)
def test_every_fault_is_named(changes: dict[str, Any], found: dict[str, str]) -> None:
    assert faults(joined(**changes)) == found


@pytest.mark.parametrize(
    ("terms", "found"),
    [
        ({}, {}),
        ({"capacity": 3}, {}),
        ({"capacity": 0}, {"capacity": "not_allowed"}),
        ({"capacity": 101}, {"capacity": "not_allowed"}),
        ({"capacity": 1.5}, {"capacity": "wrong_type"}),
        ({"plan_ids": []}, {"plan_ids": "not_allowed"}),
        ({"plan_ids": ["1"]}, {"plan_ids": "wrong_type"}),
        ({"plan_ids": 1}, {"plan_ids": "wrong_type"}),
        ({"plan_ids": [1] * 1001}, {"plan_ids": "not_allowed"}),
        ({"plan_ids": None, "capacity": None}, {}),
    ],
)
def test_the_terms_of_a_doctor_are_read(terms: dict[str, Any], found: dict[str, str]) -> None:
    event = {
        "id": "1",
        "type": "doctor.on_duty",
        "at": wire_time(NOW),
        "doctor": "dr-9",
        "provider_group_id": 1,
    }
    assert faults(event | terms) == found


@pytest.mark.parametrize("minutes", [-5, 5])
def test_a_clock_that_is_five_minutes_off_is_borne(minutes: int) -> None:
    assert faults(joined(at=wire_time(NOW + timedelta(minutes=minutes)))) == {}


@pytest.mark.parametrize(
    "at", ["2026-11-20T13:00:00+01:00", "2026-11-20t12:00:00.000z", "2026-11-20T12:00:00-00:00"]
)
def test_a_time_is_taken_with_any_offset(at: str) -> None:
    event = parse_event(joined(at=at), now=NOW).event
    assert event is not None
    assert event.at == NOW


@pytest.mark.parametrize("sent", [None, 7, "x", [], True])
def test_what_is_no_object_is_no_event(sent: object) -> None:
    assert faults(sent) == {"": "wrong_type"}


def test_references_are_kept_in_one_form() -> None:
    event = parse_event(joined(visit="  Caf\u0065\u0301  "), now=NOW).event
    assert event is not None
    assert event.visit == "Caf\u00e9"


def test_unknown_fields_are_told_and_are_faults_only_when_asked_for() -> None:
    assert parse_event(joined(zone="x"), now=NOW).ignored == ("zone",)
    assert faults(joined(zone="x"), strict=True) == {"zone": "unknown_field"}


def test_known_fields_that_a_type_does_not_use_are_not_kept() -> None:
    event = parse_event(joined(doctor="dr-1", capacity=5), now=NOW).event
    assert event is not None
    assert (event.doctor, event.capacity) == (None, None)


@pytest.mark.parametrize("wrong", [{"at": "yesterday"}, {"at": "2016-02-30T00:00:00Z"}, {"plan_id": 0}])
def test_a_refused_event_is_not_kept_in_memory(wrong: dict[str, Any]) -> None:
    """An error that is made once and raised again keeps the events of every time that it was raised."""

    class Sent(dict[str, object]):
        pass

    sent = Sent(joined(**wrong))
    kept = weakref.ref(sent)
    assert parse_event(sent, now=NOW).faults
    del sent
    gc.collect()
    assert kept() is None
