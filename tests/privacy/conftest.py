"""A person who has been through everything that keeps values, and what is left of them."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import select

from frontdesk.audit import Requester
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.db.schema import metadata
from frontdesk.eligibility import find_members
from frontdesk.invitations import suppress as suppress_address
from frontdesk.invitations.model import SuppressionReason
from frontdesk.mailbox.catcher import MailCatcher
from frontdesk.privacy.classification import CLASSIFICATION
from frontdesk.privacy.erasure import erase_person, find_persons
from frontdesk.privacy.model import ColumnKind, Erasure
from frontdesk.reach import EVERY
from frontdesk.worker.delivery import DeliveryWorker, WorkerOptions
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_operator, member_body
from tests.files.loading import Desk, csv_of, row

KEY = "QX 7719-Zebedee"
# Values that nothing else in the database has. Those with `old` were changed later.
VALUES = {
    "external_id": KEY,
    "member_id": "M-QX-881",
    "first_name": "Zebediah",
    "last_name": "Quillfeather",
    "middle_name": "Xanthe",
    "dob": "1931-07-19",
    "email": "zeb.quill@qx-mail.example",
    "phone": "6175550199",
    "zipcode": "99577-0042",
    "city": "Eagle River QX",
    "county": "Anchorage QX",
    "medical_plan_description": "QX Platinum",
    "payor_name": "QX Payor",
    "payor_plan_name": "QX Plan",
    "relationship_code": "QX Self",
}
OLD = {"last_name": "Oldfeather", "email": "old.quill@qx-mail.example", "phone": "6175550111"}
METADATA = {"qxkey": "qxvalue"}
SOUGHT = (*VALUES.values(), *OLD.values(), "qxkey", "qxvalue", "zeb.quill", "old.quill")
TABLES_OF_PERSONS = {
    table
    for table, kinds in CLASSIFICATION.items()
    if {ColumnKind.PERSON, ColumnKind.PERSONS} & {*kinds.values()}
}


@dataclass
class Life:
    """The person, the neighbour whose values stay, and the doors."""

    api: Api
    db: Database
    clock: SetClock
    customer: Customer
    config: Config
    desk: Desk
    member_id: int = 0

    @property
    def path(self) -> str:
        return f"/v2/plans/{self.customer.plan_ids[0]}/eligibility"

    def live(self) -> None:
        """POSTs, an invitation that is delivered and one more that is bounced, files with good and
        refused rows, an undo.
        """
        assert self.api.post(self.path, member_body(5, first_name="Neighbour")).status_code == 201
        first = (
            VALUES
            | OLD
            | {"metadata": METADATA, "gender": "female", "effective_date": "2026-01-01"}
        )
        keyed = {"Idempotency-Key": "life-1"}
        assert (
            self.api.post(
                self.path, first | {"invite_immediately": True}, headers=keyed
            ).status_code
            == 201
        )
        mailer = MailCatcher(self.db, self.clock)
        worker = DeliveryWorker(
            self.config, self.db, mailer, WorkerOptions(read_time=lambda _: self.clock())
        )
        assert worker.turn() == 1
        worker.close()
        changed = {"external_id": KEY} | {name: VALUES[name] for name in OLD}
        assert self.api.post(self.path, changed).status_code == 200
        with self.db.write() as tx:
            own: Any = {"now": self.clock(), "account_id": self.customer.account_id}
            suppress_address(tx, VALUES["email"].upper(), SuppressionReason.HARD_BOUNCE, **own)
        own = row(1) | {name: VALUES[name] for name in row(1).keys() & VALUES if name != "zipcode"}
        self.desk.load(csv_of([row(7), own, row(8)]))
        self.desk.load(csv_of([row(7), own | {"zipcode": "no zip"}, row(8)]))  # refused
        self.desk.undo(self.desk.load(csv_of([own | {"zipcode": "02199"}])))
        self.desk.load(csv_of([row(8)]), file_name="2026-05_QUILLFEATHER, zebediah.csv")
        self.desk.load(
            csv_of([row(8)], (*row(8), "Zebediah", VALUES["dob"])), file_name=f"to_{KEY}.csv"
        )
        [stored] = self.db.ask(lambda tx: find_members(tx, EVERY, KEY))
        self.member_id = stored["id"]

    def erase(self, external_id: str = KEY) -> list[Erasure]:
        persons = self.db.ask(lambda tx: find_persons(tx, EVERY, external_id))
        return erase_person(self.db, persons, self.requester(), self.clock)

    @property
    def operators_path(self) -> str:
        return f"/operator/v1/members/{self.member_id}"

    def operator(self) -> Api:
        return self.api.as_(make_operator(self.db).token)

    def requester(self) -> Requester:
        return Requester("cli:test", "request-1", self.clock())

    def cells(self) -> Iterator[tuple[str, str]]:
        """Every value of every row as text, what is deflated unpacked, with its table and column."""
        with self.db.read() as tx:
            for table in metadata.sorted_tables:
                for found in tx.execute(select(table)).mappings():
                    for name, value in found.items():
                        yield f"{table.name}.{name}", _text(value)

    def mentions(self) -> set[str]:
        """The columns that hold a value of the person."""
        return {place for place, text in self.cells() if any(value in text for value in SOUGHT)}


def _text(value: object) -> str:
    if isinstance(value, bytes):
        with suppress(zlib.error):
            value = zlib.decompress(value)
        return bytes(value).decode("utf-8", "replace")
    return str(value)


@pytest.fixture
def life(api: Api, db: Database, clock: SetClock, customer: Customer, config: Config) -> Life:
    made = Life(api, db, clock, customer, config, Desk(db, customer, clock))
    made.live()
    return made
