"""`frontdesk queue simulate`: invented practices feed the queues of a sandbox."""

from collections import Counter, deque
from random import Random

from frontdesk.clock import system_clock
from frontdesk.queues import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.upkeep import rebuild
from frontdesk.sandbox.practice import Practice
from frontdesk.sandbox.simulate import EventFeeder, open_practices
from tests.cli.conftest import CommandLine
from tests.conftest import SetClock


def test_simulated_practices_move_the_queues_and_leave_a_state_that_follows_from_the_events(
    cli: CommandLine,
) -> None:
    account_id = cli.json("demo")["account_id"]
    clock = SetClock(system_clock())
    db = cli.open()
    practices = db.ask(lambda tx: open_practices(tx, account_id, Random(7)))
    feeder = EventFeeder(db, practices, speed=10, clock=clock)
    lengths = set()
    for _ in range(12):
        clock.advance(60)
        feeder.feed()
        lengths.add(len(db.ask(list_waiting)))
        assert len(db.ask(list_on_duty)) >= 2
    assert len(lengths) > 2
    assert set(feeder.counts) >= {"patient.joined", "visit.started", "visit.ended"}
    on_duty = {doctor.doctor for doctor in db.ask(list_on_duty)}
    assert {visit.doctor for visit in db.ask(list_in_visit)} <= on_duty
    with db.write() as tx:
        assert rebuild(tx).corrected == 0
    db.close()


def test_simulating_for_a_while_tells_what_happened(cli: CommandLine) -> None:
    assert "production" in cli.refused("queue", "simulate", environment="production")
    assert "frontdesk demo" in cli.refused("queue", "simulate")
    cli.json("demo")
    outcome = cli.json("queue", "simulate", "--seconds", "0", "--seed", "1", "--speed", "1000")
    assert outcome["events"] == sum(outcome["by_type"].values())
    assert "patients came" in cli.text("queue", "simulate", "--seconds", "0")


def test_a_practice_sees_everybody_in_turn_and_loses_nobody() -> None:
    practice = Practice(1, [5, 6], ["dr-1", "dr-2"], "sim", Random(3), deque([("old-1", 5), ("old-2", 6)]))
    practice.begin([("old-0", 5, "dr-1")])
    seen: dict[str, list[str]] = {}
    times = []
    for at, happening in practice.until(24 * 3600):
        times.append(at)
        if "visit" in happening:
            seen.setdefault(happening["visit"], []).append(happening["type"])
    assert times == sorted(times)
    ways = Counter(tuple(way) for way in seen.values())
    whole = ("patient.joined", "visit.started", "visit.ended")
    unfinished = {whole[:1], whole[:2], ("patient.joined", "patient.left"), whole, ("visit.ended",)}
    assert set(ways) <= unfinished | {("visit.started", "visit.ended"), ("patient.left",)}
    assert ways[whole] > 100
    assert [seen["old-0"], seen["old-1"][-1:]] == [["visit.ended"], ["visit.ended"]]
