"""The table of what holds for the whole database."""

import sqlalchemy as sa

from frontdesk.db.schema import key, metadata, optional, required

# One row: the uniqueness rule of this database (a server with another rule refuses to start on it),
# the key of the digests of files' rows, and what `db.write_probe` writes. `compatible_since` is the
# oldest revision whose program can use this schema.
installation = sa.Table(
    "installation",
    metadata,
    *key(sa.Integer(), "id"),
    *required(sa.String(7), "uniqueness"),
    *required(sa.String(64), "row_digest_key"),
    *required(sa.String(4), "compatible_since"),
    *optional(sa.LargeBinary(), "written"),
)
