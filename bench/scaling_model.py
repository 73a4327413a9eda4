"""The model behind `bench.scaling`: callers, serving hosts, databases, and the waits at each of them.

What it assumes:

- Each caller sends its next request when the last one is answered. The load balancer spreads callers evenly over the hosts.
- A request takes one processor of its host, then one of its database, and a write then waits for the log.
- The times of a request vary as exponential ones do, around the measured means. They do not grow with the number of hosts or
  of members: statements find their rows by key (docs/decisions/0067), and no two requests want the same member.
- One flush of the log serves all commits that wait when it begins.
- A spread database has one part for each host, each account is in one part, and no statement needs two (docs/scaling.md says
  what is missing for that). The largest account has its part of all requests, and the others are spread evenly.
- Connections are no limit, and nothing fails.
"""

import itertools
import random
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

# A queue before a database grows until all callers stand in it, so the first half is not counted.
WARM_UP = 0.5
FEWEST = 2000  # requests


@dataclass(frozen=True, slots=True)
class RequestCost:
    """Milliseconds that a request takes, each the mean: of a processor of its host and of its database, of a flush of the log
    (0 for a read), and on the way to the database and back."""

    host_ms: float
    database_ms: float
    flush_ms: float
    network_ms: float


# The processor times: medians of `python -m bench.hosts` on 2026-11-22 with two groups of 32 callers each, whose requests share
# chunks and reads as in any process with so many callers. The flush and the network are usual ones, and not measured.
MEASURED = {
    "POST": RequestCost(host_ms=0.628, database_ms=0.273, flush_ms=1.0, network_ms=0.5),
    "GET": RequestCost(host_ms=0.211, database_ms=0.016, flush_ms=0.0, network_ms=0.5),
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """`processors` and `callers` are of each serving host, `database_processors` of each database.

    `largest` is the largest account's part of all requests, from 0 to 1.
    """

    nodes: int
    processors: int
    databases: int
    database_processors: int
    callers: int
    largest: float = 0.0

    @property
    def busiest_share(self) -> float:
        """The part of all requests that goes to the database with the largest account."""
        return self.largest + (1 - self.largest) / self.databases


@dataclass(frozen=True, slots=True)
class Simulated:
    """Requests per second, their times in seconds, and which part of the time processors are busy."""

    per_second: float
    mean: float
    p50: float
    p99: float
    hosts_busy: float
    busiest_database_busy: float


def capacity(cluster: Cluster, cost: RequestCost) -> float:
    """The most requests per second, by the utilisation law: no processor is busy for more than all of the time."""
    hosts = cluster.nodes * cluster.processors / cost.host_ms
    databases = cluster.database_processors / (cluster.busiest_share * cost.database_ms)
    return 1000 * min(hosts, databases)


def simulate(cluster: Cluster, cost: RequestCost, *, rounds: int, seed: int = 1) -> Simulated:
    """What the cluster does while its callers send `rounds` requests each, on average, and 2,000 in all at least.

    The same seed gives the same result.
    """
    requests = max(FEWEST, rounds * cluster.nodes * cluster.callers)
    return _Run(cluster, cost, random.Random(seed)).until(requests)


class _Station:
    """Processors with one queue, and how long they have been busy."""

    def __init__(self, env: simpy.Environment, processors: int) -> None:
        self.busy_seconds = 0.0
        self._env = env
        self._processors = simpy.Resource(env, processors)

    def serve(self, seconds: float) -> Generator[Any, Any, None]:
        with self._processors.request() as turn:
            yield turn
            yield self._env.timeout(seconds)
        self.busy_seconds += seconds


class _Log:
    """A write-ahead log: commits that come during a flush share the next one."""

    def __init__(self, env: simpy.Environment, seconds: float) -> None:
        self._env = env
        self._seconds = seconds
        self._next = env.event()
        self._waiting = 0
        self._is_flushing = False

    def flushed(self) -> simpy.Event:
        """Happens when what was committed so far is on the disk."""
        self._waiting += 1
        if not self._is_flushing:
            self._is_flushing = True
            self._env.process(self._flush())
        return self._next

    def _flush(self) -> Generator[Any, Any, None]:
        while self._waiting:
            done, self._next, self._waiting = self._next, self._env.event(), 0
            yield self._env.timeout(self._seconds)
            done.succeed()
        self._is_flushing = False


class _Run:
    def __init__(self, cluster: Cluster, cost: RequestCost, chance: random.Random) -> None:
        self._env = simpy.Environment()
        self._cluster = cluster
        self._cost = cost
        self._chance = chance
        self._hosts = [_Station(self._env, cluster.processors) for _ in range(cluster.nodes)]
        self._databases = [_Station(self._env, cluster.database_processors) for _ in range(cluster.databases)]
        self._logs = [_Log(self._env, cost.flush_ms / 1000) for _ in range(cluster.databases)]
        self._taken: list[float] = []  # seconds of each answered request, in order

    def until(self, requests: int) -> Simulated:
        for node, _ in itertools.product(range(self._cluster.nodes), range(self._cluster.callers)):
            self._env.process(self._call(self._hosts[node]))
        first = round(requests * WARM_UP)
        self._run_to(first)
        since, busy = self._env.now, self._busy()
        self._run_to(requests)
        elapsed = self._env.now - since
        hosts, busiest = ((now - then) / elapsed for now, then in zip(self._busy(), busy, strict=True))
        times = sorted(self._taken[first:])
        return Simulated(
            per_second=len(times) / elapsed,
            mean=sum(times) / len(times),
            p50=times[len(times) // 2],
            p99=times[len(times) * 99 // 100],
            hosts_busy=hosts / (self._cluster.nodes * self._cluster.processors),
            busiest_database_busy=busiest / self._cluster.database_processors,
        )

    def _run_to(self, requests: int) -> None:
        while len(self._taken) < requests:
            self._env.step()

    def _busy(self) -> tuple[float, float]:
        """Seconds that all hosts, and the first database, have been busy."""
        return sum(host.busy_seconds for host in self._hosts), self._databases[0].busy_seconds

    def _call(self, host: _Station) -> Generator[Any, Any, None]:
        while True:
            started = self._env.now
            yield from host.serve(self._about(self._cost.host_ms))
            yield self._env.timeout(self._cost.network_ms / 1000)
            number = self._database()
            yield from self._databases[number].serve(self._about(self._cost.database_ms))
            if self._cost.flush_ms:
                yield self._logs[number].flushed()
            self._taken.append(self._env.now - started)

    def _database(self) -> int:
        """Where a request's account is; the largest account is in the first one."""
        if self._chance.random() < self._cluster.largest:
            return 0
        return self._chance.randrange(self._cluster.databases)

    def _about(self, milliseconds: float) -> float:
        return self._chance.expovariate(1000 / milliseconds)
