"""The history of a member names the file that changed it in a column of its own, no longer in the request id.

A caller chooses its request id, so a POST could carry the one that meant a file. Such a POST is in the audit trail by member,
request id and time, a row of a file is not; so its history is left as it is.
"""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import changing_append_only, optional
from frontdesk.db.schema import Id, UtcTime

revision = "0011"
down_revision = "0010"

TOGETHER = 20_000  # rows, so that no statement takes as long as PostgreSQL lets one take

_posted = sa.Table(
    "posted_as_file",
    sa.MetaData(),
    sa.Column("subject_id", Id, index=True),
    sa.Column("request_id", sa.String(64)),
    sa.Column("at", UtcTime),
    prefixes=["TEMPORARY"],
)

_COLLECT = """INSERT INTO posted_as_file SELECT subject_id, request_id, at FROM audit_entries
WHERE id > :after AND id <= :until AND request_id LIKE 'file-%' AND action LIKE 'eligibility.%'"""

_CONVERT = """UPDATE member_history SET file_id = f.id, request_id = f.request_id FROM eligibility_files f
WHERE member_history.id > :after AND member_history.id <= :until AND member_history.request_id = 'file-' || f.id
AND NOT EXISTS (SELECT 1 FROM posted_as_file p WHERE p.subject_id = member_history.member_id
  AND p.request_id = member_history.request_id AND p.at = member_history.changed_at)"""

_CONVERT_BACK = """UPDATE member_history SET request_id = 'file-' || file_id
WHERE id > :after AND id <= :until AND file_id IS NOT NULL"""


def upgrade() -> None:
    op.add_column("member_history", *optional(Id, "file_id"))
    _posted.create(op.get_bind())
    _in_batches("audit_entries", _COLLECT)
    with changing_append_only("member_history"):
        _in_batches("member_history", _CONVERT)
    _posted.drop(op.get_bind())


def downgrade() -> None:
    with changing_append_only("member_history"):
        _in_batches("member_history", _CONVERT_BACK)
    op.execute("ALTER TABLE member_history DROP COLUMN file_id")


def _in_batches(table: str, statement: str) -> None:
    connection = op.get_bind()
    last = connection.exec_driver_sql(f"SELECT coalesce(max(id), 0) FROM {table}").scalar_one()  # noqa: S608 - constants only
    for after in range(0, last, TOGETHER):
        connection.execute(sa.text(statement), {"after": after, "until": after + TOGETHER})
