"""Members of a customer for tests of the place People, and values that no covered page may show."""

import re
from typing import Any

from frontdesk.audit import list_entries
from frontdesk.db import Database
from frontdesk.reach import EVERY
from tests.conftest import Api
from tests.factories import Customer, member_body

MARKED = {
    "first_name": "Zqfirst",
    "last_name": "Zqlast",
    "middle_name": "Zqmiddle",
    "email": "zqmail@zqhost.example",
    "city": "Zqcity",
    "address1": "Zqstreet 1",
    "phone": "6175550199",
}
MARKERS = re.compile(
    "zqfirst|zqlast|zqmiddle|zqmail|zqhost|zqcity|zqstreet|6175550199|1977-01-11", re.IGNORECASE
)


class PeopleDesk:
    """Members of the customer, and its people's page."""

    def __init__(self, api: Api, customer: Customer) -> None:
        self.api = api
        self.customer = customer
        self.place = f"/console/accounts/{customer.account_id}/people"

    def enrol(self, number: int, **changes: Any) -> int:
        path = f"/v2/plans/{self.customer.plan_ids[0]}/eligibility"
        answer = self.api.post(path, member_body(number, **changes))
        assert answer.status_code in (200, 201), answer.text
        return int(answer.json()["id"])

    def page_of(self, member_id: int) -> str:
        return f"{self.place}/{member_id}"


def actions(db: Database) -> list[str]:
    return [entry["action"] for entry in db.ask(lambda tx: list_entries(tx, EVERY, limit=50))]
