"""`python -m tests.histories --count 10000 --seed 1 --jobs 2 --minutes 30` judges many histories and
prints the violations by kind, each with the shortest history that shows it. `--only SEED-NUMBER`
judges one history and prints all that it violates.

The exit status is 1 if there is a violation.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.histories.drawing import history_of, shrunk, size_of, written
from tests.histories.judge import Court, court, court_folder

TOGETHER = 25  # histories of one task of a process


class Options(NamedTuple):
    """`deadline` is a time of `time.monotonic`."""

    histories: int
    seed: str
    jobs: int
    deadline: float


class Shortest(NamedTuple):
    """The shortest history of a kind so far, by its size and the seed that draws it."""

    size: int
    seed: str


class Found(NamedTuple):
    """What a task has found: how many histories it judged, and each kind's count and shortest."""

    judged: int
    counts: Counter[str]
    shortest: dict[str, Shortest]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many histories")
    parser.add_argument("--seed", default="0", help="draws the histories")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--minutes", type=float, default=60, help="the longest time")
    parser.add_argument("--only", help="the seed of one history, such as 0-17")
    said = parser.parse_args(arguments)
    if said.only is not None:
        with court_folder() as folder:
            _use(folder)
            return _show(said.only)
    deadline = time.monotonic() + said.minutes * 60
    options = Options(said.count, said.seed, said.jobs, deadline)
    found = Found(0, Counter(), {})
    with (
        court_folder() as folder,
        ProcessPoolExecutor(options.jobs, initializer=_use, initargs=(folder,)) as pool,
    ):
        found = _judge_all(pool, options)
        _tell("\n")
        shown = _in_order(pool, found)
        for kind, text in shown:
            _tell(f"\n## {found.counts[kind]} x {kind}\n{text}\n")
    people = sum(found.counts.values())
    _tell(f"\n{found.judged:,} histories, {people:,} violations of {len(found.counts)} kinds\n")
    return 1 if found.counts else 0


def _judge_all(pool: ProcessPoolExecutor, options: Options) -> Found:
    """Judge the histories until they are done or the time is over, with the progress on one line."""
    started = time.monotonic()
    tasks = [
        pool.submit(_judge_some, options.seed, first, min(TOGETHER, options.histories - first))
        for first in range(0, options.histories, TOGETHER)
    ]
    judged = 0
    counts = Counter[str]()
    shortest = dict[str, Shortest]()
    for found in _results(tasks, options.deadline):
        judged += found.judged
        counts += found.counts
        for kind, each in found.shortest.items():
            shortest[kind] = min(each, shortest.get(kind, each))
        rate = judged / (time.monotonic() - started)
        _tell(f"\r{judged:,} histories, {rate:.1f} a second, {len(counts)} kinds ")
    return Found(judged, counts, shortest)


def _results(tasks: Sequence["Future[Found]"], deadline: float) -> Iterator[Found]:
    for task in as_completed(tasks):
        yield task.result()
        if time.monotonic() > deadline:
            for other in tasks:
                other.cancel()
            return


def _in_order(pool: ProcessPoolExecutor, found: Found) -> Iterator[tuple[str, str]]:
    """Each kind with its shortest history, the most frequent first."""
    kinds = [kind for kind, _ in found.counts.most_common()]
    seeds = [found.shortest[kind].seed for kind in kinds]
    return zip(kinds, pool.map(_shorten, seeds, kinds), strict=True)


def _judge_some(seed: str, first: int, count: int) -> Found:
    counts = Counter[str]()
    shortest = dict[str, Shortest]()
    for number in range(first, first + count):
        name = f"{seed}-{number}"
        history = history_of(name)
        kinds = {each.kind for each in _court().judge(history)}
        counts.update(kinds)
        this = Shortest(size_of(history), name)
        for kind in kinds:
            shortest[kind] = min(this, shortest.get(kind, this))
    return Found(count, counts, shortest)


def _shorten(seed: str, kind: str) -> str:
    """The smallest history near that of the seed with this kind of violation, as text."""
    judge = _court()
    history = shrunk(history_of(seed), lambda each: judge.find(each, kind) is not None)
    violation = judge.find(history, kind)
    text = violation.text if violation is not None else "not repeated"
    return f"seed {seed}: {written(history)}\n{text}"


def _show(seed: str) -> int:
    history = history_of(seed)
    _tell(f"{written(history)}\n")
    found = _court().judge(history)
    for violation in found:
        _tell(f"\n## {violation.kind}\n{violation.text}\n")
    return 1 if found else 0


_courts: list[Court] = []
_open = ExitStack()


def _use(folder: Path) -> None:
    """Open the court of this process, which is its last."""
    _courts.append(_open.enter_context(court(folder)))


def _court() -> Court:
    return _courts[0]


def _tell(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
