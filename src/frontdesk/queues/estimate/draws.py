"""The draws of the runs: fixed and even, so that every process computes the same number and few runs are enough."""

from functools import cache
from math import log
from random import Random

DRAWS = 256  # places in the line before the draws repeat


@cache
def orders(runs: int, seed: int) -> list[list[int]]:
    """By place in the line, the numbers below `runs` in an order that chance has fixed."""
    draw = Random(seed)  # noqa: S311 - no secret
    return [draw.sample(range(runs), runs) for _ in range(DRAWS)]


@cache
def shuffled(runs: int, seed: int) -> list[list[int]]:
    """By run, a number below `runs` for each place in the line. Over all runs each place gets each number once."""
    return [list(column) for column in zip(*orders(runs, seed), strict=True)]


@cache
def exponential_values(runs: int) -> list[float]:
    """Evenly spread values of an exponential distribution with mean 1."""
    return [-log((part + 0.5) / runs) for part in range(runs)]
