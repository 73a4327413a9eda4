"""The draws of the runs: fixed and even, so that every process computes the same number and few runs are enough."""

from collections.abc import Callable, Sequence
from functools import cache
from math import log
from operator import itemgetter
from random import Random

DRAWS = 256  # places in the line before the draws repeat


@cache
def orders(runs: int, seed: int) -> list[list[int]]:
    """By place in the line, the numbers below `runs` in an order that chance has fixed."""
    draw = Random(seed)  # noqa: S311 - no secret
    return [draw.sample(range(runs), runs) for _ in range(DRAWS)]


@cache
def shuffles(runs: int, seed: int) -> list[Callable[[Sequence[float]], tuple[float, ...]]]:
    """By place in the line, a function that puts equally likely parts in the order of the runs. Each run gets another part."""
    return [itemgetter(*order) for order in orders(runs, seed)]


@cache
def patiences(runs: int, seed: int) -> list[tuple[float, ...]]:
    """By run, a value for each place in the line: evenly spread over an exponential distribution with mean 1."""
    values = [-log((part + 0.5) / runs) for part in range(runs)]
    return list(zip(*[in_order(values) for in_order in shuffles(runs, seed)], strict=True))
