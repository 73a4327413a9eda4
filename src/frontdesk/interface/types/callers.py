"""The caller as the service sees it."""

from typing import Annotated, Literal, TypedDict

from frontdesk.config import Environment
from frontdesk.interface.schema import Named
from frontdesk.interface.types.mappings import MappingLinks
from frontdesk.interface.words import AnswerEnvelope, Count, Timestamp


class CallerAccount(TypedDict):
    """An account."""

    id: int
    name: str
    time_zone: Annotated[
        str | None,
        "Where the days of its members begin and end, such as `America/New_York`; null: from the "
        "beginning of a day in UTC to its end in Honolulu.",
    ]


class CallerClient(TypedDict):
    """An API client."""

    client_id: str
    name: str


class RequestLimitsBody(TypedDict):
    """The requests of this minute."""

    requests_per_minute: Count
    remaining: Count
    reset_seconds: Annotated[Count, "Seconds until the minute ends."]


class CallerBody(TypedDict):
    """The client behind a token, as the service sees it."""

    type: Literal["callers"]
    account: Annotated[CallerAccount | None, "null for a client of the operator."]
    client: CallerClient
    scopes: Annotated[list[str], "Every right of the token, also those that `customer` includes."]
    environment: Environment
    token_expires_at: Timestamp
    limits: RequestLimitsBody


CallerEnvelope = Annotated[
    AnswerEnvelope[MappingLinks, CallerBody], Named("CallerEnvelope", "The caller in its envelope.")
]
