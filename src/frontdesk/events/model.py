"""Events: their types, their places in the feed of an account, and their form for callers.

An event holds ids and names of fields, never a value of a person.
"""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.text import DescribedEnum

EVENT_ID = re.compile("evt_(0|[1-9][0-9]{0,17})_([1-9][0-9]{0,17})")
EVENTS_PER_PAGE = 100
EVENT_DAYS = 30  # of retention
URL_LENGTH = 2000
# due by every worker's clock, however wrong a server's is
AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)


class AccountEventType(DescribedEnum):
    MEMBER_CREATED = "member.created", "A member is new."
    MEMBER_UPDATED = (
        "member.updated",
        "Fields of a member changed; an undo restored them, or the member.",
    )
    MEMBER_MOVED = "member.moved", "A member moved from `from_plan_id` to `plan_id`."
    MEMBER_ENDED = (
        "member.ended",
        "The last day of a member's access came nearer, by a request, a file or an undo.",
    )
    MEMBER_REOPENED = (
        "member.reopened",
        "A member that was absent from a full file is listed again.",
    )
    MEMBER_WITHDRAWN = (
        "member.withdrawn",
        "The file that created a member was undone: there is no such member any more.",
    )
    MEMBER_MERGED = (
        "member.merged",
        "A member was merged into the member `kept_id`, which its external_id leads to.",
    )
    MEMBER_ERASED = "member.erased", "A member was erased: no value of it is left."
    INVITATION_SENT = "invitation.sent", "The relay has taken the invitation of a member."
    INVITATION_BOUNCED = "invitation.bounced", "The invitation of a member failed for good."
    INVITATION_SUPPRESSED = (
        "invitation.suppressed",
        "A hard bounce or a complaint ended mail to a member.",
    )
    FILE_DONE = "file.done", "A file has ended, with a report."
    FILE_HELD = "file.held", "A file waits for a person."
    FILE_FAILED = "file.failed", "A file has failed."
    QUEUE_OPENED = "plan.queue.opened", "The first doctor for a plan came on duty."
    QUEUE_CLOSED = "plan.queue.closed", "The last doctor for a plan left."
    WEBHOOK_TEST = (
        "webhook.test",
        "You asked for a test of a webhook endpoint; it is not in the feed.",
    )


EVENT_TYPES = {type_: type_.description for type_ in AccountEventType}


class NewEvent(NamedTuple):
    """An event to be stored. `data` holds ids and names of fields."""

    account_id: int
    type: AccountEventType
    data: dict[str, Any]
    request_id: str | None = None
    endpoint_id: int | None = None


class EventPlace(NamedTuple):
    """The place of an event in the feed: the number of its transaction (0 on SQLite) and its id."""

    xid: int
    id: int

    @property
    def event_id(self) -> str:
        return f"evt_{self.xid}_{self.id}"

    @classmethod
    def parse(cls, event_id: str) -> "EventPlace":
        """Raises ValueError with the rule."""
        if (found := EVENT_ID.fullmatch(event_id)) is None:
            raise ValueError("must be the id of an event, such as evt_871_42")
        return cls(int(found[1]), int(found[2]))


FEED_START = EventPlace(0, 0)


def due_after(place: EventPlace) -> dict[str, Any]:
    """Values of an endpoint: what comes after the place is sent at once, and has no failed
    attempts.
    """
    now = {"next_at": AT_ONCE, "attempts": 0, "head_failed_at": None}
    return {"place_xid": place.xid, "place_id": place.id} | now


class Event(NamedTuple):
    xid: int
    id: int
    type: AccountEventType
    at: datetime
    data: dict[str, Any]
    request_id: str | None
    endpoint_id: int | None
    replays: str | None

    @property
    def place(self) -> EventPlace:
        return EventPlace(self.xid, self.id)

    @property
    def event_id(self) -> str:
        """The id for callers; a replay has that of its event."""
        return self.replays or self.place.event_id


class EndpointState(StrEnum):
    """Whether webhooks are sent to an endpoint. In the other states its events wait.

    An endpoint is `unverified` until it has answered a `webhook.test` with 2xx: its address may be
    that of a stranger.
    """

    UNVERIFIED = "unverified"
    ACTIVE = "active"
    PAUSED = "paused"


class PauseReason(StrEnum):
    ASKED = "asked"  # by a PATCH
    GONE = "gone"  # it answered 410 for five minutes
    FAILING = "failing"  # for five days
    UNVERIFIED = "unverified"  # it has answered no test with 2xx for a day


class DueEndpoint(NamedTuple):
    """An endpoint that may have a turn now."""

    id: int
    account_id: int
    url: str


class EndpointBacklog(NamedTuple):
    """A webhook endpoint, and how many events it has not had (`behind`). `attempts` are of the next
    one; `failing_since`: since when none has succeeded.
    """

    id: int
    account_id: int
    state: EndpointState
    attempts: int
    failing_since: datetime | None
    last_error: str | None
    behind: int


class OldSecret(NamedTuple):
    """A secret that was replaced: it signs too, until then."""

    salt: str
    until: datetime


class WebhookEndpoint(NamedTuple):
    """A program of the account that gets its events. `place` is that of the last event that it has;
    `attempts` and `head_failed_at` are of the next one. `epoch` is the number of claims and changes
    so far. `unverified_since`: since when its address is to be verified; None once it is.
    """

    id: int
    account_id: int
    url: str
    event_types: list[str]
    state: EndpointState
    paused_reason: PauseReason | None
    salt: str
    old_salts: list[list[str]]
    place_xid: int
    place_id: int
    epoch: int
    lease_until: datetime | None
    next_at: datetime
    attempts: int
    head_failed_at: datetime | None
    failing_since: datetime | None
    unverified_since: datetime | None
    delivered_at: datetime | None
    last_error: str | None
    created_at: datetime

    @property
    def place(self) -> EventPlace:
        return EventPlace(self.place_xid, self.place_id)

    @property
    def old_secrets(self) -> list[OldSecret]:
        """The secrets before the present one, the newest first."""
        return [OldSecret(salt, datetime.fromisoformat(until)) for salt, until in self.old_salts]

    def wants(self, event: Event) -> bool:
        if event.endpoint_id is not None:
            return event.endpoint_id == self.id
        return not self.event_types or event.type in self.event_types
