"""Addresses with letters beyond ASCII are folded anew: their domain is compared in its IDNA form (docs/decisions/0102).

Members whose addresses are now the same one keep their records. The one with the lowest id is found by the address, one that was
folded so already goes before it; the others keep their old folding and are told of, in the audit trail too.
"""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import context, op

from frontdesk.clock import system_clock
from frontdesk.db.schema import Id, Json, UtcTime
from frontdesk.text import fold_email

revision = "0013"
down_revision = "0012"

TOGETHER = 20_000  # ids, so that no statement takes as long as PostgreSQL lets one take

_members = sa.table(
    "members", *map(sa.column, ("id", "account_id", "uniqueness_scope", "email", "email_folded"))
)
_invitations = sa.table("invitations", *map(sa.column, ("id", "address", "address_folded")))
_suppressions = sa.table(
    "suppressions",
    sa.column("address_folded", sa.String),
    sa.column("reason", sa.String),
    sa.column("created_at", UtcTime),
)
_audit = sa.table(
    "audit_entries",
    sa.column("at", UtcTime),
    sa.column("detail", Json),
    sa.column("account_id", Id),
    sa.column("subject_id", Id),
    *(sa.column(name, sa.String) for name in ("actor", "action", "request_id")),
)


def upgrade() -> None:
    connection = op.get_bind()
    collisions = [found for rows in _beyond_ascii(_members, "email_folded") for found in _fold_members(rows)]
    for rows in _beyond_ascii(_invitations, "address_folded"):
        for row in rows:
            _set(_invitations, row.id, address_folded=fold_email(row.address))
    _fold_suppressions(connection)
    if collisions:
        connection.execute(sa.insert(_audit), collisions)
        context.config.attributes["tell"](
            f"{len(collisions)} members have an e-mail address that is another member's in another spelling. They keep it, and "
            "a record that sends it for them is refused. List them with: frontdesk audit list (member.address_shared)."
        )


def downgrade() -> None:
    """An older version folds a member's address anew when the member is written."""


def _beyond_ascii(table: sa.TableClause, folded: str) -> Iterator[list[Any]]:
    """The rows of the table whose folding has more than ASCII, in batches of ids."""
    connection = op.get_bind()
    last = connection.execute(sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0))).scalar_one()
    column = table.c[folded]
    for after in range(0, last, TOGETHER):
        is_of_batch = (table.c.id > after) & (table.c.id <= after + TOGETHER)
        query = sa.select(table).where(is_of_batch, sa.func.octet_length(column) != sa.func.length(column))
        yield list(connection.execute(query.order_by(table.c.id)))


def _fold_members(rows: list[Any]) -> Iterator[dict[str, Any]]:
    """Fold the members; yields an audit entry for each that has to keep its old folding."""
    connection, columns = op.get_bind(), _members.c
    folded = {row.id: fold_email(row.email) for row in rows}
    key = sa.select(columns.email_folded, columns.uniqueness_scope, columns.id)
    taken = {
        (row[0], row[1]): row[2]
        for row in connection.execute(key.where(columns.email_folded.in_(folded.values())))
    }
    for row in rows:
        holder = taken.setdefault((folded[row.id], row.uniqueness_scope), row.id)
        if holder == row.id:
            _set(_members, row.id, email_folded=folded[row.id])
        else:
            shared = {
                "action": "member.address_shared",
                "subject_id": row.id,
                "detail": {"member_id": holder},
            }
            by = {"actor": "migration", "request_id": "migration-0013"}
            yield shared | by | {"at": system_clock(), "account_id": row.account_id}


def _set(table: sa.TableClause, id_: int, **values: str) -> None:
    op.get_bind().execute(sa.update(table).where(table.c.id == id_).values(**values))


def _fold_suppressions(connection: sa.Connection) -> None:
    """An address that is on the list in two spellings stays on it once, with the earlier reason."""
    columns = _suppressions.c
    column = columns.address_folded
    beyond = sa.select(_suppressions).where(sa.func.octet_length(column) != sa.func.length(column))
    for row in list(connection.execute(beyond.order_by(columns.created_at))):
        folded = fold_email(row.address_folded)
        if folded == row.address_folded:
            continue
        stored = connection.execute(sa.select(_suppressions).where(column == folded)).first()
        if stored is None:
            connection.execute(
                sa.update(_suppressions).where(column == row.address_folded).values(address_folded=folded)
            )
            continue
        connection.execute(sa.delete(_suppressions).where(column == row.address_folded))
        if row.created_at < stored.created_at:
            earlier = {"reason": row.reason, "created_at": row.created_at}
            connection.execute(sa.update(_suppressions).where(column == folded).values(**earlier))
