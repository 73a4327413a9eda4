"""The back-test: what a known past gives, and that it knows what the service knows, neither more nor less."""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from frontdesk.db import Database
from frontdesk.queues.backtest.judge import (
    RIVALS,
    by_hour,
    by_plan,
    by_position,
    figures_of,
    line_of,
    run_backtest,
)
from frontdesk.queues.backtest.replay import QueueReplay, ReplayEvent
from frontdesk.queues.estimate.model import DoctorPool
from frontdesk.queues.model import QueueRules
from frontdesk.queues.store.events import list_history
from frontdesk.queues.store.pools import select_pools
from tests.factories import NOW
from tests.faults.callers import LONG
from tests.queues.feed import (
    ENDED,
    HAPPENINGS,
    JOINED,
    LEFT,
    OFF,
    ON,
    STARTED,
    event,
    events_for,
    feed,
    make_clinic,
)

RULES = QueueRules(default_visit_seconds=600.0)
HOUR = 3600.0


def on(at: float, doctor: str = "a") -> ReplayEvent:
    return ReplayEvent(at, ON, doctor=doctor, known_at=at)


def stay(
    visit: str, joined: float, started: float, ended: float, doctor: str = "a", *, late: float = 0.0
) -> list[ReplayEvent]:
    times = ((JOINED, joined), (STARTED, started), (ENDED, ended))
    return [ReplayEvent(at, type_, 1, visit, doctor, known_at=at + late) for type_, at in times]


def gone(visit: str, joined: float, left: float) -> list[ReplayEvent]:
    return [ReplayEvent(at, type_, 1, visit, known_at=at) for type_, at in ((JOINED, joined), (LEFT, left))]


def test_a_known_past_gives_known_figures() -> None:
    """Both estimates are 0, since a doctor is idle: the first patient is taken at once, the second waits 90 s."""
    told: list[tuple[int, int]] = []
    events = [on(0), *stay("1", 100, 100, 700), *stay("2", 4000, 4090, 5000)]
    found = run_backtest(
        events, since=0.0, rules=RULES, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 2), (2, 2)]
    figures = figures_of(found.judged)
    ours, rivals = figures.accuracy, figures.rivals
    assert (ours.matched, ours.mean_wait_seconds, ours.mean_error_seconds, ours.bias_seconds) == (
        2,
        45,
        45,
        -45,
    )
    assert (ours.wrong_zero_share, ours.coverage_share) == (0.5, None)
    assert (figures.below_share, figures.above_share) == (None, None)
    assert [list(rivals), *(list(one.rivals) for one in found.judged)] == [list(RIVALS)] * 3
    # A visit of 600 s is the default and the first patient's: the position formula says 600 twice.
    assert rivals["AHT x position"].mean_error_seconds == (600 + 510) / 2
    assert rivals["AHT x position"].bias_seconds == (600 + 510) / 2
    assert rivals["AHT x position, idle seen"].mean_error_seconds == 45
    assert rivals["last wait"].wrong_zero_share == 0.5
    assert figures.best_rival[1].mean_error_seconds == 45


def test_figures_are_told_by_plan_hour_and_position() -> None:
    other = [one._replace(plan_id=2) for one in stay("3", 2 * HOUR, 2 * HOUR, 2 * HOUR + 60)]
    events = [on(0), *stay("1", 100, 100, 900), *stay("2", 300, 900, 950), *stay("4", 400, 950, 990), *other]
    judged = run_backtest(events, since=0.0, rules=RULES).judged
    assert {plan: one.accuracy.matched for plan, one in by_plan(judged).items()} == {1: 3, 2: 1}
    assert {hour: one.accuracy.matched for hour, one in by_hour(judged).items()} == {0: 3, 2: 1}
    assert {first: one.accuracy.matched for first, one in by_position(judged).items()} == {0: 2, 1: 1, 2: 1}


def test_patients_without_a_wait_to_compare_are_counted_apart() -> None:
    events = [on(20), *gone("left", 50, 90), *stay("early", 10, 40, 45, "b"), *stay("1", 60, 60, 80)]
    found = run_backtest(events, since=0.0, rules=RULES)
    assert (len(found.judged), found.left, found.unattended) == (1, 1, 1)


