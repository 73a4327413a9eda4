"""Dependents without an address: they live with the subscriber of their family (docs/834.md, Dependents).

REF*0F names the family, in tables a rule of the mapping. A dependent that stands before its subscriber waits for the end of the
file. One whose REF*0F is nobody else's lives with the subscriber before it (x12_household), if it is new.
"""

from collections.abc import Iterator
from dataclasses import replace

from frontdesk.eligibility.model import ADDRESS, Action
from frontdesk.files.model import Row
from frontdesk.files.readers.x12_loop import Home

# What is kept in memory. Other dependents get the address of the stored subscriber: its row was applied before theirs.
FAMILIES_LIMIT, WAITING_LIMIT = 10_000, 20_000

_WARNING = ("address_of_subscriber",)


class FamilyAddresses:
    """The addresses of the subscribers that the file has named, and the dependents that wait for one."""

    def __init__(self, *, needs_role: bool = True) -> None:
        """Unless it `needs_role`, a row that does not say its part in the family gives and takes the address too."""
        self._givers = {"Primary"} if needs_role else {"Primary", None}
        self._needs_role = needs_role
        self._addresses: dict[str, dict[str, object]] = {}
        self._waiting: list[tuple[Row, str, Home | None]] = []

    def note(self, row: Row, family: str) -> None:
        """Remember the address of a subscriber with a later row."""
        values = row.values
        if family and "zipcode" in values and values.get("subscriber_relationship") in self._givers:
            self._remember(family, {name: values[name] for name in ADDRESS if name in values})

    def take(self, row: Row, family: str, home: Home | None) -> Iterator[Row]:
        """The row, with the address of its subscriber if it needs one; nothing if it has to wait."""
        values = row.values
        relationship = values.get("subscriber_relationship")
        if row.action is Action.END or (relationship is None and self._needs_role):
            yield row
        elif "zipcode" in values:
            self.note(row, family)
            yield row
        elif relationship == "Primary":
            yield row
        elif not family:
            yield _of_stored(row, family, home)
        elif family in self._addresses:
            yield self._at_home(row, family)
        elif len(self._waiting) < WAITING_LIMIT:
            self._waiting.append((row, family, home))
        else:
            yield _of_stored(row, family, home)

    def rest(self) -> Iterator[Row]:
        """The dependents that have waited, in the order of the file. Call it at its end."""
        for row, family, home in self._waiting:
            is_here = family in self._addresses
            yield self._at_home(row, family) if is_here else _of_stored(row, family, home)
        self._waiting.clear()

    def _remember(self, family: str, address: dict[str, object]) -> None:
        if len(self._addresses) >= FAMILIES_LIMIT and family not in self._addresses:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[family] = address

    def _at_home(self, row: Row, family: str) -> Row:
        values = {**self._addresses[family], **row.values}
        return replace(row, values=values, warnings=row.warnings + _WARNING)


def _of_stored(row: Row, family: str, home: Home | None) -> Row:
    """The row with the identifiers that the default keys give the subscriber of its family, and with what it takes from the
    subscriber before it."""
    keys = (family, *(f"{family}-{code}" for code in ("01", "1", "00", "0", "001"))) if family else ()
    if home is None:
        return replace(row, hints=row.hints._replace(subscriber_keys=keys)) if keys else row
    hints = row.hints._replace(subscriber_keys=(*keys, home.subscriber))
    of_new = {**home.address, **(row.values_of_new or {})}
    return replace(row, hints=hints, values_of_new=of_new or None)
