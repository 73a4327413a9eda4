"""Prints what a field `nickname` in the table of fields brings about, as JSON; its argument is the file of a new database."""

import json
import sys

from frontdesk.api.schemas import schemas
from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness
from frontdesk.db import open_database
from frontdesk.db.migrate import upgrade
from frontdesk.eligibility import enrol, find_members, list_history, parse_member
from frontdesk.eligibility.model import Submission
from frontdesk.mapping.values import field_named
from tests.factories import make_customer, member_body


def main(path: str) -> None:
    db = open_database(f"sqlite:///{path}")
    upgrade(db)
    customer = make_customer(db)
    record = parse_member(member_body(nickname=" Robbie "), today="2026-11-20")
    submission = Submission(customer.account_id, customer.plan_ids[0], record, "client", "request")
    with db.write() as tx:
        enrol(tx, [submission], now=system_clock(), uniqueness=Uniqueness.SERVICE)
        [stored] = find_members(tx, str(record.external_id), None)
        [entry] = list_history(tx, stored["id"])
    found = {
        "ignored": record.ignored,
        "stored": stored["nickname"],
        "history": entry.changes["nickname"],
        "described": schemas()["NewMember"]["properties"]["nickname"],
        "column": field_named("Nick-Name"),
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
