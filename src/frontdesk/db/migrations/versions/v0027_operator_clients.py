"""API clients of operators belong to the installation: they have no account, and the scope `operator` alone.

A client with the scope `operator` and no other leaves its account. One that has scopes of a customer too stays its account's and
loses the scope `operator`, in its live tokens too: its customer's program goes on, and the operator needs another client.
"""

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from frontdesk.clock import system_clock
from frontdesk.db.migrations.ddl import required
from frontdesk.db.schema import Id, UtcTime

revision = "0027"
down_revision = "0026"

OPERATOR = "operator"
FORMER_ACCOUNT = "Operators"  # an older version needs an account for each client

_clients = sa.table("api_clients", *map(sa.column, ("id", "account_id", "client_id", "scopes", "revoked_at")))
_tokens = sa.table("access_tokens", *map(sa.column, ("token_hash", "api_client_id", "scopes")))
_accounts = sa.table(
    "accounts", sa.column("id", Id), sa.column("name"), sa.column("state"), *required(UtcTime(), "created_at")
)


def upgrade() -> None:
    with op.batch_alter_table("api_clients") as batch:
        batch.alter_column("account_id", existing_type=Id, nullable=True)
    connection = op.get_bind()
    rows = list(connection.execute(sa.select(_clients).order_by(_clients.c.id)))
    operators = [row for row in rows if row.scopes == OPERATOR]
    mixed = [row for row in rows if row.scopes != OPERATOR and OPERATOR in row.scopes.split(" ")]
    connection.execute(sa.update(_clients).where(_clients.c.scopes == OPERATOR).values(account_id=None))
    for row in mixed:
        _narrow(row)
    _tell(operators, mixed)


def _narrow(client: Any) -> None:
    """Take the scope away from the client and from its tokens. A token that has no other scope ends."""
    connection = op.get_bind()
    own = _clients.c.id == client.id
    connection.execute(sa.update(_clients).where(own).values(scopes=_customers_own(client.scopes)))
    of_client = _tokens.c.api_client_id == client.id
    for scopes in connection.execute(sa.select(_tokens.c.scopes).where(of_client).distinct()).scalars().all():
        left, same = _customers_own(scopes), of_client & (_tokens.c.scopes == scopes)
        if left:
            connection.execute(sa.update(_tokens).where(same).values(scopes=left))
        else:
            connection.execute(sa.delete(_tokens).where(same))


def _customers_own(scopes: str) -> str:
    return " ".join(word for word in scopes.split(" ") if word != OPERATOR)


def _tell(operators: list[Any], mixed: list[Any]) -> None:
    tell = context.config.attributes["tell"]
    if alive := [row.client_id for row in operators if row.revoked_at is None]:
        tell(
            f"These API clients of operators belong to no account now, and no suspension stops them: {', '.join(alive)}. "
            "End one with: frontdesk client revoke CLIENT_ID"
        )
    if alive := [row.client_id for row in mixed if row.revoked_at is None]:
        tell(
            f"These API clients of customers have lost the scope operator: {', '.join(alive)}. "
            "Make a client for operators with: frontdesk client create --name NAME --scope operator"
        )


def downgrade() -> None:
    """Clients of operators get an account of their own, so that an older version knows them."""
    connection = op.get_bind()
    without = _clients.c.account_id.is_(None)
    if connection.execute(sa.select(_clients.c.id).where(without)).first() is not None:
        account = {"name": FORMER_ACCOUNT, "state": "active", "created_at": system_clock()}
        made = connection.execute(sa.insert(_accounts).values(account).returning(_accounts.c.id)).scalar_one()
        connection.execute(sa.update(_clients).where(without).values(account_id=made))
    with op.batch_alter_table("api_clients") as batch:
        batch.alter_column("account_id", existing_type=Id, nullable=False)
