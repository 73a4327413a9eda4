"""Reading one event: what is taken, and every way in which it can be at fault. No database has a
say in it.
"""

import gc
import weakref
from typing import Any

import pytest

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.queues.events import parse_event
from tests.factories import NOW
from tests.queues.feed import joined

DUTY = {"type": "doctor.on_duty", "doctor": "dr-9", "provider_group_id": 1}
PAUSE = DUTY | {"type": "doctor.paused", "until": "2026-11-20T12:15:00Z"}


def faults(sent: object, *, strict: bool = False) -> dict[str, str]:
    reading = parse_event(sent, now=NOW, strict=strict)
    assert (reading.event is None) is bool(reading.faults)
    assert {fault.code for fault in reading.faults} <= set(codes.of(Where.QUEUE_EVENT))
    return {fault.field: fault.code for fault in reading.faults}


FAULTS: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"id": ..., "visit": "x" * 256}, {"id": "required", "visit": "too_long"}),
    ({"id": " ", "visit": "a\0b"}, {"id": "required", "visit": "control_character"}),
    ({"visit": None, "plan_id": None}, {"visit": "required", "plan_id": "required"}),
    ({"type": "patient.died"}, {"type": "not_allowed"}),
    ({"type": []}, {"type": "wrong_type"}),
    ({"id": 7, "plan_id": True}, {"id": "wrong_type", "plan_id": "wrong_type"}),
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
    ({"at": "2026-11-20T12:05:00Z"}, {}),  # a clock may be five minutes off
    ({"at": "2026-11-20T12:05:01Z"}, {"at": "in_the_future"}),
    ({"at": "2026-11-13T12:00:00Z"}, {}),
    ({"at": "2026-11-13T11:59:59Z"}, {"at": "too_old"}),
    ({"at": 5}, {"at": "wrong_type"}),
    (DUTY | {"capacity": 3, "plan_ids": [1]}, {}),
    (DUTY | {"capacity": None, "plan_ids": None}, {}),
    (
        DUTY | {"capacity": 0, "plan_ids": []},
        {"capacity": "not_allowed", "plan_ids": "not_allowed"},
    ),
    (
        DUTY | {"capacity": 101, "plan_ids": 1},
        {"capacity": "not_allowed", "plan_ids": "wrong_type"},
    ),
    (
        DUTY | {"capacity": 1.5, "plan_ids": ["1"]},
        {"capacity": "wrong_type", "plan_ids": "wrong_type"},
    ),
    (DUTY | {"plan_ids": [1] * 1001}, {"plan_ids": "not_allowed"}),
    ({"class": "follow-up", "priority": -100, "not_before": "2026-12-20T12:00:00Z"}, {}),
    ({"class": "x" * 40, "priority": 100, "not_before": "2020-01-01T00:00:00Z"}, {}),
    ({"class": None, "priority": None, "not_before": None}, {}),
    ({"class": "x" * 41}, {"class": "not_allowed"}),
    ({"class": "Urgent"}, {"class": "not_allowed"}),
    ({"class": "très"}, {"class": "not_allowed"}),
    ({"class": "a b"}, {"class": "not_allowed"}),
    ({"class": "urgent\n"}, {"class": "not_allowed"}),
    ({"class": ""}, {"class": "not_allowed"}),
    ({"class": 7, "priority": "7"}, {"class": "wrong_type", "priority": "wrong_type"}),
    ({"priority": 101}, {"priority": "not_allowed"}),
    ({"priority": -101}, {"priority": "not_allowed"}),
    ({"priority": True}, {"priority": "wrong_type"}),
    ({"not_before": "2026-12-20T12:00:01Z"}, {"not_before": "not_allowed"}),
    ({"not_before": "tomorrow"}, {"not_before": "not_a_time"}),
    (PAUSE, {}),
    (PAUSE | {"until": "2026-11-21T12:00:00Z"}, {}),
    (PAUSE | {"until": "2026-11-21T12:00:01Z"}, {"until": "not_allowed"}),
    (PAUSE | {"until": "2026-11-20T12:00:00Z"}, {"until": "not_allowed"}),
    (PAUSE | {"until": "soon"}, {"until": "not_a_time"}),
    (PAUSE | {"until": ..., "doctor": ...}, {"until": "required", "doctor": "required"}),
    (
        PAUSE | {"at": "x", "until": "2026-11-20T11:00:00Z"},
        {"at": "not_a_time"},
    ),  # of `until` nothing can be said
]


@pytest.mark.parametrize(("changes", "found"), FAULTS)
def test_every_fault_is_named(changes: dict[str, Any], found: dict[str, str]) -> None:
    assert faults(joined(**changes)) == found


@pytest.mark.parametrize(
    ("sent", "name", "kept"),
    [
        ({"at": "2026-11-20T13:00:00+01:00"}, "at", NOW),
        ({"at": "2026-11-20t12:00:00.000z"}, "at", NOW),
        ({"at": "2026-11-20T12:00:00-00:00"}, "at", NOW),
        ({"visit": "  Caf\u0065\u0301  "}, "visit", "Caf\u00e9"),
        ({"doctor": "dr-1"}, "doctor", None),  # this type does not use it
        ({"capacity": 5}, "capacity", None),
        ({"class": "follow-up"}, "patient_class", "follow-up"),
        ({"priority": -3}, "priority", -3),
        ({"not_before": "2026-11-20T13:00:00+01:00"}, "not_before", NOW),
        ({"until": "2026-11-20T13:00:00Z"}, "until", None),
    ],
)
def test_values_that_the_type_uses_are_kept_in_one_form(
    sent: dict[str, Any], name: str, kept: object
) -> None:
    assert getattr(parse_event(joined(**sent), now=NOW).event, name) == kept


def test_unknown_fields_are_faults_only_when_asked_for_and_what_is_no_object_always() -> None:
    assert parse_event(joined(zone="x"), now=NOW).ignored == ("zone",)
    assert faults(joined(zone="x"), strict=True) == {"zone": "unknown_field"}
    no_objects: list[object] = [None, 7, "x", [], True]
    assert [faults(sent) for sent in no_objects] == [{"": "wrong_type"}] * 5


@pytest.mark.parametrize(
    "wrong", [{"at": "yesterday"}, {"at": "2016-02-30T00:00:00Z"}, {"plan_id": 0}]
)
def test_a_refused_event_is_not_kept_in_memory(wrong: dict[str, Any]) -> None:
    """An error that is made once and raised again keeps the events of every time that it was
    raised.
    """

    class Sent(dict[str, object]):
        pass

    sent = Sent(joined(**wrong))
    kept = weakref.ref(sent)
    assert parse_event(sent, now=NOW).faults
    del sent
    gc.collect()
    assert kept() is None
