"""Dependents without an address take that of their family's subscriber (docs/834.md, Dependents).

REF*0F identifies the family, in tables a rule of the mapping. A dependent before its subscriber
waits for the end of the file. A dependent whose REF*0F no subscriber has takes the address of the
preceding subscriber, if the last names are equal.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from frontdesk import codes
from frontdesk.eligibility.model import ADDRESS, Action, MemberWarning
from frontdesk.errors import Fault
from frontdesk.mapping.model import Row

# Limits of memory. Further dependents get the address of the stored subscriber, whose row is
# applied before theirs.
FAMILIES_LIMIT = 10_000
WAITING_LIMIT = 20_000

NO_ADDRESS = Fault(
    "zipcode",
    codes.faults.REQUIRED,
    "is required for a new member, and the subscriber of its family (REF*0F of an 834, "
    "the mapping's family of a table) has none that can be used",
)

Address = Mapping[str, object]


class FamilyAddresses:
    """The addresses of the subscribers so far, and the dependents that wait for an address."""

    def __init__(self, *, needs_role: bool = True) -> None:
        """Unless it `needs_role`, a row without a role in the family gives and takes the address
        too.
        """
        self._givers = {"Primary"} if needs_role else {"Primary", None}
        self._needs_role = needs_role
        self._addresses: dict[str, Address] = {}
        self._waiting: list[tuple[Row, str, Address]] = []

    def note(self, row: Row, family: str) -> None:
        """Remember the address of a subscriber with a later row."""
        values = row.values
        if family and "zipcode" in values and values.get("subscriber_relationship") in self._givers:
            if len(self._addresses) >= FAMILIES_LIMIT and family not in self._addresses:
                del self._addresses[next(iter(self._addresses))]
            self._addresses[family] = {name: values[name] for name in ADDRESS if name in values}

    def take(self, row: Row, family: str, before: Address) -> Iterator[Row]:
        """The row, with the address of its subscriber if it needs one; nothing if it has to wait.
        `before` is the address of the subscriber before it, empty without one.
        """
        role = row.values.get("subscriber_relationship")
        may_need = (
            row.action is not Action.END and role != "Primary" and (role or not self._needs_role)
        )
        if not may_need or "zipcode" in row.values:
            self.note(row, family)
            yield row
        elif family and family not in self._addresses and len(self._waiting) < WAITING_LIMIT:
            self._waiting.append((row, family, before))
        else:
            yield self._at_home(row, family, before)

    def rest(self) -> Iterator[Row]:
        """The dependents that have waited, in the order of the file. Call it at its end."""
        for row, family, before in self._waiting:
            yield self._at_home(replace(row, part=None), family, before)
        self._waiting.clear()

    def _at_home(self, row: Row, family: str, before: Address) -> Row:
        address = self._addresses.get(family) or before
        context = row.context
        if not address or address != before:
            row = replace(row, part=None, leans_on_other=True)
        if address:
            warnings = (*row.warnings, MemberWarning.of(codes.rows.ADDRESS_OF_SUBSCRIBER))
            return replace(row, values={**address, **row.values}, warnings=warnings)
        address_of = context.person.family if context.person else ""
        causes = (*context.causes, NO_ADDRESS)
        return replace(row, context=context._replace(address_of=address_of, causes=causes))
