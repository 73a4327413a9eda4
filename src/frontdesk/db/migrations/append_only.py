"""Triggers that keep rows from being changed or deleted. Never change what is made here once it is deployed.

Two changes are let through: an entry of the history loses its values once its member is erased or the entry is six years old,
and the oldest audit entries go after six years (45 CFR 164.316(b)(2)) when their chain is kept. The triggers look at the rows,
not at the user, so this holds for every role (docs/decisions/0109).
"""

from alembic import op

# Tables to which rows are only added, and the column that names a row.
APPEND_ONLY = {
    "member_history": "id",
    "audit_entries": "id",
    "erasures": "member_id",
    "audit_prunings": "through_id",
}
# What a history entry keeps of its values: the plan and the days of access.
KEPT = "('plan_id', 'effective_date', 'expiry_date', 'expiry_before_absence')"
_SAME = ("id", "member_id", "outcome", "plan_id", "client", "request_id", "file_id", "changed_at")

_FUNCTIONS = f"""
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;
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
_KEEPS_VALUES = (
    f"(SELECT json_group_object(key, json(value)) FROM json_each(OLD.changes) WHERE key IN {KEPT})"  # noqa: S608
)
_IS_ERASED = "EXISTS (SELECT 1 FROM erasures WHERE member_id = OLD.member_id)"
_IS_PRUNED = "EXISTS (SELECT 1 FROM audit_prunings WHERE through_id >= OLD.id)"
# SQLite's condition for a change that is let through, by trigger.
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


def guard() -> None:
    """Create the triggers of all APPEND_ONLY tables."""
    if op.get_bind().dialect.name == "sqlite":
        for table, column in APPEND_ONLY.items():
            _guard_on_sqlite(table, column)
    else:
        _guard_on_postgresql()


def drop_functions() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_change, guard_member_history, guard_audit_entries, without_values")


def _guard_on_sqlite(table: str, column: str) -> None:
    refusal = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    for change in ("UPDATE", "DELETE"):
        trigger = f"{table}_no_{change.lower()}"
        condition = _LETS_THROUGH.get(trigger)
        when = f"WHEN NOT ({condition}) " if condition else ""
        op.execute(f"CREATE TRIGGER {trigger} BEFORE {change} ON {table} {when}{refusal}")
    # INSERT OR REPLACE deletes without a trigger. An id that is still to be given is -1 here.
    given = "NEW.id > 0 AND " if column == "id" else ""
    op.execute(
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {given}EXISTS "  # noqa: S608 - constants only
        f"(SELECT 1 FROM {table} WHERE {column} = NEW.{column}) {refusal}"
    )


def _guard_on_postgresql() -> None:
    """ON CONFLICT DO UPDATE is an update here, and refused as one."""
    op.execute(_FUNCTIONS)
    whole = "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
    for table in ("member_history", "audit_entries"):
        row = f"FOR EACH ROW EXECUTE FUNCTION guard_{table}()"
        op.execute(f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table} {row}")
        op.execute(f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} {whole}")
    for table in ("erasures", "audit_prunings"):
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} {whole}"
        )
