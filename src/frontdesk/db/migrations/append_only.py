"""Triggers that keep rows from being changed or deleted: what they are, how they are made, and
which of them are damaged.

Two changes are let through: an entry of the history loses its values once its member is erased or
the entry is six years old, and the oldest audit entries go after six years (45 CFR 164.316(b)(2))
when their chain is kept. The triggers look at the rows, not at the user, so this holds for every
role (docs/decisions/0109).

PostgreSQL looks for tables and types in the session's temporary schema first, and a session sets
its own search_path. So each function has a search_path of its own, without the tables' schema, and
names its tables and functions with that schema: nothing that a session makes or sets is found in
their place.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection

# Tables to which rows are only added, and the column that names a row.
APPEND_ONLY = {
    "member_history": "id",
    "audit_entries": "id",
    "erasures": "member_id",
    "audit_prunings": "through_id",
}
# What a history entry keeps of its values: the plan and the days of access.
_KEPT_KEYS = ("plan_id", "effective_date", "expiry_date", "expiry_before_absence")
KEPT = ", ".join(f"'{key}'" for key in _KEPT_KEYS)
_SAME = ("id", "member_id", "outcome", "plan_id", "client", "request_id", "file_id", "changed_at")

# pg_temp stands last: where it isn't named, PostgreSQL looks there first for tables and types.
GUARD_SEARCH_PATH = "pg_catalog, pg_temp"


@dataclass(frozen=True, slots=True)
class GuardFunction:
    """A function of PostgreSQL that a guard calls. In `body`, `{schema}` stands for the quoted
    schema of the tables.
    """

    name: str
    returns: str
    language: str
    body: str
    argument_types: str = ""
    arguments: str = ""
    volatility: str = "VOLATILE"


@dataclass(frozen=True, slots=True)
class GuardTrigger:
    """A trigger of PostgreSQL. It runs before each of the `events`, for each row or once for a
    statement.
    """

    name: str
    table: str
    events: tuple[str, ...]
    function: str
    for_each_row: bool = False

    def event_bits(self) -> int:
        """The value of pg_trigger.tgtype."""
        bits = _TGTYPE_BEFORE
        if self.for_each_row:
            bits |= _TGTYPE_ROW
        for event in self.events:
            bits |= _TGTYPE_EVENTS[event]
        return bits


# The bits of pg_trigger.tgtype (PostgreSQL's catalog/pg_trigger.h).
_TGTYPE_ROW = 1
_TGTYPE_BEFORE = 2
_TGTYPE_EVENTS = {"DELETE": 8, "UPDATE": 16, "TRUNCATE": 32}

_REFUSE = "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;"

FUNCTIONS = (
    GuardFunction("refuse_change", "pg_catalog.trigger", "plpgsql", f"BEGIN {_REFUSE} END"),
    GuardFunction(
        "without_values",
        "pg_catalog.json",
        "sql",
        f"""
  SELECT coalesce(pg_catalog.json_object_agg(key, value), '{{{{}}}}') FROM pg_catalog.json_each(changes)
  WHERE key OPERATOR(pg_catalog.=) ANY (ARRAY[{KEPT}]::pg_catalog.text[])
""",  # noqa: S608 - constants only
        argument_types="json",
        arguments="changes pg_catalog.json",
        volatility="IMMUTABLE",
    ),
    GuardFunction(
        "guard_member_history",
        "pg_catalog.trigger",
        "plpgsql",
        f"""BEGIN
  IF TG_OP = 'UPDATE'
    AND ROW({", ".join(f"NEW.{name}" for name in _SAME)})
      IS NOT DISTINCT FROM ROW({", ".join(f"OLD.{name}" for name in _SAME)})
    AND NEW.changes::pg_catalog.text = {{schema}}.without_values(OLD.changes)::pg_catalog.text
    AND (
      OLD.changed_at < pg_catalog.now() - interval '6 years'
      OR EXISTS (SELECT FROM {{schema}}.erasures WHERE member_id = OLD.member_id)
    )
  THEN RETURN NEW; END IF;
  {_REFUSE}
