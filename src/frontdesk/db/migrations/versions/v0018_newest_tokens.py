"""An index finds a client's newest tokens, of which a number may live."""

from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_index(
        "ix_access_tokens_api_client_id_expires_at", "access_tokens", ["api_client_id", "expires_at"]
    )
    op.drop_index("ix_access_tokens_api_client_id", "access_tokens")


def downgrade() -> None:
    op.create_index("ix_access_tokens_api_client_id", "access_tokens", ["api_client_id"])
    op.drop_index("ix_access_tokens_api_client_id_expires_at", "access_tokens")
