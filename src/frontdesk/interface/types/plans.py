"""Plans and their queues."""

from typing import Annotated, Literal, NotRequired, TypedDict

from frontdesk.interface.schema import Keywords, Named
from frontdesk.interface.words import AnswerEnvelope, Count, PlanText, Timestamp
from frontdesk.plans.changes import DESCRIPTION_LENGTH


class ProviderGroupBody(TypedDict):
    """The group of doctors that serves a plan."""

    id: Annotated[int, "Primary identifier."]
    type: Literal["provider_groups"]
    name: str
    external_id: str | None
    created_at: Timestamp


class QueueCacheInfo(TypedDict):
    """How long the queue's values are served."""

    ttl: Annotated[Count, "In seconds."]
    expires_at: Annotated[Timestamp, "When the values are read again."]


class PlanQueueBody(TypedDict):
    """The plan's queue; all values are of one moment."""

    estimated_wait_time: Annotated[
        int,
        Keywords(minimum=-1),
        "Seconds until a patient joining now reaches a doctor; -1 when none is on duty.",
    ]
    queue_length: Annotated[Count, "Patients waiting in this plan's queue."]
    is_active: Annotated[bool, "Whether a doctor is on duty for the plan now."]
    cache_info: NotRequired[QueueCacheInfo]


class PlanQueueInterval(TypedDict):
    """The interval that a share of the waits of patients joining now is expected in, and whom the
    estimate is for. The ends count.
    """

    share: Annotated[float, "Of the waits, between the ends: 0.8."]
    low: Annotated[int | None, "Seconds; null when no doctor is on duty for the plan."]
    high: Annotated[int | None, "Seconds; null when no doctor is on duty for the plan."]
    for_class: Annotated[
        str | None,
        "The class that was asked for; null: for patients as they came in the last hours.",
    ]
    estimated_wait_text: Annotated[
        str, "The estimate for people, such as `about 12 minutes` or `no doctor is on duty`."
    ]


class PlanBody(TypedDict):
    """A plan. Only reads have `queue_info`."""

    id: Annotated[int, "Primary identifier of the plan in the service."]
    type: Literal["plans"]
    external_id: Annotated[str, "Identifier of the plan outside the service."]
    name: str
    description: str | None
    active: Annotated[
        bool, "Whether the plan accepts patients; not the same as `queue_info.is_active`."
    ]
    created_at: Timestamp
    provider_group: ProviderGroupBody
    queue_info: NotRequired[PlanQueueBody]
    queue_interval: NotRequired[PlanQueueInterval]


class PageLinks(TypedDict):
    """Addresses of this page and of the next."""

    self: Annotated[str, "The request's address."]
    next: NotRequired[Annotated[str, "The next page, if there is one."]]


Plans = Annotated[
    AnswerEnvelope[PageLinks, list[PlanBody]],
    Named("Plans", "Plans in the order of `id`; one plan is an array of one."),
]


class PlanPatchBody(TypedDict):
    """Absent fields keep their values; `{}` changes nothing. The plan's other fields may be sent
    back, but another `id`, `type`, `active` or `created_at` is the fault `read_only`.
    """

    name: NotRequired[PlanText]
    description: NotRequired[
        Annotated[str | None, Keywords(maxLength=DESCRIPTION_LENGTH), "null or blank clears it."]
    ]
    external_id: NotRequired[Annotated[PlanText, "Unique among the account's plans."]]
