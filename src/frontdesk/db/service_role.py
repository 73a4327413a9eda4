"""PostgreSQL's two roles: the owner of the tables migrates, and the service role reads and writes
rows (docs/decisions/0104).

The service role can't drop, alter or truncate anything, so no fault in the service can remove the
triggers that keep the history and the audit trail.
"""

from typing import NamedTuple

from sqlalchemy import Connection

from frontdesk import codes
from frontdesk.db.engine import Database
from frontdesk.errors import FrontdeskError

# The rights of the service's statements, and the tables; a lock on a row (FOR UPDATE) needs UPDATE.
_TABLES = {
    "SELECT": "alembic_version",
    "SELECT, UPDATE (written)": "installation",  # `check` and `/readyz` write it, to see whether they can
    # Retention empties and deletes what is old enough; the triggers let nothing else through.
    "SELECT, INSERT, UPDATE (changes)": "member_history",
    "SELECT, INSERT": "event_feeds invitation_events delivery_reports erasures audit_prunings",
    "SELECT, INSERT, UPDATE": (
        "accounts api_clients client_secrets provider_groups plans members invitations "
        "delivery_windows delivery_home worker_status queue_snapshots file_turns "
        "retention_positions uniqueness_probes uniqueness_holders"
    ),
    "SELECT, INSERT, UPDATE, DELETE": (
        "account_usage request_costs request_allowances failed_attempts disclosures people_searches "
        "opened_names encounters duties eligibility_files "
        "eligibility_mappings suppressions file_drafts file_rows webhook_endpoints "
        "users sessions sign_in_attempts known_browsers client_secrets_seen"
    ),
    "SELECT, INSERT, UPDATE (xid), DELETE": "events",  # after a restored backup (events.store.number_anew)
    "SELECT, INSERT, DELETE": (
        "audit_entries deliverability invitation_templates queue_events estimate_log "
        "caught_messages access_tokens file_settings draft_parts file_parts invitation_links "
        "legal_holds file_lists file_unchanged distinct_members stored_answers account_quotas "
        "unproven_addresses "
        "user_invitations password_resets recovery_codes used_forms"
    ),
}
RIGHTS = {
    table: tuple(rights.split(", "))
    for rights, tables in _TABLES.items()
    for table in tables.split()
}
# A worker renews the statistics of these tables after a large file; a role other than the owner can
# since PostgreSQL 17.
ANALYSED = ("invitations", "member_history", "members")
MAINTAIN_SINCE = 170_000
PARAMETERS_GRANTED_SINCE = 150_000

# Roles that add to the audit trail are service roles: a migration gives them their rights to new
# tables.
_SERVICE_ROLES = """
    SELECT r.rolname FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee
    WHERE c.oid = to_regclass('audit_entries') AND a.privilege_type = 'INSERT'
        AND a.grantee <> c.relowner
    ORDER BY 1
"""
_OWNED = """
    SELECT count(*) FROM pg_class
    WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'
        AND relname = ANY(%s) AND pg_has_role(%s, relowner, 'MEMBER')
"""
_HELD = """
    WITH tables AS (
        SELECT oid, relname FROM pg_class
        WHERE relnamespace = quote_ident(current_schema())::regnamespace AND relkind = 'r'
            AND relname = ANY(%s)
    )
    SELECT relname, name FROM tables,
        unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS name
    WHERE has_table_privilege(oid, name)
    UNION ALL
    SELECT relname, 'UPDATE (' || attname || ')' FROM tables JOIN pg_attribute ON attrelid = oid
    WHERE attnum > 0 AND NOT attisdropped AND has_column_privilege(oid, attnum, 'UPDATE')
        AND NOT has_table_privilege(oid, 'UPDATE')
    UNION ALL
    SELECT 'the database', 'TEMPORARY' WHERE has_database_privilege(current_database(), 'TEMPORARY')
    UNION ALL
    SELECT 'the schema', 'CREATE' WHERE has_schema_privilege(current_schema(), 'CREATE')
"""
_OWNS_DATABASE = (
    "SELECT pg_has_role(datdba, 'MEMBER') FROM pg_database WHERE datname = current_database()"
)


