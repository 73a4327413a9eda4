"""`frontdesk demo` makes all there is to try, and `frontdesk queue simulate` feeds its queues."""

import json
import shlex
import socket
import subprocess
from collections import Counter, deque
from random import Random

import pytest

from frontdesk.clock import system_clock
from frontdesk.queues import list_in_visit, list_on_duty, list_waiting
from frontdesk.queues.upkeep import rebuild
from frontdesk.reach import Reach
from frontdesk.sandbox.practice import Practice
from frontdesk.sandbox.simulate import EventFeeder, open_practices
from tests.cli.conftest import CommandLine
from tests.conftest import SetClock


def test_the_demo_makes_everything_there_is_to_try(bare_cli: CommandLine) -> None:
    made = bare_cli.json("demo")
    assert made["account_created"] is True
    plans = [bare_cli.json("plan", "show", str(plan_id)) for plan_id in made["plan_ids"]]
    assert len(plans) == 4
    assert [plan["active"] for plan in plans].count(False) == 1
    assert [plan["description"] for plan in plans].count(None) == 1
    assert all(plan["queue_info"]["is_active"] for plan in plans)
    assert sum(plan["queue_info"]["queue_length"] for plan in plans) >= 3
    assert any(plan["queue_info"]["estimated_wait_time"] > 0 for plan in plans)
    groups = bare_cli.json("provider-group", "list")
    assert [group["external_id"] for group in groups] == ["demo-primary-care", None]


def test_running_it_again_adds_only_a_secret_unless_its_client_was_revoked(
    cli: CommandLine,
) -> None:
    first = cli.json("demo")
    second = cli.json("demo")
    assert second["account_created"] is False
    for name in ("account_id", "plan_ids", "client_id"):
        assert second[name] == first[name]
    assert second["client_secret"] != first["client_secret"]
    [client] = cli.json("client", "list")
    assert {"customer", "eligibility:read", "events:read", "webhooks:manage"} <= set(
        client["scopes"]
    )
    assert "operator" not in client["scopes"]
    assert len(cli.json("plan", "list")) == 4
    cli.json("client", "revoke", first["client_id"])
    assert cli.json("demo")["client_id"] != first["client_id"]


def test_the_commands_are_printed_whole_and_the_shell_reads_them_as_they_are_meant(
    bare_cli: CommandLine,
) -> None:
    lines = bare_cli.text("demo", "--port", "8123").splitlines()
    [token] = [line for line in lines if line.startswith("TOKEN=")]
    member, plans = [line for line in lines if line.startswith("curl ")]
    assert "http://127.0.0.1:8123/oauth/token" in token
    assert "/eligibility" in member
    assert "http://127.0.0.1:8123/v2/plans " in plans
    for path in ("docs", "openapi.json"):
        assert any(f"http://127.0.0.1:8123/{path}" in line for line in lines)
    made = bare_cli.json("demo", base_url="https://try.example.com/")
    assert made["reference_url"] == "https://try.example.com/docs"
    answer = shlex.quote(json.dumps({"access_token": "t-1"}))
    # Functions stand in for curl: one answers with a token, the other prints what it was given.
    token = f"curl() {{ printf '%s' {answer}; }}"
    member = "curl() { printf '%s\\n' \"$@\"; }"
    script = "\n".join([token, made["token_command"], member, made["member_command"]])
    run = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    printed = run.stdout.splitlines()
    assert "Authorization: Bearer t-1" in printed
    assert json.loads(printed[-1])["external_id"] == "AB 123356"


def test_nothing_is_made_in_production_or_beside_a_port_that_is_taken(
    bare_cli: CommandLine,
) -> None:
    assert "production" in bare_cli.refused("demo", environment="production")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert f"port {port}" in bare_cli.refused("demo", "--serve", "--port", port)
    assert "There is no database here" in bare_cli.refused("account", "list")


@pytest.mark.parametrize("port", ["0", "65536", "http"])
def test_a_port_that_does_not_exist_is_misuse(bare_cli: CommandLine, port: str) -> None:
    assert "--port" in bare_cli.refused("demo", "--port", port, status=2)


def test_simulated_practices_move_the_queues(cli: CommandLine) -> None:
    account_id = cli.json("demo")["account_id"]
    clock = SetClock(system_clock())
    db = cli.open()
    practices = db.ask(lambda tx: open_practices(tx, Reach.of(account_id), Random(7), clock()))
    feeder = EventFeeder(db, practices, speed=10, clock=clock)
    lengths = set()
    for _ in range(12):
        clock.advance(60)
        feeder.feed()
        lengths.add(len(db.ask(lambda tx: list_waiting(tx, clock()))))
        assert len(db.ask(lambda tx: list_on_duty(tx, clock()))) >= 2
    assert len(lengths) > 2
    assert set(feeder.counts) >= {"patient.joined", "visit.started", "visit.ended"}
    on_duty = {doctor.doctor for doctor in db.ask(lambda tx: list_on_duty(tx, clock()))}
    assert {visit.doctor for visit in db.ask(list_in_visit)} <= on_duty
    with db.write() as tx:
        assert rebuild(tx)["mended"] == 0
    db.close()


def test_simulating_for_a_while_tells_what_happened(cli: CommandLine) -> None:
    assert "production" in cli.refused("queue", "simulate", environment="production")
    assert "frontdesk demo" in cli.refused("queue", "simulate")
    cli.json("demo")
    outcome = cli.json("queue", "simulate", "--seconds", "0", "--seed", "1", "--speed", "1000")
    assert outcome["events"] == sum(outcome["by_type"].values())
    assert "patients came" in cli.text("queue", "simulate", "--seconds", "0")


def test_a_practice_sees_everybody_in_turn_and_loses_nobody() -> None:
    practice = Practice(
        1, [5, 6], ["dr-1", "dr-2"], "sim", Random(3), deque([("old-1", 5), ("old-2", 6)])
    )
    practice.begin([("old-0", 5, "dr-1")])
    seen: dict[str, tuple[str, ...]] = {}
    for _, happening in practice.until(24 * 3600):
        visit = happening.get("visit", "")
        seen[visit] = (*seen.get(visit, ()), happening["type"])
    del seen[""]  # of doctors
    ways = Counter(seen.values())
    whole = ("patient.joined", "visit.started", "visit.ended")
    left = ("patient.joined", "patient.left")
    assert set(ways) <= {whole[:1], whole[:2], whole, whole[1:], whole[2:], left, left[1:]}
    assert ways[whole] > 100
    assert [seen["old-0"], seen["old-1"][-1:]] == [("visit.ended",), ("visit.ended",)]


def test_a_practice_sees_urgent_patients_first() -> None:
    practice = Practice(1, [5], ["dr-1", "dr-2"], "sim", Random(3))
    practice.begin()
    waiting: dict[str, str] = {}
    overtaken = 0
    for _, happening in practice.until(24 * 3600):
        visit = happening.get("visit", "")
        if happening["type"] == "patient.joined":
            waiting[visit] = happening["class"]
            assert happening.get("priority", 0) == (happening["class"] == "urgent")
        elif happening["type"] == "visit.started":
            first = next(
                (one for one in waiting if waiting[one] == "urgent"), min(waiting, key=_number)
            )
            assert visit == first
            overtaken += visit != next(iter(waiting))
        if happening["type"] in ("visit.started", "patient.left"):
            waiting.pop(visit, None)
    assert overtaken > 5


def _number(visit: str) -> int:
    return int(visit.rpartition("-")[2])
