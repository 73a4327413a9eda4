"""Dependents without an address take that of their family's subscriber (docs/834.md, Dependents). A
stored dependent that has an address of its own keeps it (eligibility.decide).

REF*0F identifies the family, in tables a rule of the mapping. In an 834 the last names have to
agree too, since some senders write the number of a group into REF*0F. A dependent before its
subscriber waits for the end of the file. A dependent whose REF*0F no subscriber has takes the
address of the preceding subscriber.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from frontdesk import codes
from frontdesk.eligibility.model import ADDRESS, Action, MemberWarning
from frontdesk.eligibility.persons import names_in
from frontdesk.errors import Fault
from frontdesk.mapping.model import Row

# Limits of memory. Further dependents get the address of the stored subscriber, whose row is
# applied before theirs.
FAMILIES_LIMIT = 10_000
WAITING_LIMIT = 20_000

NO_ADDRESS = Fault(
    "zipcode",
    codes.faults.REQUIRED,
    "is required for a new member, and the subscriber of its family (REF*0F and last name of an "
    "834, the mapping's family of a table) has none that can be used",
)

Address = Mapping[str, object]


class FamilyAddresses:
    """The addresses of the subscribers so far, and the dependents that wait for an address."""

    def __init__(self, *, is_table: bool = False) -> None:
        """In a table a row without a role in the family gives and takes the address too, and last
        names may differ.
        """
        self._givers = {"Primary", None} if is_table else {"Primary"}
        self._is_table = is_table
        self._addresses: dict[tuple[str, str], Address] = {}  # by family and last name
        self._waiting: list[tuple[Row, str, Address]] = []

    def note(self, row: Row, family: str) -> None:
        """Remember the address of a subscriber with a later row."""
        values = row.values
        if family and "zipcode" in values and values.get("subscriber_relationship") in self._givers:
            address = {name: values[name] for name in ADDRESS if name in values}
            for key in self._keys(row, family):
                if len(self._addresses) >= FAMILIES_LIMIT and key not in self._addresses:
                    del self._addresses[next(iter(self._addresses))]
                self._addresses[key] = address

    def _keys(self, row: Row, family: str) -> list[tuple[str, str]]:
        if self._is_table:
            return [(family, "")]
        return [(family, name) for name in names_in(str(row.values.get("last_name", "")))]

    def _find(self, row: Row, family: str) -> Address:
        found = (self._addresses.get(key) for key in self._keys(row, family))
        return next(filter(None, found), {})

    def take(
        self, row: Row, family: str, before: Address, *, has_no_home: bool = False
    ) -> Iterator[Row]:
        """The row, with the address of its subscriber if it needs one; nothing if it has to wait.
        `before` is the address of the subscriber before it, empty without one; `has_no_home`: that
        is the subscriber of its family, and gives it none.
        """
        role = row.values.get("subscriber_relationship")
        may_need = row.action is not Action.END and role != "Primary" and (role or self._is_table)
        if not may_need or "zipcode" in row.values:
            self.note(row, family)
            yield row
        elif has_no_home:
            yield self._without_address(row)
        elif family and not self._find(row, family) and len(self._waiting) < WAITING_LIMIT:
            self._waiting.append((row, family, before))
        else:
            yield self._at_home(row, family, before)

    def rest(self) -> Iterator[Row]:
        """The dependents that have waited, in the order of the file. Call it at its end."""
        for row, family, before in self._waiting:
            yield self._at_home(replace(row, part=None), family, before)
        self._waiting.clear()

    def _at_home(self, row: Row, family: str, before: Address) -> Row:
        address = self._find(row, family) or before
        if not address or address != before:
            row = replace(row, part=None, leans_on_other=True)
        # The row may have a part of an address without a zip code: another place.
        if not address or any(
            row.values.get(name, value) != value for name, value in address.items()
        ):
            return self._without_address(row)
        warnings = (*row.warnings, MemberWarning.of(codes.rows.ADDRESS_OF_SUBSCRIBER))
        context = row.context._replace(shares_home=True)
        return replace(row, values={**address, **row.values}, warnings=warnings, context=context)

    def _without_address(self, row: Row) -> Row:
        context = row.context
        address_of = context.person.family if context.person else ""
        causes = (*context.causes, NO_ADDRESS)
        return replace(row, context=context._replace(address_of=address_of, causes=causes))
