"""Faults of queue events (docs/queue-events.md)."""

from functools import partial

from frontdesk.codes.model import Code, Kind, Where

_queue_event = partial(Code.declared, Where.QUEUE_EVENT, kind=Kind.INVALID)

REQUIRED = _queue_event(
    "required", "The field is missing, null or blank, and this type of event needs it."
)
WRONG_TYPE = _queue_event("wrong_type", "The value has another JSON type than the field's.")
TOO_LONG = _queue_event("too_long", "The text has more than 255 characters.")
CONTROL_CHARACTER = _queue_event(
    "control_character",
    "The text contains a control character, a bidirectional one too, or half of a surrogate pair.",
)
NOT_ALLOWED = _queue_event("not_allowed", "The value is not one of the allowed ones.")
NOT_A_TIME = _queue_event(
    "not_a_time", "The value is not a real time in ISO 8601 form with Z or an offset."
)
IN_THE_FUTURE = _queue_event(
    "in_the_future", "The time is more than 5 minutes ahead of the service's clock."
)
TOO_OLD = _queue_event("too_old", "The time is more than 7 days ago.")
NOT_FOUND = _queue_event("not_found", "There is no such plan or provider group.")
NOT_OF_GROUP = _queue_event("not_of_group", "The plan is served by another provider group.")
UNKNOWN_FIELD = _queue_event(
    "unknown_field", "There is no such field (where unknown ones are refused)."
)