def grant_rights(db: Database, role: str) -> None:
    """Give the role exactly the rights that the service needs; safe to run again.

    Call it as the owner of the tables. Raises FrontdeskError on SQLite, and for a role that does
    not exist, or that is the owner, belongs to it or is a superuser.
    """
    if db.is_sqlite:
        raise FrontdeskError(
            "SQLite has no roles: its file belongs to the user that serves.",
            code=codes.operators.NO_ROLES,
        )
    with db.write_schema() as tx:
        if not _owned(tx, _name(tx)):
            what = (
                "Only the owner of the tables gives rights to them. Run this with the owner in "
                "FRONTDESK_DATABASE_URL."
            )
            raise FrontdeskError(what, code=codes.operators.NOT_OWNER)
        if not tx.exec_driver_sql(
            "SELECT count(*) FROM pg_roles WHERE rolname = %s", (role,)
        ).scalar():
            made = f"CREATE ROLE {_quoted(tx, role)} LOGIN PASSWORD '…'"
            raise FrontdeskError(
                f"There is no role of this name. Create it first: {made}",
                code=codes.operators.NO_ROLE,
            )
        if _owned(tx, role):
            what = "This role owns the tables, belongs to the role that does, or is a superuser."
            raise FrontdeskError(
                f"{what} Name another one for the service.", code=codes.operators.OWNER
            )
        tx.exec_driver_sql(
            f"REVOKE ALL ON ALL TABLES IN SCHEMA {_schema(tx)} FROM {_quoted(tx, role)}"
        )
        _grant(tx, role)


def renew_rights(tx: Connection) -> None:
    """After a migration: give the service roles their rights to new tables. No right is removed."""
    for role in tx.exec_driver_sql(_SERVICE_ROLES).scalars().all():
        _grant(tx, role)


class DatabaseRole(NamedTuple):
    """The role of the connections. `owns_tables`: as the owner, as a member of the owner's role, or
    as a superuser.
    """

    name: str
    owns_tables: bool


def current_role(db: Database) -> DatabaseRole | None:
    """None on SQLite. Raises Unavailable."""
    if db.is_sqlite:
        return None
    return db.ask(lambda tx: DatabaseRole(name := _name(tx), _owned(tx, name)))


def wrong_rights(db: Database) -> tuple[list[str], list[str]]:
    """The rights that the role of the connections lacks, and those that the service does not need.
    Raises Unavailable.
    """
    needed = {(table, right) for table, rights in RIGHTS.items() for right in rights}
    needed.add(("the database", "TEMPORARY"))  # large sets come by temporary tables
    rows = db.ask(lambda tx: tx.exec_driver_sql(_HELD, (list(RIGHTS),)).all())
    held = {(table, right) for table, right in rows}
    if db.ask(_may_silence_triggers):
        held.add(("the server", "SET session_replication_role"))
    # A right to a whole table is one to its column too.
    missing = {each for each in needed - held if (each[0], each[1].partition(" ")[0]) not in held}
    lacking, excess = (
        [f"{right} on {table}" for table, right in sorted(each)]
        for each in (missing, held - needed)
    )
    return lacking, excess


def _may_silence_triggers(tx: Connection) -> bool:
    """Whether the role may set session_replication_role, which keeps triggers from running.
    PostgreSQL 14 can't grant that.
    """
    if _version(tx) < PARAMETERS_GRANTED_SINCE:
        return False
    held = "SELECT has_parameter_privilege('session_replication_role', 'SET')"
    return bool(tx.exec_driver_sql(held).scalar_one())


def _version(tx: Connection) -> int:
    return int(tx.exec_driver_sql("SELECT current_setting('server_version_num')::int").scalar_one())


def _name(tx: Connection) -> str:
    return str(tx.exec_driver_sql("SELECT current_user").scalar_one())


def _owned(tx: Connection, role: str) -> bool:
    return bool(tx.exec_driver_sql(_OWNED, (list(RIGHTS), role)).scalar())


def _grant(tx: Connection, role: str) -> None:
    schema = _schema(tx)
    to = f"TO {_quoted(tx, role)}"
    statements = [
        f"GRANT USAGE ON SCHEMA {schema} {to}",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} {to}",
        *(
            f"GRANT {', '.join(rights)} ON {schema}.{table} {to}"
            for table, rights in RIGHTS.items()
        ),
    ]
    if _version(tx) >= MAINTAIN_SINCE:
        statements += [f"GRANT MAINTAIN ON {schema}.{table} {to}" for table in ANALYSED]
    if tx.exec_driver_sql(_OWNS_DATABASE).scalar():
        name = str(tx.exec_driver_sql("SELECT current_database()").scalar_one())
        statements.append(f"GRANT CONNECT, TEMPORARY ON DATABASE {_quoted(tx, name)} {to}")
    for statement in statements:
        tx.exec_driver_sql(statement)


def _schema(tx: Connection) -> str:
    return _quoted(tx, str(tx.exec_driver_sql("SELECT current_schema()").scalar_one()))


def _quoted(tx: Connection, name: str) -> str:
    """The name as a statement for the driver has it, with each % doubled."""
    return tx.dialect.identifier_preparer.quote_identifier(name)
