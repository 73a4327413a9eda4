"""The SQL of addresses that support entered without proof."""

from collections.abc import Collection

from sqlalchemy import delete, insert, select

from frontdesk.db import Tx
from frontdesk.invitations.tables import unproven_addresses

_u = unproven_addresses.c


def list_unproven(tx: Tx, member_ids: Collection[int]) -> set[tuple[int, str]]:
    """The unproven addresses of the members, folded, each with its member; a member has few."""
    query = select(_u.member_id, _u.address_folded).where(_u.member_id.in_(sorted(member_ids)))
    return {(member_id, address) for member_id, address in tx.execute(query)}


def add_unproven(tx: Tx, member_id: int, address_folded: str) -> None:
    row = {"member_id": member_id, "address_folded": address_folded}
    tx.execute(insert(unproven_addresses).values(row))


def delete_unproven(tx: Tx, member_id: int, address_folded: str) -> None:
    mine = (_u.member_id == member_id, _u.address_folded == address_folded)
    tx.execute(delete(unproven_addresses).where(*mine))
