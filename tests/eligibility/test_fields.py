"""A line in the table of fields is all that a field needs: it is parsed, stored, described and
found in files.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from frontdesk.db import Database
from tests.factories import Customer
from tests.tree_copy import ROOT, TreeCopy, run_python

LAST_FIELD = '    Field(\n        "metadata",'
NEW_FIELD = '    Field("nickname", SHORT_TEXT, "Nickname.", example="Robbie"),\n'


@pytest.fixture(scope="module")
def with_nickname(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose table of fields has one line more."""
    copy = TreeCopy(tmp_path_factory.mktemp("tree"))
    copy.insert("src/frontdesk/eligibility/fields.py", NEW_FIELD, before=LAST_FIELD)
    return copy.folder


def found_in(tree: Path, *arguments: str) -> dict[str, Any]:
    ran = run_python(tree, "-m", "tests.eligibility.new_field", *arguments)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_a_new_field_is_parsed_stored_and_described(with_nickname: Path, tmp_path: Path) -> None:
    found = found_in(with_nickname, "new", f"sqlite:///{tmp_path}/members.db")
    described = {
        "type": ["string", "null"],
        "maxLength": 255,
        "description": "Nickname. null or blank clears it.",
        "examples": ["Robbie"],
    }
    assert found.pop("described") == {
        "NewMember": described,
        "MemberChange": described,
        "EligibilityRecord": {"type": ["string", "null"]},
    }
    assert found == {
        "ignored": [],
        "stored": "Robbie",
        "history": [None, "Robbie"],
        "column": "nickname",
    }


def test_a_new_field_is_filled_by_a_file_that_was_loaded_before(
    with_nickname: Path, owner: Database, database_url: str, customer: Customer
) -> None:
    arguments = ("load", database_url, str(customer.account_id), str(customer.plan_ids[0]))
    before = found_in(ROOT, *arguments)
    assert before == {"counts": {"created": 1}, "ignored": ["nickname"]}
    with owner.write_schema() as tx:  # as the migration of a new version
        tx.exec_driver_sql("ALTER TABLE members ADD COLUMN nickname VARCHAR(255)")
    try:
        after = found_in(with_nickname, *arguments)
        assert after == {"counts": {"updated": 1}, "ignored": [], "stored": "Robbie"}
        assert found_in(with_nickname, *arguments)["counts"] == {"unchanged": 1}
    finally:
        with owner.write_schema() as tx:  # PostgreSQL's database serves the next test, too
            tx.exec_driver_sql("ALTER TABLE members DROP COLUMN nickname")
