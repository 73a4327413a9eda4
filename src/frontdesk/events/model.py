"""Events: their types, their places in the feed of an account, and their form for callers.

An event holds ids and names of fields, never a value of a person.
"""

import re
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from frontdesk.text import wire_time

EVENT_ID = re.compile("evt_(0|[1-9][0-9]{0,17})_([1-9][0-9]{0,17})")
EVENTS_PER_PAGE = 100
EVENT_DAYS = 30  # of retention


class AccountEventType(StrEnum):
    """What happened: EVENT_TYPES explains each."""

    MEMBER_CREATED = "member.created"
    MEMBER_UPDATED = "member.updated"
    MEMBER_MOVED = "member.moved"
    MEMBER_ENDED = "member.ended"
    MEMBER_REOPENED = "member.reopened"


EVENT_TYPES = {
    AccountEventType.MEMBER_CREATED: "A member is new.",
    AccountEventType.MEMBER_UPDATED: "Fields of a member changed; the undo of a file restored them, or the member itself.",
    AccountEventType.MEMBER_MOVED: "A member moved from `from_plan_id` to `plan_id`.",
    AccountEventType.MEMBER_ENDED: "A file ended the access of a member; an undo or a merge removed the member.",
    AccountEventType.MEMBER_REOPENED: "A member that was absent from a full file is listed again.",
}


class NewEvent(NamedTuple):
    """An event to be stored. `data` holds ids and names of fields."""

    account_id: int
    type: AccountEventType
    data: dict[str, Any]
    request_id: str | None = None


class EventPlace(NamedTuple):
    """The place of an event in the feed: the number of its transaction (0 on SQLite) and its id."""

    xid: int
    id: int

    @property
    def event_id(self) -> str:
        return f"evt_{self.xid}_{self.id}"

    @classmethod
    def parse(cls, event_id: str) -> "EventPlace | None":
        found = EVENT_ID.fullmatch(event_id)
        return None if found is None else cls(int(found[1]), int(found[2]))


FEED_START = EventPlace(0, 0)


class Event(NamedTuple):
    """A stored event."""

    xid: int
    id: int
    type: AccountEventType
    at: datetime
    data: dict[str, Any]
    request_id: str | None

    @property
    def place(self) -> EventPlace:
        return EventPlace(self.xid, self.id)

    def serialize(self) -> dict[str, Any]:
        """The event as the feed shows it."""
        data = {**self.data, "request_id": self.request_id}
        return {
            "id": self.place.event_id,
            "type": str(self.type),
            "timestamp": wire_time(self.at),
            "data": data,
        }
