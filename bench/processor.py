"""Processor time of programs, from /proc."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(root: int) -> float:
    """What a process and all that descend from it have used so far, those that have ended included."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        children.setdefault(int(values[1]), []).append(pid)
        ticks[pid] = sum(map(int, values[11:15]))  # its own and its ended children's, in user and system mode
    return sum(ticks.get(pid, 0) for pid in _family(root, children)) / _TICKS


def _family(root: int, children: dict[int, list[int]]) -> list[int]:
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return found
