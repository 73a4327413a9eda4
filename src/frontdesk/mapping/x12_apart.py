"""Loops of one member that stand apart in an 834: kept until the file has ended, then given back member by member.

Senders write all coverages of one kind before those of the next, so a member's loops can be a whole file apart. What is kept
goes to a temporary file that has no name and is gone with its process.
"""

import pickle
import zlib
from array import array
from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile

from frontdesk.formats.x12_loop import MemberLoop

PlacedLoop = tuple[int, MemberLoop]  # with the number of its INS
APART_LIMIT = 1000  # loops of one member: more are a mistake of the sender, and too much to hold
_IN_MEMORY = 8 * 1024**2
_BUCKETS = 256  # given back one at a time, so that a 256th of the loops is in memory


class LoopsApart:
    """The loops that are kept. `places` are those of the groups of loops to keep, in ascending order."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places, self._next = places, 0
        self._kept: SpooledTemporaryFile[bytes] | None = None
        self._offsets = [array("Q") for _ in range(_BUCKETS)]

    def takes(self, place: int) -> bool:
        """Whether the loops at this place, which is after the last one that was asked for, are to be kept."""
        is_next = self._next < len(self._places) and self._places[self._next] == place
        self._next += is_next
        return is_next

    def keep(self, loops: list[PlacedLoop]) -> None:
        if self._kept is None:
            self._kept = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - see close
        self._offsets[zlib.crc32(loops[0][1].key.encode()) % _BUCKETS].append(self._kept.tell())
        pickle.dump(loops, self._kept, pickle.HIGHEST_PROTOCOL)

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()

    def members(self) -> Iterator[list[PlacedLoop]]:
        """The loops of each member with their places, in the order of the file; not more than APART_LIMIT + 1 of them."""
        file = self._kept
        if file is None:
            return
        for offsets in self._offsets:
            members: dict[str, list[PlacedLoop]] = {}
            for offset in offsets:
                file.seek(offset)
                loops = pickle.load(file)  # noqa: S301 - written by this process
                kept = members.setdefault(loops[0][1].key, [])
                kept += loops[: APART_LIMIT + 1 - len(kept)]
            yield from members.values()
