"""Events, and the webhook endpoints that are sent them."""

from typing import Annotated, Literal, NotRequired, TypedDict

from frontdesk.events.endpoints import SUBSCRIBED
from frontdesk.events.model import EVENT_ID, EVENT_TYPES, URL_LENGTH, EndpointState, PauseReason
from frontdesk.interface.schema import Keywords, Named, explained, matches, one_of
from frontdesk.interface.types.mappings import MappingLinks
from frontdesk.interface.types.plans import PageLinks
from frontdesk.interface.words import AnswerEnvelope, Count, Moment, Timestamp

EventId = Annotated[str, matches(EVENT_ID)]
Subscribed = Annotated[str, one_of(SUBSCRIBED)]


class EventData(TypedDict):
    """The ids of what an event is about; it holds no value of a person. An event has those that
    belong to its type.
    """

    eligibility_id: NotRequired[Annotated[int, "The member."]]
    plan_id: NotRequired[Annotated[int, "The plan, of a member the one after the event."]]
    from_plan_id: NotRequired[Annotated[int, "The plan that a moved member left."]]
    kept_id: NotRequired[Annotated[int, "The member that a merged member leads to."]]
    file_id: NotRequired[
        Annotated[int | None, "The eligibility file; null for a member that a request changed."]
    ]
    invitation_id: NotRequired[Annotated[int, "The invitation."]]
    fields: NotRequired[Annotated[list[str], "Names of the member's fields that changed."]]
    code: NotRequired[Annotated[str, "Of a held file: the code of its problem."]]
    message: NotRequired[Annotated[str, "Of a held file: why it is held."]]
    counts: NotRequired[Annotated[dict[str, int], "Of a held file: its counts."]]
    request_id: Annotated[str | None, "The request that caused the event, if there was one."]


class EventBody(TypedDict):
    """Something that has happened."""

    id: Annotated[EventId, "Identifies the event; of a webhook it is the `webhook-id`."]
    type: Annotated[str, one_of(EVENT_TYPES), explained(EVENT_TYPES).strip()]
    timestamp: Annotated[Timestamp, "When it happened."]
    data: EventData


class NewWebhookEndpoint(TypedDict):
    """A webhook endpoint to create."""

    url: Annotated[
        str,
        Keywords(minLength=1, maxLength=URL_LENGTH),
        "An https address on the internet. A sandbox on your own machine takes http on that "
        "machine too.",
    ]
    event_types: NotRequired[
        Annotated[
            list[Subscribed],
            "Types of the events that are sent; empty, which is the default, for all.",
        ]
    ]
    state: NotRequired[
        Annotated[
            Literal["active", "paused"],
            "`active`: it is sent events once it has answered a `webhook.test` with 2xx. "
            "`paused`: nothing is sent, events wait.",
        ]
    ]


class WebhookEndpointPatch(TypedDict):
    """Absent fields keep their values."""

    url: NotRequired[
        Annotated[
            str, Keywords(minLength=1, maxLength=URL_LENGTH), "An https address on the internet."
        ]
    ]
    event_types: NotRequired[
        Annotated[list[Subscribed], "Types of the events that are sent; empty for all."]
    ]
    state: NotRequired[
        Annotated[
            Literal["active", "paused"],
            "`active`: what has waited is sent at once, to an address that is not verified after "
            "a test.",
        ]
    ]


class WebhookReplay(TypedDict):
    """What is sent again: either field, not both."""

    event_id: NotRequired[Annotated[EventId, "The event that is sent again."]]
    since: NotRequired[Annotated[Moment, "All events from this time (UTC) on."]]


class WebhookTargetBody(TypedDict):
    """A program of the account that is sent its events."""

    id: Annotated[int, "Primary identifier."]
    type: Literal["webhook_endpoints"]
    url: str
    event_types: Annotated[list[Subscribed], "Empty for all."]
    state: Annotated[
        EndpointState,
        "`unverified`: it is only sent a `webhook.test`, until it answers with 2xx. While it "
        "is not `active`, events wait for it, for 30 days at most.",
    ]
    paused_reason: Annotated[
        PauseReason | None,
        "`asked`: by a PATCH; `gone`: it answered 410 for five minutes; `failing`: for five days; "
        "`unverified`: it answered no test with 2xx for a day.",
    ]
    attempts: Annotated[Count, "Attempts of the next event that have failed."]
    next_attempt_at: Annotated[
        Timestamp | None, "When the next event is tried again; null unless an attempt has failed."
    ]
    last_error: Annotated[
        str | None,
        "Why the last attempt failed, such as `status_500` or `timeout`; null after a success.",
    ]
    failing_since: Annotated[Timestamp | None, "Since when no webhook was taken."]
    delivered_at: Annotated[Timestamp | None, "When a webhook was taken last."]
    created_at: Timestamp
    secret: NotRequired[
        Annotated[
            str,
            Keywords(pattern="^whsec_[A-Za-z0-9+/]{43}=$"),
            "Signs the webhooks. Only the answers to its creation and to a rotation have it.",
        ]
    ]


WebhookEndpoint = Annotated[
    AnswerEnvelope[MappingLinks, WebhookTargetBody],
    Named("WebhookEndpoint", "A webhook endpoint in its envelope."),
]


WebhookEndpoints = Annotated[
    AnswerEnvelope[MappingLinks, list[WebhookTargetBody]],
    Named("WebhookEndpoints", "Every webhook endpoint of the account, by id."),
]


Events = Annotated[
    AnswerEnvelope[PageLinks, list[EventBody]],
    Named("Events", "A page of events, the oldest first."),
]
