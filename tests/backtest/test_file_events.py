"""The events that are made of a file, and the shifts that are derived from its visits."""

from frontdesk.backtest.file_events import FileEvents
from frontdesk.backtest.judge import judge_past
from frontdesk.queues.encounters import event_order
from frontdesk.queues.events import MAX_CAPACITY
from tests.backtest.encounters import DAY, HEAD, events_of, left, read, rows_of, seen
from tests.queues.feed import ENDED, JOINED, LEFT, OFF, ON, STARTED


def test_an_encounter_becomes_its_events_and_plans_are_numbered() -> None:
    rows = [seen("a", 0, 1, 5), f"{DAY}09:02:00Z,,,{DAY}09:04:00Z,,Silver\n"]
    events = events_of(HEAD + "".join(rows))
    of_visits = [(event.type, event.plan_id) for event in events if event.visit]
    assert of_visits == [(JOINED, 1), (STARTED, 1), (JOINED, 2), (LEFT, 2), (ENDED, 1)]
    assert {event.plan_ids for event in events if event.type is ON} == {frozenset({1})}


def test_events_come_in_order_and_again_at_each_iteration() -> None:
    rows = [seen(f"dr-{n % 3}", n, n + n % 5, n + 6) for n in range(50)]
    rows += [left(n, n + 2) for n in range(0, 50, 3)]
    events = FileEvents(read(HEAD + "".join(reversed(rows))).rows, since=0.0)
    first = list(events)
    assert len(first) == 3 * 50 + 2 * 17 + 2 * 3
    assert first == sorted(first, key=event_order) == list(events)


def test_patients_that_were_gone_before_the_past_are_left_out() -> None:
    rows = read(HEAD + seen("a", 0, 1, 5) + seen("a", 10, 11, 15) + left(0, 20)).rows
    since = rows.started[1]
    assert {event.visit for event in FileEvents(rows, since) if event.visit} == {"1", "2"}


def shifts(*visits: tuple[str, str]) -> list[tuple[str, str]]:
    text = HEAD + "".join(f",{DAY}{start}:00Z,{DAY}{end}:00Z,,a,p\n" for start, end in visits)
    base = rows_of(read(text))[0].started or 0.0
    events = [event for event in events_of(text) if event.type in (ON, OFF)]
    at = [f"{(event.at - base) / 3600:g}" for event in events]
    return list(zip(at[::2], at[1::2], strict=True))


def test_a_doctor_is_on_duty_while_visits_are_less_than_an_hour_apart() -> None:
    assert shifts(("09:00", "09:30"), ("10:15", "10:30"), ("13:00", "14:00")) == [
        ("0", "1.5"),
        ("4", "5"),
    ]
    # A single visit whose end is cut to the minute of its start keeps no doctor on duty.
    assert shifts(("09:00", "09:00")) == []
    assert shifts(("09:00", "09:30"), ("13:00", "13:00")) == [("0", "0.5")]


def places(rows: list[str]) -> dict[str, int]:
    """By doctor, the capacity."""
    events = events_of(HEAD + "".join(rows))
    return {event.doctor: event.capacity for event in events if event.type is ON}


def test_a_forgotten_end_does_not_raise_a_doctors_usual_visits() -> None:
    chat = [seen("chat", n, n, n + 3) for n in range(50)]
    single = [seen("single", n, n, n + 1) for n in range(1, 40)]
    assert places([*chat, *single, seen("single", 0, 0, 2)]) == {"chat": 3, "single": 1}


def test_ends_that_are_told_late_are_no_second_place_while_patients_wait() -> None:
    """Each fourth visit was told to end three minutes after the doctor's next one had begun."""
    phone = [
        seen("phone", 4 * n, 5 * n + 10, 5 * n + 15 + (3 if n % 4 == 0 else 0)) for n in range(40)
    ]
    assert places(phone) == {"phone": 1}
    chat = [seen("chat", 4 * n, 5 * n + 10, 5 * n + 20) for n in range(40)]
    assert places([*phone, *chat]) == {"phone": 1, "chat": 2}
    # A doctor of few waits has as many places as the others.
    seldom = [seen("seldom", 1, 10, 40), seen("seldom", 35, 38, 60)]
    assert places([*phone, *seldom]) == {"phone": 1, "seldom": 1}
    assert places(seldom) == {"seldom": 2}


def test_a_doctor_has_no_more_places_than_a_live_feed_may_say() -> None:
    """Derived from waits, from those of other doctors, and without any wait."""
    at_once = [seen("quick", n, n, 890) for n in range(600)]
    assert places(at_once) == {"quick": MAX_CAPACITY}
    waited = [seen("long", n, n + 1, 890) for n in range(600)]
    seldom = seen("seldom", 1, 1, 40)
    assert places([*waited, seldom]) == {"long": MAX_CAPACITY, "seldom": MAX_CAPACITY}


def test_a_wait_without_an_end_is_left_out() -> None:
    """Otherwise its patient would stand in the line of all that follow, for a day."""
    rows = [
        f"{DAY}08:00:00Z,,,,,p\n",
        *(seen("a", 10 * n + 1, 10 * n + 1, 10 * n + 6) for n in range(4)),
    ]
    found = judge_past(FileEvents(read(HEAD + "".join(rows)).rows, since=0.0), since=0.0)
    assert found.joined == 4
    assert {one.position for one in found.judged} == {0}