END""",
    ),
    GuardFunction(
        "guard_audit_entries",
        "pg_catalog.trigger",
        "plpgsql",
        f"""BEGIN
  IF TG_OP = 'DELETE'
    AND OLD.at < pg_catalog.now() - interval '6 years'
    AND EXISTS (SELECT FROM {{schema}}.audit_prunings WHERE through_id >= OLD.id)
  THEN RETURN OLD; END IF;
  {_REFUSE}
END""",
    ),
)
TRIGGERS = (
    GuardTrigger(
        "member_history_append_only",
        "member_history",
        ("UPDATE", "DELETE"),
        "guard_member_history",
        for_each_row=True,
    ),
    GuardTrigger("member_history_no_truncate", "member_history", ("TRUNCATE",), "refuse_change"),
    GuardTrigger(
        "audit_entries_append_only",
        "audit_entries",
        ("UPDATE", "DELETE"),
        "guard_audit_entries",
        for_each_row=True,
    ),
    GuardTrigger("audit_entries_no_truncate", "audit_entries", ("TRUNCATE",), "refuse_change"),
    # ON CONFLICT DO UPDATE and MERGE are updates here, and refused as ones.
    GuardTrigger(
        "erasures_append_only", "erasures", ("UPDATE", "DELETE", "TRUNCATE"), "refuse_change"
    ),
    GuardTrigger(
        "audit_prunings_append_only",
        "audit_prunings",
        ("UPDATE", "DELETE", "TRUNCATE"),
        "refuse_change",
    ),
)

_IS_OLD = "substr({}, 1, 10) < date('now', '-6 years')"
_KEEPS_VALUES = (
    "(SELECT json_group_object(key, json(value)) FROM json_each(OLD.changes) "  # noqa: S608
    f"WHERE key IN ({KEPT}))"
)
_IS_ERASED = "EXISTS (SELECT 1 FROM erasures WHERE member_id = OLD.member_id)"
_IS_PRUNED = "EXISTS (SELECT 1 FROM audit_prunings WHERE through_id >= OLD.id)"
# SQLite's condition for a change that is let through, by trigger. A name in a trigger is one of the
# trigger's own database there, never of a temporary table.
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

_FOUND_FUNCTIONS = """
    SELECT p.proname, oidvectortypes(p.proargtypes), p.prosrc, coalesce(p.proconfig, '{}'),
        l.lanname, p.prosecdef, format_type(p.prorettype, NULL)
    FROM pg_catalog.pg_proc p
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang
    WHERE n.nspname = current_schema() AND p.proname = ANY(%s)
"""
_FOUND_TRIGGERS = """
    SELECT c.relname, t.tgname, t.tgtype, p.proname, p.pronamespace = c.relnamespace,
        t.tgenabled IN ('O', 'A'), t.tgqual IS NULL AND t.tgattr::text = ''
    FROM pg_catalog.pg_trigger t
    JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
    WHERE n.nspname = current_schema() AND c.relname = ANY(%s) AND NOT t.tgisinternal
