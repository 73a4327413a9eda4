"""The simulation of docs/scaling.md obeys the laws that every such system obeys."""

import itertools
import json

import pytest

from bench.scaling import main
from bench.scaling_model import Cluster, RequestCost, capacity, simulate

POST = RequestCost(host_ms=0.4, database_ms=0.3, flush_ms=1.0, network_ms=0.5)
GET = RequestCost(host_ms=0.1, database_ms=0.05, flush_ms=0.0, network_ms=0.5)
ONE = Cluster(nodes=1, processors=2, databases=1, database_processors=2, callers=32)


def hosts(nodes: int, *, databases: int = 1, processors: int = 2, largest: float = 0.0) -> Cluster:
    return Cluster(nodes, 2, databases, processors, callers=32, largest=largest)


@pytest.mark.parametrize("cost", [POST, GET], ids=["POST", "GET"])
def test_a_lone_caller_waits_for_the_sum_of_the_times(cost: RequestCost) -> None:
    alone = Cluster(nodes=1, processors=2, databases=1, database_processors=2, callers=1)
    sum_ms = cost.host_ms + cost.database_ms + cost.flush_ms + cost.network_ms
    assert simulate(alone, cost, rounds=1).per_second == pytest.approx(1000 / sum_ms, rel=0.05)


@pytest.mark.parametrize("cost", [POST, GET], ids=["POST", "GET"])
def test_one_host_that_is_full_does_what_the_utilisation_law_allows(cost: RequestCost) -> None:
    found = simulate(ONE, cost, rounds=1)
    assert found.per_second == pytest.approx(capacity(ONE, cost), rel=0.05)
    assert found.hosts_busy == pytest.approx(found.per_second * cost.host_ms / 1000 / 2, rel=0.05)
    assert found.busiest_database_busy == pytest.approx(
        found.per_second * cost.database_ms / 1000 / 2, rel=0.05
    )


def test_callers_that_wait_and_those_that_are_served_add_up() -> None:
    """Little's law: callers = rate x time."""
    found = simulate(ONE, POST, rounds=1)
    assert found.per_second * found.mean == pytest.approx(ONE.callers, rel=0.02)


@pytest.mark.parametrize("databases", ["one", "spread"])
def test_more_hosts_are_never_slower(databases: str) -> None:
    rates = [
        simulate(hosts(nodes, databases=nodes if databases == "spread" else 1), POST, rounds=20).per_second
        for nodes in (1, 2, 4)
    ]
    assert all(more >= 0.98 * fewer for fewer, more in itertools.pairwise(rates))


def test_one_database_is_full_where_the_utilisation_law_says() -> None:
    """A host takes 5,000/s and the database 6,667/s, so the second host finds it full."""
    assert simulate(hosts(1), POST, rounds=20).busiest_database_busy < 0.8
    for nodes in (2, 4):
        found = simulate(hosts(nodes), POST, rounds=20)
        assert found.per_second == pytest.approx(2 / 0.0003, rel=0.05)
        assert found.busiest_database_busy > 0.97
    larger = simulate(hosts(4, processors=8), POST, rounds=20)
    assert larger.per_second == pytest.approx(4 * 5000, rel=0.05)


def test_a_spread_database_grows_with_its_parts_until_the_largest_account_fills_one() -> None:
    even = simulate(hosts(4, databases=4), POST, rounds=30)
    assert even.per_second == pytest.approx(4 * capacity(ONE, POST), rel=0.08)
    uneven = hosts(4, databases=4, largest=0.4)
    found = simulate(uneven, POST, rounds=60)
    assert capacity(uneven, POST) == pytest.approx(2 / 0.0003 / (0.4 + 0.6 / 4))
    assert found.per_second == pytest.approx(capacity(uneven, POST), rel=0.05)
    assert found.busiest_database_busy > 0.97


def test_commits_share_a_flush_of_the_log() -> None:
    slow = RequestCost(host_ms=0.1, database_ms=0.1, flush_ms=5.0, network_ms=0.1)
    found = simulate(ONE, slow, rounds=1)
    assert found.per_second > 10 / 0.005
    assert found.p50 > 0.005


def test_the_command_prints_its_costs_and_a_line_for_each_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--nodes", "1", "2", "--callers", "4", "--rounds", "1", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert set(printed["costs"]) == {"POST", "GET"}
    assert [(row["what"], row["hosts"]) for row in printed["results"]] == [
        (what, nodes) for what in ("POST", "GET") for nodes in (1, 1, 1, 2, 2, 2)
    ]
