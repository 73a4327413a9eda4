"""A line in the table of fields is all that a field needs: it is parsed, stored, described and found in files.

As a program: prints what the line brings about, as JSON; its argument is the file of a new database.
"""

import json
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

LAST_FIELD = b'        Field("metadata",'
NEW_FIELD = b'        Field("nickname", SHORT_TEXT, False, "Nickname.", "Robbie"),\n'


def test_a_field_added_to_the_table_is_parsed_stored_described_and_found_in_files(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.eligibility.test_fields", str(tmp_path / "members.db")]
    ran = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("described")["description"].startswith("Nickname. ")
    assert found == {"ignored": [], "stored": "Robbie", "history": [None, "Robbie"], "column": "nickname"}


def add_field() -> None:
    """Let the table be imported with one line more, and not as it was compiled."""
    get_data = SourceFileLoader.get_data

    def with_new_field(self: SourceFileLoader, path: str) -> bytes:
        content = get_data(self, path)
        if Path(path).parts[-2:] == ("eligibility", "fields.py"):
            assert LAST_FIELD in content
            return content.replace(LAST_FIELD, NEW_FIELD + LAST_FIELD)
        if self.name == "frontdesk.eligibility.fields":
            raise OSError(path)
        return content

    sys.dont_write_bytecode = True
    SourceFileLoader.get_data = with_new_field  # type: ignore[assignment, method-assign]


def main(path: str) -> None:
    add_field()
    from frontdesk.api.schemas import schemas
    from frontdesk.config import Uniqueness
    from frontdesk.db import open_database
    from frontdesk.db.migrate import upgrade
    from frontdesk.eligibility import enrol, find_members, list_history, parse_member
    from frontdesk.eligibility.model import Submission
    from frontdesk.mapping.values import field_named
    from tests.factories import NOW, make_customer, member_body

    db = open_database(f"sqlite:///{path}")
    upgrade(db)
    customer = make_customer(db)
    record = parse_member(member_body(nickname=" Robbie "), today="2026-11-20")
    submission = Submission(customer.account_id, customer.plan_ids[0], record, "client", "request")
    with db.write() as tx:
        enrol(tx, [submission], now=NOW, uniqueness=Uniqueness.SERVICE)
        [stored] = find_members(tx, str(record.external_id), None)
        [entry] = list_history(tx, stored["id"])
    found = {"ignored": record.ignored, "stored": stored["nickname"], "history": entry.changes["nickname"]}
    described = schemas()["NewMember"]["properties"]["nickname"]
    sys.stdout.write(json.dumps(found | {"described": described, "column": field_named("Nick-Name")}))


if __name__ == "__main__":
    main(sys.argv[1])