def test_only_patients_since_then_are_judged_and_those_before_are_the_past() -> None:
    first, second = stay("1", 100, 100, 400), stay("2", 5000, 5300, 5900)
    found = run_backtest([on(0), *first, *second], since=4000.0, rules=RULES)
    assert [one.outcome.wait_seconds for one in found.judged] == [300]
    assert found.judged[0].rivals["AHT x position"] == 300  # what the first visit took, not the default


def test_the_order_in_which_events_are_given_makes_no_difference() -> None:
    events = [on(0), *stay("1", 100, 100, 700), *stay("2", 300, 700, 900), *stay("3", 350, 900, 1000)]
    shuffled = Random(7).sample(events, len(events))
    assert run_backtest(events, since=0.0, rules=RULES) == run_backtest(shuffled, since=0.0, rules=RULES)


def test_an_event_counts_from_when_it_was_told() -> None:
    """The first visit's start is told 300 s late: to the second patient the doctor looks idle."""
    in_time, late = (
        run_backtest(
            [on(0), *stay("1", 100, 100, 2000, late=late), *stay("2", 350, 2000, 2100)],
            since=0.0,
            rules=RULES,
        ).judged
        for late in (0.0, 300.0)
    )
    assert in_time[1].outcome.estimate_seconds > 0
    assert late[1].outcome.estimate_seconds == 0
    loaded = [on(0), *stay("1", 100, 100, 2000, late=9 * HOUR), *stay("2", 350, 2000, 2100)]
    assert run_backtest(loaded, since=0.0, rules=RULES).judged == in_time


def test_an_end_that_came_before_its_start_leaves_no_visit_behind() -> None:
    joined, started, ended = stay("1", 100, 100, 700)
    events = [on(0), joined, started._replace(known_at=800.0), ended, *stay("2", 1000, 1000, 1100)]
    assert run_backtest(events, since=900.0, rules=RULES).judged[0].outcome.estimate_seconds == 0


def test_who_leaves_in_the_second_of_joining_stands_in_no_line() -> None:
    hung_up = [one for n in range(9) for one in gone(f"gone {n}", 100 + n, 100 + n)]
    events = [on(0), *stay("1", 50, 50, 500), *hung_up, *stay("2", 400, 500, 700)]
    found = run_backtest(events, since=0.0, rules=RULES)
    assert (found.left, [one.position for one in found.judged]) == (9, [0, 1])
    assert found.judged[1].rivals["AHT x position"] == 600
    without = [one for one in events if one not in hung_up]
    assert run_backtest(without, since=0.0, rules=RULES).judged[1].outcome == found.judged[1].outcome


def test_a_visit_of_less_than_a_minute_is_over_where_times_are_whole_minutes() -> None:
    events = [on(0), *stay("1", 60, 60, 60), *stay("2", 600, 600, 660), *stay("3", 600, 660, 720)]
    found = run_backtest(events, since=0.0, rules=RULES)
    assert [one.outcome.estimate_seconds > 0 for one in found.judged] == [False, False, True]


def test_of_those_who_join_in_one_minute_each_knows_of_the_ones_before() -> None:
    events = [on(0), *stay("0", 60, 60, 600), *(one for n in "123" for one in stay(n, 120, 1000, 1000))]
    judged = run_backtest(events, since=100.0, rules=RULES).judged
    assert [one.position for one in judged] == [1, 2, 3]
    assert [one.rivals["AHT x position"] for one in judged] == [600, 1200, 1800]


def test_a_patient_that_is_never_seen_counts_for_no_estimator_after_a_day() -> None:
    lost = ReplayEvent(100, JOINED, 1, "lost", known_at=100)
    late = 100 + 25 * HOUR
    events = [on(0), lost, *stay("1", 200, 200, 260), *stay("2", late, late + 60, late + 90)]
    assert [one.position for one in run_backtest(events, since=0.0, rules=RULES).judged] == [2, 0]


def test_a_visit_whose_end_was_forgotten_keeps_the_doctor_busy_for_no_estimator() -> None:
    forgotten = stay("1", 100, 100, 100)[:2]
    events = [on(0), *forgotten, *stay("2", 5 * HOUR, 5 * HOUR, 5 * HOUR + 60)]
    judged = run_backtest(events, since=HOUR, rules=RULES).judged
    assert (judged[0].outcome.estimate_seconds, judged[0].rivals["AHT x position, idle seen"]) == (0, 0)


