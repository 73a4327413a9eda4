"""Dependents of an 834 that carry a REF*0F of their own: the guide has them stand behind their subscriber (docs/834.md,
Dependents; docs/decisions/0123)."""

import re

from frontdesk.eligibility.fields import FIELDS
from frontdesk.eligibility.values import FieldContext
from frontdesk.files.readers.x12_loop import Home, MemberLoop
from frontdesk.text import Rejected, RejectedParts

_WORD = re.compile(r"[^\W\d_]{2,}")
_COUNTER_LETTERS, _SHORTEST_NUMBER = 2, 6  # numbers of a family that differ only in what counts its members
_NOBODY = FieldContext("9999-12-31")


class Households:
    """The subscriber that stands last, and which dependents behind it are its own."""

    def __init__(self) -> None:
        self._subscriber: MemberLoop | None = None
        self._home: Home | None = None

    def note(self, loop: MemberLoop) -> None:
        """Give a dependent without an address the home of its subscriber. Call it for each loop, in the order of the file."""
        subscriber = self._subscriber
        if loop.is_subscriber:
            self._subscriber, self._home = loop, None
        elif (
            subscriber is not None
            and subscriber.transaction is loop.transaction
            and subscriber.family != loop.family
            and not loop.said("N4", 3)
            and _is_of_household(loop, subscriber)
        ):
            self._home = self._home or Home(subscriber.key, _address_of(subscriber))
            loop.home = self._home


def _address_of(subscriber: MemberLoop) -> dict[str, object]:
    """Its address; empty without a zip code that can be used, which would refuse the dependent."""
    address = subscriber.address()
    try:
        FIELDS["zipcode"].kind.read(address.get("zipcode", ""), _NOBODY)
    except (Rejected, RejectedParts):
        return {}
    return address


def _is_of_household(dependent: MemberLoop, subscriber: MemberLoop) -> bool:
    """Whether the subscriber before it is the dependent's: a common name or number. Strangers have a plan in common too."""
    return (
        not _names(dependent).isdisjoint(_names(subscriber))
        or not _numbers_of(subscriber).isdisjoint(dependent.own.references.values())
        or _are_counted(dependent.family, subscriber.family)
    )


def _names(loop: MemberLoop) -> set[str]:
    return set(_WORD.findall(loop.said("NM1", 3).casefold()))


def _numbers_of(subscriber: MemberLoop) -> set[str]:
    """What only this subscriber is called by; REF*23 and REF*ZZ are a group's in many files."""
    numbers = (subscriber.family, subscriber.own.references.get("SY", ""), subscriber.said("NM1", 9))
    return set(filter(None, numbers))


def _are_counted(first: str, second: str) -> bool:
    length = len(first)
    is_long = length >= _SHORTEST_NUMBER and length == len(second)
    return is_long and first[:-_COUNTER_LETTERS] == second[:-_COUNTER_LETTERS]
