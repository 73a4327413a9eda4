"""The draws of the simulation: fixed, so that every process computes the same number, and even, so
that few runs are enough. Over all runs each place in the line gets every part of a distribution
once.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache
from math import log
from operator import itemgetter
from random import Random

DRAWS = 256  # places in the line before the draws repeat


class Draw(IntEnum):
    LENGTH = 20160928
    PATIENCE = 20160929
    PAUSE = 20160930
    LATE_END = 20160931
    JOIN = 20160933
    JOIN_LENGTH = 20160934


@cache
def orders(runs: int, draw: Draw) -> list[list[int]]:
    """By place in the line, the numbers below `runs` in an order that chance has fixed."""
    chance = Random(draw)  # noqa: S311 - no secret
    return [chance.sample(range(runs), runs) for _ in range(DRAWS)]


@cache
def shuffles(runs: int, draw: Draw) -> list[Callable[[Sequence[float]], tuple[float, ...]]]:
    """By place in the line, a function that puts equally likely parts in the order of the runs.
    Each run gets another part.
    """
    return [itemgetter(*order) for order in orders(runs, draw)]


@cache
def exponential(runs: int, draw: Draw) -> list[tuple[float, ...]]:
    """By run, a value for each place in the line: evenly spread over an exponential distribution
    with mean 1.
    """
    values = [-log((part + 0.5) / runs) for part in range(runs)]
    return list(zip(*[in_order(values) for in_order in shuffles(runs, draw)], strict=True))