"""


def make_guards(connection: Connection) -> None:
    """Create the triggers of all APPEND_ONLY tables, and their functions; those that are there are
    made anew.
    """
    if connection.dialect.name == "sqlite":
        for name, statement in _sqlite_triggers().items():
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {name}")
            connection.exec_driver_sql(statement)
        return
    schema = _quoted_schema(connection)
    for function in FUNCTIONS:
        _execute(connection, _create_function(function, schema))
    for trigger in TRIGGERS:
        _execute(connection, f"DROP TRIGGER IF EXISTS {trigger.name} ON {schema}.{trigger.table}")
        _execute(connection, _create_trigger(trigger, schema))


def drop_functions(connection: Connection) -> None:
    """Drop the functions of the guards; their triggers go with the tables, before."""
    if connection.dialect.name == "postgresql":
        schema = _quoted_schema(connection)
        functions = [f"{schema}.{each.name}({each.argument_types})" for each in FUNCTIONS]
        _execute(connection, f"DROP FUNCTION {', '.join(functions)}")


def damaged_guards(connection: Connection) -> list[str]:
    """The guards that are missing, disabled or not what this program makes, each as `what is wrong`
    in a few words.
    """
    if connection.dialect.name == "sqlite":
        return list(_damage_on_sqlite(connection))
    return [*_damaged_functions(connection), *_damaged_triggers(connection)]


def _damage_on_sqlite(connection: Connection) -> Iterator[str]:
    rows = connection.exec_driver_sql(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).all()
    found = {row.name: row.sql for row in rows}
    for name, statement in _sqlite_triggers().items():
        if name not in found:
            yield f"the trigger {name} is missing"
        elif found[name] != statement:
            yield f"the trigger {name} was changed"


def _damaged_functions(connection: Connection) -> Iterator[str]:
    names = [each.name for each in FUNCTIONS]
    rows = connection.exec_driver_sql(_FOUND_FUNCTIONS, (names,)).all()
    found = {(name, types): tuple(rest) for name, types, *rest in rows}
    schema = _quoted_schema(connection)
    for function in FUNCTIONS:
        named = f"the function {function.name}"
        returns = function.returns.removeprefix("pg_catalog.")
        identity = (function.name, function.argument_types)
        if identity not in found:
            yield f"{named} is missing"
            continue
        source, settings, *kind = found[identity]
        is_same_text = source == function.body.format(schema=schema)
        if list(settings) != [f"search_path={GUARD_SEARCH_PATH}"]:
            yield (
                f"{named} has not its own search_path, so that a session can put a table in place "
                "of another"
            )
        elif not is_same_text or kind != [function.language, False, returns]:
            yield f"{named} was changed"


def _damaged_triggers(connection: Connection) -> Iterator[str]:
    rows = connection.exec_driver_sql(_FOUND_TRIGGERS, (list(APPEND_ONLY),)).all()
    found = {(table, name): tuple(rest) for table, name, *rest in rows}
    for trigger in TRIGGERS:
        named = f"the trigger {trigger.name} of {trigger.table}"
        if (trigger.table, trigger.name) not in found:
            yield f"{named} is missing"
            continue
        bits, function, is_of_schema, is_enabled, is_unconditional = found[
            trigger.table, trigger.name
        ]
        is_same = bits == trigger.event_bits() and function == trigger.function
        if not is_enabled:
            yield f"{named} is disabled"
        elif not (is_same and is_of_schema and is_unconditional):
            yield f"{named} was changed"


def _create_function(function: GuardFunction, schema: str) -> str:
    body = function.body.format(schema=schema)
    return (
        f"CREATE OR REPLACE FUNCTION {schema}.{function.name}({function.arguments}) RETURNS "
        f"{function.returns} LANGUAGE {function.language} {function.volatility} SECURITY INVOKER "
        f"SET search_path = {GUARD_SEARCH_PATH} AS $guard${body}$guard$"
    )


def _create_trigger(trigger: GuardTrigger, schema: str) -> str:
    each = "ROW" if trigger.for_each_row else "STATEMENT"
    return (
        f"CREATE TRIGGER {trigger.name} BEFORE {' OR '.join(trigger.events)} ON {schema}.{trigger.table} "
        f"FOR EACH {each} EXECUTE FUNCTION {schema}.{trigger.function}()"
    )


def _sqlite_triggers() -> dict[str, str]:
    """The statement that makes each trigger, by the trigger's name."""
    made = {}
    for table, column in APPEND_ONLY.items():
        refusal = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for change in ("UPDATE", "DELETE"):
            name = f"{table}_no_{change.lower()}"
            condition = _LETS_THROUGH.get(name)
            when = f"WHEN NOT ({condition}) " if condition else ""
            made[name] = f"CREATE TRIGGER {name} BEFORE {change} ON {table} {when}{refusal}"
        # INSERT OR REPLACE deletes without a trigger. An id that is still to be given is -1 here.
        given = "NEW.id > 0 AND " if column == "id" else ""
        is_there = f"SELECT 1 FROM {table} WHERE {column} = NEW.{column}"  # noqa: S608 - constants only
        name = f"{table}_no_replace"
        made[name] = (
            f"CREATE TRIGGER {name} BEFORE INSERT ON {table} WHEN {given}EXISTS ({is_there}) {refusal}"
        )
    return made


def _execute(connection: Connection, statement: str) -> None:
    """Run a statement without parameters: to the driver, % begins one."""
    connection.exec_driver_sql(statement.replace("%", "%%"))


def _quoted_schema(connection: Connection) -> str:
    """The schema in which migrate makes the tables, as a statement names it."""
    name = str(connection.exec_driver_sql("SELECT pg_catalog.current_schema()").scalar_one())
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
