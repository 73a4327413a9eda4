"""Members can be erased and held, and what is old enough goes: the one door in what could only be added to.

An entry of the history may lose its values, and nothing else, once its member is erased or when it is six years old. The oldest
entries of the audit trail may go when they are six years old (45 CFR 164.316(b)(2)) and their chain is kept. The triggers look
at the rows and not at the user, so the door is the same for every role (docs/decisions/0109).
"""

import sqlalchemy as sa
from alembic import op

from frontdesk.db.migrations.ddl import key, refuse_changes, required
from frontdesk.db.schema import Id, UtcTime

revision = "0020"
down_revision = "0019"

GUARDED = ("member_history", "audit_entries")
NEW_APPEND_ONLY = ("erasures", "audit_prunings")
# What an entry without values keeps: the plan and the days of access.
KEPT = "('plan_id', 'effective_date', 'expiry_date', 'expiry_before_absence')"
_SAME = ("id", "member_id", "outcome", "plan_id", "client", "request_id", "file_id", "changed_at")

_FUNCTIONS = f"""
CREATE FUNCTION without_values(changes json) RETURNS json LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(json_object_agg(key, value), '{{}}') FROM json_each(changes) WHERE key IN {KEPT}
$$;
CREATE FUNCTION guard_member_history() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'UPDATE' AND ROW({", ".join(f"NEW.{name}" for name in _SAME)}) IS NOT DISTINCT FROM
      ROW({", ".join(f"OLD.{name}" for name in _SAME)})
    AND NEW.changes::text = without_values(OLD.changes)::text
    AND (OLD.changed_at < now() - interval '6 years' OR EXISTS (SELECT FROM erasures WHERE member_id = OLD.member_id))
  THEN RETURN NEW; END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE FUNCTION guard_audit_entries() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'DELETE' AND OLD.at < now() - interval '6 years'
    AND EXISTS (SELECT FROM audit_prunings WHERE through_id >= OLD.id)
  THEN RETURN OLD; END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
"""  # noqa: S608

_IS_OLD = "substr({}, 1, 10) < date('now', '-6 years')"
# SQLite's condition for a change that is let through, by trigger.
_KEEPS_VALUES = (
    f"(SELECT json_group_object(key, json(value)) FROM json_each(OLD.changes) WHERE key IN {KEPT})"  # noqa: S608
)
_IS_ERASED = "EXISTS (SELECT 1 FROM erasures WHERE member_id = OLD.member_id)"
_IS_PRUNED = "EXISTS (SELECT 1 FROM audit_prunings WHERE through_id >= OLD.id)"
_LETS_THROUGH = {
    "member_history_no_update": " AND ".join(
        (
            *(f"NEW.{name} IS OLD.{name}" for name in _SAME),
            f"NEW.changes = {_KEEPS_VALUES}",
            f"({_IS_OLD.format('OLD.changed_at')} OR {_IS_ERASED})",
        )
    ),
    "audit_entries_no_delete": f"{_IS_OLD.format('OLD.at')} AND {_IS_PRUNED}",
}


def upgrade() -> None:
    _create_tables()
    op.create_index("ix_invitation_links_invitation_id", "invitation_links", ["invitation_id"])
    for table in NEW_APPEND_ONLY:
        refuse_changes(table)
    if op.get_bind().dialect.name == "sqlite":
        for table in NEW_APPEND_ONLY:
            _refuse_replacing(table)
        for trigger, condition in _LETS_THROUGH.items():
            _guard_on_sqlite(trigger, condition)
        return
    op.execute(_FUNCTIONS)
    for table in GUARDED:
        op.execute(f"DROP TRIGGER {table}_append_only ON {table}")
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION guard_{table}()"
        )
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        )


def downgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for table in GUARDED:
        names = ("no_update", "no_delete") if is_sqlite else ("append_only", "no_truncate")
        for name in names:
            op.execute(f"DROP TRIGGER {table}_{name}" + ("" if is_sqlite else f" ON {table}"))
        refuse_changes(table)
    if not is_sqlite:
        op.execute(
            "DROP FUNCTION guard_member_history, guard_audit_entries; DROP FUNCTION without_values(json)"
        )
    op.drop_index("ix_invitation_links_invitation_id", "invitation_links")
    for table in ("retention_positions", "legal_holds", *NEW_APPEND_ONLY):
        op.drop_table(table)


def _create_tables() -> None:
    op.create_table(
        "erasures",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(UtcTime(), "erased_at"),
        *required(sa.String(9), "cause"),
        *required(sa.String(64), "actor", "request_id"),
    )
    op.create_table(
        "legal_holds",
        *key(Id, "member_id", to="members.id"),
        *required(Id, "account_id"),
        *required(sa.String(100), "reference"),
        *required(UtcTime(), "held_at"),
        *required(sa.String(64), "actor"),
        sa.Index(None, "account_id"),
    )
    op.create_table(
        "audit_prunings",
        sa.Column("through_id", Id, primary_key=True, autoincrement=False),
        *required(sa.String(64), "chain"),
        *required(UtcTime(), "pruned_at"),
    )
    op.create_table(
        "retention_positions",
        *key(sa.String(32), "kind"),
        *required(Id, "position"),
    )


def _guard_on_sqlite(trigger: str, condition: str) -> None:
    table, _, change = trigger.rpartition("_no_")
    op.execute(f"DROP TRIGGER {trigger}")
    op.execute(
        f"CREATE TRIGGER {trigger} BEFORE {change.upper()} ON {table} WHEN NOT ({condition}) "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


def _refuse_replacing(table: str) -> None:
    """As migration 0006 does: INSERT OR REPLACE deletes without a trigger."""
    id_ = "member_id" if table == "erasures" else "through_id"
    op.execute(
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS "  # noqa: S608
        f"(SELECT 1 FROM {table} WHERE {id_} = NEW.{id_}) BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )
