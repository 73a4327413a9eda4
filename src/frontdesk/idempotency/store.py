"""The SQL of stored answers.

Of two requests with one key in two processes the later one violates the unique key; `db.engine` runs it again, and it finds the
answer of the first.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from frontdesk.db import sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.idempotency.model import FIELD, AnsweredBefore, Once, Result, StoredAnswer
from frontdesk.idempotency.tables import stored_answers
from frontdesk.text import stored_time

_READ = ("key_hash", "fingerprint", "status", "headers", "body")
_COLUMNS = ", ".join(f"a.{name}" for name in _READ)
_IS_SAME = f"{sets.by_key('a.account_id', '(r->>0)::bigint')} AND {sets.by_key('a.key_hash', 'r->>1')}"
_FIND = {
    "postgresql": f"SELECT {_COLUMNS} FROM json_array_elements(%s::json) r, stored_answers a WHERE {_IS_SAME}",  # noqa: S608 - made of names only
    # SQLite keeps the order of a CROSS JOIN, so it looks each key up.
    "sqlite": f"SELECT {_COLUMNS} FROM json_each(?) r CROSS JOIN stored_answers a "  # noqa: S608
    "WHERE a.account_id = r.value->>0 AND a.key_hash = r.value->>1",
}


def find_answers(tx: SetTransaction, requests: Sequence[Once[Any]]) -> Found:
    """The stored answers to requests with these keys. A set read."""
    keys = [(request.account_id, request.key_hash) for request in requests]
    return sets.read_set(tx, _FIND[tx.dialect.name], parameters=(sets.as_json(keys),), columns=_READ)


def earlier_answer(found: Found, request: Once[Any]) -> FrontdeskError | None:
    """The result of a request whose key is among the found answers: AnsweredBefore, or Invalid `idempotency_key_reused`."""
    for row in found.rows:
        if row["key_hash"] == request.key_hash:
            if row["fingerprint"] != request.fingerprint:
                rule = "was sent before with another request; a key is for one request and its retries"
                return Invalid([Fault(FIELD, "idempotency_key_reused", rule)])
            return AnsweredBefore(StoredAnswer(row["status"], row["headers"], row["body"]))
    return None


def refuse_answered(tx: SetTransaction, request: Once[Any]) -> None:
    """Raises AnsweredBefore, Invalid `idempotency_key_reused`. Call it before the write."""
    if (earlier := earlier_answer(find_answers(tx, [request]), request)) is not None:
        raise earlier


def keep_answers(
    tx: SetTransaction, written: Iterable[tuple[Once[Result], Result]], *, now: datetime
) -> None:
    """Store the answers that the requests make of their results, in the transaction of the writes. A key that another transaction
    has stored is a lost race."""
    names = ("account_id", "key_hash", "fingerprint", *StoredAnswer._fields, "created_at")
    answers = ((*request[:3], *request.answer(result), stored_time(now)) for request, result in written)
    sets.insert_set(tx, stored_answers, [dict(zip(names, each, strict=True)) for each in answers])
