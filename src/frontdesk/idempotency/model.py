"""Idempotency keys: a request that carries one, the answer that is stored with its write, and the
errors of a repeated key.

Only good answers are stored: a refused request wrote nothing, so the caller may correct it and use
the key again.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from frontdesk import codes
from frontdesk.errors import Conflict, FrontdeskError

FIELD = "Idempotency-Key"
Result = TypeVar("Result")


class StoredAnswer(NamedTuple):
    """An answer to a keyed request: status, the answer's own headers as JSON, a list of names and
    values, and the body.
    """

    status: int
    headers: str
    body: str


class Once(NamedTuple, Generic[Result]):
    """A request with an idempotency key. `key_hash` is made from the account and the key,
    `fingerprint` from method, path, query, media type, conditions, preferences and body. `answer`
    makes the answer of the writer's result, which the writer stores in its own transaction. A
    record of a batch has a `group_hash` and its index as `part`: the answers of a group that are
    written together are stored in one row.
    """

    account_id: int
    key_hash: str
    fingerprint: str
    answer: Callable[[Result], StoredAnswer]
    group_hash: str = ""
    part: int = 0


class AnsweredBefore(FrontdeskError):
    """The same request was answered before: nothing is written, and the caller gets the stored
    answer.
    """

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__("The request was answered before.")
        self.answer = answer


class KeyInFlight(Conflict):
    """Another request with the key is under way in this process."""

    def __init__(self) -> None:
        detail = (
            "A request with this idempotency key is under way. Send it again to get its answer."
        )
        super().__init__(detail, code=codes.faults.IDEMPOTENCY_IN_FLIGHT, field=FIELD)
