"""The back-test: what a known past gives, and that it knows what the service knows, neither more
nor less.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from frontdesk.backtest.figures import by_hour, by_plan, by_position, figures_of
from frontdesk.backtest.judge import RIVALS, run_backtest
from frontdesk.backtest.line import Waits, line_of
from frontdesk.backtest.replay import QueueReplay
from frontdesk.db import Database
from frontdesk.queues.encounters import event_order
from frontdesk.queues.estimate.model import DoctorPool
from frontdesk.queues.estimate.record import EstimateBasis, WaitEstimate
from frontdesk.queues.model import EventType, ReplayEvent
from frontdesk.queues.store.events import list_history
from frontdesk.queues.store.pools import select_pools
from tests.factories import NOW
from tests.faults.callers import times
from tests.queues.feed import (
    ENDED,
    HAPPENINGS,
    JOINED,
    LEFT,
    OFF,
    ON,
    PAUSED,
    STARTED,
    event,
    events_for,
    feed,
    make_clinic,
)

HOUR = 3600.0


def on(at: float, doctor: str = "a") -> ReplayEvent:
    return ReplayEvent(at, ON, doctor=doctor, known_at=at)


def stay(
    visit: str, joined: float, started: float, ended: float, doctor: str = "a", *, late: float = 0.0
) -> list[ReplayEvent]:
    times = ((JOINED, joined), (STARTED, started), (ENDED, ended))
    return [ReplayEvent(at, type_, 1, visit, doctor, known_at=at + late) for type_, at in times]


def gone(visit: str, joined: float, left: float) -> list[ReplayEvent]:
    return [
        ReplayEvent(at, type_, 1, visit, known_at=at)
        for type_, at in ((JOINED, joined), (LEFT, left))
    ]


def test_a_known_past_gives_known_figures() -> None:
    """Both estimates are 0, since a doctor is idle: the first patient is taken at once, the second
    waits 90 s.
    """
    told: list[tuple[int, int]] = []
    events = [on(0), *stay("1", 100, 100, 700), *stay("2", 4000, 4090, 5000)]
    found = run_backtest(events, since=0.0, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    figures = figures_of(found.judged)
    ours = figures.accuracy
    rivals = figures.rivals
    assert (ours.matched, ours.mean_wait_seconds) == (2, 45)
    assert (ours.mean_error_seconds, ours.bias_seconds) == (45, -45)
    assert (ours.wrong_zero_share, ours.coverage_share) == (0.5, None)
    assert (figures.below_share, figures.above_share) == (None, None)
    assert [list(rivals), *(list(one.rivals) for one in found.judged)] == [list(RIVALS)] * 3
    # The position formula says 900, the default, then 600, the length of the first patient's visit.
    assert rivals["AHT x position"].mean_error_seconds == (900 + 510) / 2
    assert rivals["AHT x position"].bias_seconds == (900 + 510) / 2
    assert rivals["AHT x position, idle seen"].mean_error_seconds == 45
    assert rivals["last wait"].wrong_zero_share == 0.5
    assert figures.best_rival.accuracy.mean_error_seconds == 45
    assert figures.best_rival.further_seconds == 0


def test_figures_do_not_depend_on_the_order_of_the_events() -> None:
    other = [one._replace(plan_id=2) for one in stay("3", 2 * HOUR, 2 * HOUR, 2 * HOUR + 60)]
    events = [
        on(0),
        *stay("1", 100, 100, 900),
        *stay("2", 300, 900, 950),
        *stay("4", 400, 950, 990),
        *other,
    ]
    judged = run_backtest(Random(7).sample(events, len(events)), since=0.0).judged
    assert list(judged) == list(run_backtest(events, since=0.0).judged)
    found = [
        {key: one.accuracy.matched for key, one in by(judged).items()}
        for by in (by_plan, by_hour, by_position)
    ]
    assert found == [{1: 3, 2: 1}, {0: 3, 2: 1}, {0: 2, 1: 1, 2: 1}]


FIRST = stay("1", 100, 100, 2000)
SECOND = stay("2", 350, 2000, 2100)
OFF_AND_ON = [ReplayEvent(300, OFF, doctor="a", known_at=300), on(300)]
LATER = 100 + 25 * HOUR
# The past, without its first shift; since when it is judged; and what is found of each patient that
# is judged.
PASTS: dict[str, tuple[list[ReplayEvent], float, dict[str, Any]]] = {
    "who left or came before any doctor has no wait to compare": (
        [*gone("left", -50, -10), *stay("early", -90, -60, -55, "b"), *stay("1", 60, 60, 80)], -HOUR,
        {"left": 1, "unattended": 1, "positions": [0]}),
    "patients before are the past, whose visit counts and not the default": (
        [*stay("1", 100, 100, 400), *stay("2", 5000, 5300, 5900)], 4000,
        {"waits": [300], "by position": [300]}),
    "an event counts from when it was told": ([*FIRST, *SECOND], 0, {"busy": [False, True]}),
    "a doctor whose visit is told late looks idle": (
        [*stay("1", 100, 100, 2000, late=300), *SECOND], 0, {"busy": [False, False]}),
    "a past that was loaded later was known in time": (
        [*stay("1", 100, 100, 2000, late=9 * HOUR), *SECOND], 0, {"busy": [False, True]}),
    "an end that came before its start leaves no visit behind": (
        [FIRST[0], FIRST[1]._replace(known_at=3000.0), FIRST[2], *stay("2", 4000, 4000, 4100)], 3500,
        {"busy": [False]}),
    "who leaves in the second of joining stands in no line": (
        [*stay("1", 50, 50, 500), *(one for n in range(9) for one in gone(f"{n} gone", 100 + n, 100 + n)),
         *stay("2", 400, 500, 700)], 0, {"left": 9, "positions": [0, 1], "by position": [900, 900]}),
    "a visit of less than a minute is over where times are whole minutes": (
        [*stay("1", 60, 60, 60), *stay("2", 600, 600, 660), *stay("3", 600, 660, 720)], 0,
        {"busy": [False, False, True]}),
    "of those who join in one minute each knows of the ones before": (
        [*stay("0", 60, 60, 600), *(one for n in "123" for one in stay(n, 120, 1000, 1000))], 100,
        {"positions": [1, 2, 3], "by position": [900, 1800, 2700]}),
    "a patient that is never seen counts for no estimator after a day": (
        [*gone("lost", 100, 0)[:1], *stay("1", 200, 200, 260), *stay("2", LATER, LATER + 60, LATER + 90)], 0,
        {"positions": [2, 0]}),
    "a visit whose end was forgotten keeps the doctor busy for no estimator": (
        [*FIRST[:2], *stay("2", 5 * HOUR, 5 * HOUR, 5 * HOUR + 60)], HOUR,
        {"busy": [False], "idle seen": [0]}),
    "a doctor whose shift follows another is still with the patient": (
        [*FIRST, *OFF_AND_ON, *SECOND], 200, {"busy": [True]}),
}  # fmt: skip


@pytest.mark.parametrize("case", PASTS)
def test_what_is_known_of_a_past(case: str) -> None:
    events, since, expected = PASTS[case]
    report = run_backtest([on(0), *events], since=since)
    found = {
        "left": report.left,
        "unattended": report.unattended,
        "waits": [one.wait_seconds for one in report.judged],
        "busy": [one.estimate.seconds > 0 for one in report.judged],
        "positions": [one.position for one in report.judged],
        "by position": [one.rivals["AHT x position"] for one in report.judged],
        "idle seen": [one.rivals["AHT x position, idle seen"] for one in report.judged],
    }
    assert {name: found[name] for name in expected} == expected


def _sorted(pool: DoctorPool) -> DoctorPool:
    return replace(
        pool,
        doctors=sorted(pool.doctors, key=lambda doctor: doctor.name or ""),
        past=sorted(pool.past, key=repr),
        past_waits=sorted(pool.past_waits, key=repr),
        duty=sorted(pool.duty),
        resumed=sorted(pool.resumed),
    )


def _patients(pool: DoctorPool) -> list[tuple[Any, ...]]:
    """The line without the order of those who joined at the same instant."""
    unknown = [None] * len(pool.waiting)
    classes = pool.classes or unknown
    priorities = pool.priorities or unknown
    return sorted(zip(pool.waited, pool.waiting, classes, priorities, strict=True), key=repr)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_replay_knows_what_the_service_reads_from_its_tables(db: Database) -> None:
    """Doctors of some plans, of two at a time, handed-over visits, leaving, a move to another plan,
    a shift that ended; classes, priorities, bookings and pauses.
    """
    clinic = make_clinic(db)
    group = clinic.group_id
    first, second = clinic.plan_ids
    visits = [
        (JOINED, 10, first, "seen", None), (STARTED, 40, first, "seen", "a"),
        (JOINED, 50, second, "moves", None), (JOINED, 60, first, "moves", None),
        (JOINED, 70, second, "goes", None), (STARTED, 80, first, "handed over", "a"),
        (STARTED, 90, first, "handed over", "b"), (LEFT, 95, first, "goes", None),
        (LEFT, 100, second, "goes", None), (ENDED, 200, first, "seen", None),
        (JOINED, 220, second, "waits", None), (JOINED, 230, second, "waits", None),
        (ENDED, 240, first, "never started", None), (STARTED, 250, first, "seen early", "e"),
        (LEFT, 255, first, "cancelled", None),
    ]  # fmt: skip
    of_patients: list[tuple[str, EventType, float, dict[str, Any]]] = [
        ("urgent", JOINED, 15, {"patient_class": "urgent", "priority": 5}),
        ("urgent", STARTED, 85, {"doctor": "b"}),
        ("urgent", ENDED, 190, {}),
        ("waits new", JOINED, 225, {"patient_class": "new"}),
        ("waits last", JOINED, 226, {"priority": -1}),
        ("waits last", JOINED, 228, {"priority": -2}),
        ("seen early", JOINED, 20, {"patient_class": "new", "not_before": at(260)}),
        ("cancelled", JOINED, 21, {"not_before": at(260)}),
        ("booked", JOINED, 22, {"not_before": at(301)}),
        ("booked and there", JOINED, 23, {"not_before": at(222)}),
        ("moved", JOINED, 24, {"not_before": at(301)}),
        ("moved", JOINED, 25, {"not_before": at(229), "patient_class": "new"}),
        ("moved out of the line", JOINED, 26, {}),
        ("moved out of the line", JOINED, 231, {"not_before": at(301)}),
        ("back in the line", JOINED, 27, {"priority": 1}),
        ("back in the line", JOINED, 232, {"not_before": at(260), "priority": 3}),
    ]  # fmt: skip
    pauses = [
        ("a", 100, 500), ("d", 110, 150), ("d", 160, 250), ("d", 170, 240), ("e", 180, 400),
        ("f", 190, 310), ("g", 200, 220), ("h", 205, 1000), ("h", 205, 380),
    ]  # fmt: skip
    told = [
        event("on a", ON, 0, provider_group_id=group, doctor="a"),
        event("on b", ON, 0, provider_group_id=group, doctor="b", plan_ids=(first,), capacity=2),
        *(event(f"on {name}", ON, 0, provider_group_id=group, doctor=name) for name in "cdefgh"),
        event("off g", OFF, 210, provider_group_id=group, doctor="g"),
        event("f again", ON, 230, provider_group_id=group, doctor="f"),
        *(
            event(
                f"pause {end}", PAUSED, begin, provider_group_id=group, doctor=name, until=at(end)
            )
            for name, begin, end in pauses
        ),
        *(
            event(f"{type_} {second}", type_, second, plan_id=first, visit=name, **fields)
            for name, type_, second, fields in of_patients
        ),
        event("off c", OFF, 210, provider_group_id=group, doctor="c"),
        *(
            event(f"{second}", type_, second, plan_id=plan, visit=name, doctor=by)
            for type_, second, plan, name, by in visits
        ),
    ]
    feed(db, *told)
    now = NOW + timedelta(seconds=300)
    replay = QueueReplay()
    with db.read() as tx:
        pool = select_pools(tx, [group], now)[group]
        stored = list(list_history(tx, NOW))
    assert len(stored) == len(told)
    for one in sorted(stored, key=event_order):
        assert one.known_at == pytest.approx(NOW.timestamp())
        replay.apply(one)
    assert _sorted(replay.pool(now.timestamp())) == _sorted(pool)
    assert [doctor.paused_seconds for doctor in pool.doctors if doctor.paused_seconds] == [200, 700]
    assert sorted(pool.resumed) == [("d", 60.0), ("d", 150.0), ("e", 50.0), ("f", 70.0)]
    assert list(pool.priorities) == [0, 0, 0, 0, -2, 0, 3]
    assert list(pool.classes) == [None, None, None, "new", None, "new", None]

    later = now + timedelta(hours=4) - timedelta(seconds=135)  # the pauses since 165
    with db.read() as tx:
        resumed = select_pools(tx, [group], later)[group].resumed
    assert sorted(replay.pool(later.timestamp()).resumed) == sorted(resumed)
    assert {doctor for doctor, _ in resumed} == {"d", "e", "f", "h"}


def test_old_waits_and_visits_without_an_end_are_not_looked_through_again() -> None:
    """Of a thousand, those of the last 24 and 4 hours. The others still end like any other."""
    replay = QueueReplay()
    replay.apply(on(0))
    for number in range(500):
        at = 600.0 * number
        replay.apply(ReplayEvent(at, JOINED, 1, f"waits {number}"))
        replay.apply(ReplayEvent(at, STARTED, 1, f"seen {number}", "a"))
        pool = replay.pool(at + 1)
        assert len(pool.waiting) == min(number + 1, 24 * 6)
        assert len(replay.present) <= 2 * (24 + 4) * 6 + 1
    now = 500 * 600.0
    replay.apply(ReplayEvent(now, ENDED, 1, "seen 0"))
    replay.apply(ReplayEvent(now, STARTED, 1, "waits 1", "a"))
    pool = replay.pool(now + 1)
    assert [(visit.seconds, visit.doctor) for visit in pool.past] == [(now, "a")]
    assert (replay.last_waits, pool.doctors[0].visits[0].elapsed_seconds) == ({1: now - 600}, 1)


def test_a_replay_knows_bookings_that_are_older_than_the_events_it_reads(db: Database) -> None:
    clinic = make_clinic(db)
    other = make_clinic(db, "Other")
    plan = clinic.plan_ids[0]
    day = 86_400
    told = [
        event("long ago", JOINED, -12 * day, plan_id=plan, visit="seen", not_before=at(-3600)),
        event("start", STARTED, -1800, plan_id=plan, visit="seen", doctor="a"),
        event("booked", JOINED, -12 * day, plan_id=plan, visit="cancelled", not_before=at(-3600)),
        event("cancel", LEFT, -9 * day, plan_id=plan, visit="cancelled"),
        event("past", JOINED, -12 * day, plan_id=plan, visit="over", not_before=at(-11 * day)),
        event("other", JOINED, -12 * day, plan_id=other.plan_ids[0], visit="seen"),
    ]
    feed(db, *told)
    with db.read() as tx:
        stored = sorted(list_history(tx, at(-8 * day)), key=event_order)
        [wait] = select_pools(tx, [clinic.group_id], NOW)[clinic.group_id].past_waits
    assert sorted(one.id for one in stored) == ["booked", "cancel", "long ago", "start"]
    replay = QueueReplay()
    for one in stored:
        replay.apply(one)
    pool = replay.pool(NOW.timestamp())
    assert (pool.past_waits, pool.waiting, wait.seconds) == ([wait], [], 1800.0)


def test_an_estimate_is_compared_with_no_later_wait() -> None:
    """The first wait ends without a visit; nobody asks about the second."""
    replay = QueueReplay()
    replay.apply(on(0))
    replay.apply(ReplayEvent(100, JOINED, 1, "v"))
    replay.note_estimate("v", WaitEstimate(60, 30, 90, EstimateBasis(1, 60.0)))
    replay.apply(ReplayEvent(200, ENDED, 1, "v"))
    replay.apply(ReplayEvent(300, JOINED, 1, "v"))
    replay.apply(ReplayEvent(400, STARTED, 1, "v", "a"))
    assert (replay.last_waits, replay.records) == ({1: 100}, {})


def test_pauses_and_duties_that_no_longer_count_are_forgotten() -> None:
    """A thousand doctors who come back unreported, and one that comes on duty each minute."""
    replay = QueueReplay()
    for minute in range(1000):
        at = 60.0 * minute
        replay.apply(on(at))
        replay.apply(ReplayEvent(at, PAUSED, doctor=f"dr-{minute}", until=at + 30))
        assert len(replay.pool(at + 31).resumed) == min(minute + 1, 240)
    assert len(replay.pauses) == 240
    assert len(replay.staff["a"].on_at) == 1 + 241
    now = 1000 * 60.0
    replay.apply(ReplayEvent(now, OFF, doctor="a"))
    [span] = replay.pool(now).duty
    assert span == ("a", now, 0)


def test_a_visit_before_a_pause_ends_it_not_though_it_is_told_later() -> None:
    replay = QueueReplay()
    replay.apply(on(0))
    replay.apply(ReplayEvent(100, PAUSED, doctor="a", until=400))
    replay.apply(ReplayEvent(90, STARTED, 1, "v", "a", known_at=110))
    [doctor] = replay.pool(200).doctors
    assert (doctor.paused_seconds, replay.pool(200).resumed) == (200, [])
    replay.apply(ReplayEvent(250, STARTED, 1, "w", "a"))
    [doctor] = replay.pool(300).doctors
    assert (doctor.paused_seconds, replay.pool(300).resumed) == (0, [("a", 50)])


def test_a_replay_counts_whom_the_service_counts_whatever_happens_in_one_second(
    db: Database,
) -> None:
    numbers = count()

    @settings(
        max_examples=times(25, long=1000), deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(HAPPENINGS)
    def check(happenings: list[Any]) -> None:
        clinic = make_clinic(db, f"Clinic {next(numbers)}")
        feed(db, *events_for(clinic, happenings, 0))
        now = NOW + timedelta(seconds=10)
        with db.read() as tx:
            pool = select_pools(tx, [clinic.group_id], now)[clinic.group_id]
            stored = [one for one in list_history(tx, NOW) if one.group == clinic.group_id]
        replay = QueueReplay()
        ordered = sorted(stored, key=event_order)
        for one in line_of(ordered, 0.0, Waits(ordered, 0.0)):
            if isinstance(one, ReplayEvent):
                replay.apply(one)
        replayed = _sorted(replay.pool(now.timestamp()))
        pool = _sorted(pool)
        assert replayed.doctors == pool.doctors
        assert replayed.resumed == pool.resumed
        assert _patients(replayed) == _patients(pool)

    check()
