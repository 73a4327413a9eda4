"""An account with webhook endpoints, and a worker that serves them."""

import io
import json
from typing import Any

from frontdesk import events
from frontdesk.access.model import Scope
from frontdesk.config import Config
from frontdesk.db import Database
from frontdesk.events.model import AccountEventType, NewEvent
from frontdesk.log_output import LogOutput
from frontdesk.worker.webhooks import WebhookSender
from tests.conftest import Api, SetClock
from tests.events.receiver import Receiver, set_verified
from tests.factories import Customer, second_token

PATH = "/v2/webhook-endpoints"


class Desk:
    """An account with endpoints, a receiver and a worker."""

    def __init__(
        self, api: Api, db: Database, customer: Customer, clock: SetClock, config: Config
    ) -> None:
        self.db = db
        self.customer = customer
        self.clock = clock
        self.config = config
        self._api = api
        self.log = io.StringIO()

    @property
    def api(self) -> Api:
        """With a token that is good now."""
        scopes = (Scope.CUSTOMER, Scope.WEBHOOKS_MANAGE, Scope.EVENTS_READ)
        return self._api.as_(
            second_token(self.db, self.customer.account_id, *scopes, now=self.clock())
        )

    def create(self, url: str, *, is_verified: bool = True, **fields: Any) -> Any:
        made = self.api.post(PATH, {"url": url, **fields})
        assert made.status_code == 201, made.text
        if is_verified:
            set_verified(self.db, made.json()["data"]["id"])
        return made.json()["data"]

    def show(self, endpoint: Any) -> Any:
        return self.api.get(f"{PATH}/{endpoint['id']}").json()["data"]

    def happen(self, *numbers: int, account_id: int = 0) -> None:
        account_id = account_id or self.customer.account_id
        kind = AccountEventType.MEMBER_UPDATED
        told = [NewEvent(account_id, kind, {"eligibility_id": number}, "r") for number in numbers]
        with self.db.write() as tx:
            events.publish(tx, told, now=self.clock())

    def sending(self) -> WebhookSender:
        log = LogOutput(self.log)
        return WebhookSender(self.config, self.db, read_time=lambda _: self.clock(), log=log)

    def turn(self) -> None:
        """One turn of every endpoint that is due."""
        sender = self.sending()
        sender.step()
        sender.close()


def numbers_of(receiver: Receiver) -> list[int]:
    return [json.loads(each.body)["data"]["eligibility_id"] for each in receiver.received]


def types_of(receiver: Receiver) -> list[str]:
    return [json.loads(each.body)["type"] for each in receiver.received]


def replay(desk: Desk, endpoint: Any, **asked: Any) -> Any:
    return desk.api.post(f"{PATH}/{endpoint['id']}/replay", asked)
