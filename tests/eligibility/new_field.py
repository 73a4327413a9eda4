"""A program that prints as JSON what a record with the field `nickname` brings about: `new` in a
new database, `load` as a file in one that is there. test_fields.py runs it with and without the
field in the table.
"""

import json
import sys
from typing import Any

from frontdesk.config import Uniqueness, read_config
from frontdesk.db import Database, open_database
from frontdesk.db.migrate import upgrade
from frontdesk.eligibility import enrol, find_members, list_history, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.interface.bodies import schemas
from frontdesk.mapping.values import field_named
from frontdesk.reach import EVERY
from tests.conftest import SetClock
from tests.factories import NOW, Customer, make_customer, member_body
from tests.files.loading import Desk, csv_of, row


def post_record(db: Database) -> dict[str, Any]:
    """The record as it is stored, shown and described."""
    upgrade(db)
    customer = make_customer(db)
    record = parse_member(member_body(nickname=" Robbie "), today="2026-11-20")
    submission = Submission(customer.account_id, customer.plan_ids[0], record, "client", "request")
    with db.write() as tx:
        enrol(tx, [submission], now=NOW, uniqueness=Uniqueness.SERVICE)
        [stored] = find_members(tx, EVERY, str(record.external_id))
        [entry] = list_history(tx, stored["id"])
    return {
        "ignored": record.ignored,
        "stored": stored["nickname"],
        "history": entry.changes["nickname"],
        "column": field_named("Nick-Name"),
        "described": {
            name: schema["properties"]["nickname"]
            for name, schema in schemas().items()
            if "nickname" in schema.get("properties", {})
        },
    }


def load_file(db: Database, account_id: int, plan_id: int) -> dict[str, Any]:
    """What becomes of a file with a column of the field's name."""
    desk = Desk(db, Customer(account_id, [plan_id], "", "", ""), SetClock(NOW))
    file = desk.load(csv_of([row(1) | {"nickname": "Robbie"}], (*row(1), "nickname")))
    [member] = db.ask(lambda tx: find_members(tx, EVERY, "E00001"))
    found = {"counts": file.counts, "ignored": file.ignored}
    return found | {"stored": member["nickname"]} if "nickname" in member else found


def main(step: str, url: str, *ids: str) -> None:
    db = open_database(read_config({"FRONTDESK_DATABASE_URL": url}).database_url)
    found = post_record(db) if step == "new" else load_file(db, *map(int, ids))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
