"""A noun's tables are named in its own SQL. What names the table of another noun stands here, with
the reason.
"""

import ast
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

from sqlalchemy import Table

from frontdesk.db.schema import load_tables

PACKAGE = Path(__file__).parents[2] / "src/frontdesk"
NAMED = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|USING|TABLE)\s+(?:ONLY\s+)?(\w+)")

# The noun of the statement, and the noun of the table.
OF_OTHERS = {
    ("events", "access"): "one statement claims the endpoints whose account is not suspended",
    ("invitations", "access"): "one statement finds what may leave, by the accounts' limits",
    ("invitations", "plans"): "one statement finds what may leave, and names the plan in a message",
    (
        "plans",
        "access",
    ): "one read in the first statement of a chunk: a plan's owner and its settings",
    ("users", "access"): (
        "one read of a session sees a suspended account; which clients' secrets a user saw"
    ),
    ("queues", "plans"): "the doctors of a provider group serve its plans: one query for a picture",
}
# SQLite gives the id of a deleted row to the next one (db.schema.NEVER_REUSED). Why that does no harm here.
ROWS_STAY = "no row is deleted"
OLDEST_GO = "only the oldest are deleted, and the newest stays"
NOWHERE_ELSE = "the id stands nowhere else after its row is deleted"
REUSED_IDS = {
    "accounts": ROWS_STAY,
    "api_clients": ROWS_STAY,
    "audit_entries": OLDEST_GO,
    "client_secrets": ROWS_STAY,
    "delivery_home": ROWS_STAY,
    "disclosures": NOWHERE_ELSE,
    "duties": NOWHERE_ELSE,
    "encounters": NOWHERE_ELSE,
    "estimate_log": NOWHERE_ELSE,
    "failed_attempts": "a sign-in that has counted its failure is done within a minute",
    "installation": ROWS_STAY,
    "invitation_events": ROWS_STAY,
    "invitations": ROWS_STAY,
    "member_history": ROWS_STAY,
    "members": ROWS_STAY,
    "opened_names": NOWHERE_ELSE,
    "people_searches": NOWHERE_ELSE,
    "plans": ROWS_STAY,
    "provider_groups": ROWS_STAY,
    "stored_answers": NOWHERE_ELSE,
    "worker_status": NOWHERE_ELSE,
}
# They erase, export, prune or reset rows of every noun; privacy.classification lists the tables.
OF_ALL = {"privacy", "sandbox"}


def owners() -> dict[str, str]:
    """The noun of each table, which is the folder of the module that declares it."""
    found = {}
    for path in PACKAGE.glob("*/tables.py"):
        noun = path.parent.name
        declared = vars(import_module(f"frontdesk.{noun}.tables")).values()
        text = path.read_text()
        for table in declared:
            if isinstance(table, Table) and f'"{table.name}",' in text:
                found[table.name] = noun
    return found


def tables_in(source: str, names: set[str]) -> set[str]:
    """The tables that the SQL texts of the source name, and those that it imports."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= names.intersection(NAMED.findall(node.value))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".tables"):
            found |= names.intersection(alias.name for alias in node.names)
    return found


def test_every_table_has_a_noun() -> None:
    assert owners().keys() == load_tables().tables.keys()


def test_no_statement_names_a_table_of_another_noun_unless_it_is_listed() -> None:
    by_noun = owners()
    named: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        noun = path.relative_to(PACKAGE).parts[0]
        for table in tables_in(path.read_text(), set(by_noun)):
            if by_noun[table] != noun and noun not in OF_ALL and noun != "db":
                named[noun, by_noun[table]].add(f"{path.relative_to(PACKAGE)}: {table}")
    assert {pair: where for pair, where in named.items() if pair not in OF_OTHERS} == {}
    assert OF_OTHERS.keys() - named.keys() == set()


def test_the_tables_of_a_text_and_of_an_import_are_found() -> None:
    source = 'from frontdesk.plans.tables import plans\nSQL = f"SELECT 1 FROM accounts AS a"'
    assert tables_in(source, {"plans", "accounts", "members"}) == {"plans", "accounts"}


def test_an_id_is_given_to_no_other_row_unless_the_table_is_listed() -> None:
    tables = load_tables().tables.values()
    numbered = [each for each in tables if [column.name for column in each.primary_key] == ["id"]]
    reused = {
        each.name for each in numbered if not each.dialect_options["sqlite"].get("autoincrement")
    }
    assert reused == REUSED_IDS.keys()