def test_a_doctor_whose_shift_follows_another_is_still_with_the_patient() -> None:
    off = ReplayEvent(300, OFF, doctor="a", known_at=300)
    events = [on(0), *stay("1", 100, 100, 2000), off, on(300), *stay("2", 400, 2000, 2100)]
    assert run_backtest(events, since=200.0, rules=RULES).judged[0].outcome.estimate_seconds > 0


def _sorted(pool: DoctorPool) -> DoctorPool:
    return replace(
        pool,
        doctors=sorted(pool.doctors, key=lambda doctor: doctor.name or ""),
        past=sorted(pool.past),
        past_waits=sorted(pool.past_waits),
        duty=sorted(pool.duty),
    )


def test_a_replay_knows_what_the_service_reads_from_its_tables(db: Database) -> None:
    """Doctors of some plans, of two at a time, handed-over visits, leaving, a move to another plan, a shift that ended."""
    clinic = make_clinic(db)
    group, (first, second) = clinic.group_id, clinic.plan_ids
    told = [
        event("1", ON, 0, provider_group_id=group, doctor="a"),
        event("2", ON, 0, provider_group_id=group, doctor="b", plan_ids=(first,), capacity=2),
        event("3", ON, 0, provider_group_id=group, doctor="c"),
        event("4", JOINED, 10, plan_id=first, visit="seen"),
        event("5", STARTED, 40, plan_id=first, visit="seen", doctor="a"),
        event("6", JOINED, 50, plan_id=second, visit="moves"),
        event("7", JOINED, 60, plan_id=first, visit="moves"),
        event("8", JOINED, 70, plan_id=second, visit="goes"),
        event("9", STARTED, 80, plan_id=first, visit="handed over", doctor="a"),
        event("10", STARTED, 90, plan_id=first, visit="handed over", doctor="b"),
        event("11", LEFT, 95, plan_id=first, visit="goes"),
        event("12", LEFT, 100, plan_id=second, visit="goes"),
        event("13", ENDED, 200, plan_id=first, visit="seen"),
        event("14", OFF, 210, provider_group_id=group, doctor="c"),
        event("15", JOINED, 220, plan_id=second, visit="waits"),
        event("16", JOINED, 230, plan_id=second, visit="waits"),
        event("17", ENDED, 240, plan_id=first, visit="never started"),
    ]
    feed(db, *told)
    now = NOW + timedelta(seconds=300)
    replay = QueueReplay(RULES.longest_visit_seconds)
    with db.read() as tx:
        pool = select_pools(tx, [group], now, timedelta(seconds=RULES.longest_visit_seconds))[group]
        stored = list(list_history(tx, NOW))
    assert len(stored) == len(told)
    for one in sorted(stored, key=lambda one: one.at):
        assert one.known_at == pytest.approx(NOW.timestamp())
        replay.apply(one)
    assert _sorted(replay.pool(now.timestamp())) == _sorted(pool)


def test_a_replay_counts_whom_the_service_counts_whatever_happens_in_one_second(db: Database) -> None:
    numbers = count()

    @settings(max_examples=25 if LONG == 1 else 1000, deadline=None, suppress_health_check=list(HealthCheck))
    @given(HAPPENINGS)
    def check(happenings: list[Any]) -> None:
        clinic = make_clinic(db, f"Clinic {next(numbers)}")
        feed(db, *events_for(clinic, happenings, 0))
        now = NOW + timedelta(seconds=10)
        with db.read() as tx:
            pool = select_pools(tx, [clinic.group_id], now, timedelta(hours=4))[clinic.group_id]
            stored = [one for one in list_history(tx, NOW) if one.group == clinic.group_id]
        replay = QueueReplay()
        for one in line_of(stored, 0.0):
            if isinstance(one, ReplayEvent):
                replay.apply(one)
        replayed, pool = _sorted(replay.pool(now.timestamp())), _sorted(pool)
        assert replayed.doctors == pool.doctors
        assert sorted(zip(replayed.waiting, replayed.waited, strict=True)) == sorted(
            zip(pool.waiting, pool.waited, strict=True)
        )

    check()
