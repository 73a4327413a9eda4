"""Members of a customer, and the people of its desk who look for them."""

from typing import Any

from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.eligibility.people import lock_pair, merge
from frontdesk.eligibility.search import (
    ByBirthDate,
    FindBy,
    FoundPeople,
    find_similar_to,
    search_people,
)
from frontdesk.reach import Reach
from tests.conftest import Api
from tests.factories import NOW, Customer, member_body

DOB = "1977-01-11"
WHO = Requester("user:1", "request", NOW)


class Finder:
    """Members of a customer, and the searches of its people."""

    def __init__(self, api: Api, db: Database, customer: Customer) -> None:
        self.api = api
        self.db = db
        self.customer = customer
        self.reach = Reach.of(customer.account_id)

    def enrol(self, number: int, *, plan: int = 0, **changes: Any) -> int:
        path = f"/v2/plans/{self.customer.plan_ids[plan]}/eligibility"
        answer = self.api.post(path, member_body(number, **changes))
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["id"])

    def found(self, by: FindBy, reach: Reach | None = None) -> FoundPeople:
        return self.db.ask(lambda tx: search_people(tx, reach or self.reach, by, now=NOW))

    def ids(self, by: FindBy, reach: Reach | None = None) -> list[int]:
        return [person.id for person in self.found(by, reach).people]

    def born(self, last_name: str = "", first_name: str = "", dob: str = DOB) -> list[int]:
        return self.ids(ByBirthDate(dob, last_name, first_name))

    def similar(self, member_id: int) -> list[int]:
        found = self.db.ask(lambda tx: find_similar_to(tx, self.reach, member_id, now=NOW))
        return [person.id for person in found.people]

    def merge(self, kept: int, dropped: int) -> None:
        names = (f"AB {kept:06d}", f"AB {dropped:06d}")
        with self.db.write() as tx:
            merge(tx, *lock_pair(tx, self.reach, *names), WHO)
