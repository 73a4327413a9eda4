"""The SQL of stored answers.

Of two requests with one key in two processes the later one violates the unique key; `db.engine`
runs it again, and it finds the answer of the first.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from frontdesk import codes, usage
from frontdesk.db import sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.errors import Fault, FrontdeskError, Invalid
from frontdesk.idempotency.model import FIELD, AnsweredBefore, Once, Result, StoredAnswer
from frontdesk.idempotency.tables import stored_answers
from frontdesk.text import stored_time

GROUP_STATUS = 0  # of a row with the answers of a group, compressed: no answer has this status
ROW_BYTES = 400  # of an answer beside its text: hashes, the row itself, and its entries in indexes
COMPRESSION = 6  # of zlib; the answers of 48 unchanged records take 0.1 ms
_READ = ("key_hash", "fingerprint", "status", "headers", "body")
_COLUMNS = ", ".join(f"a.{name}" for name in _READ)
_IS_SAME = (
    f"{sets.by_key('a.account_id', '(r->>0)::bigint')} AND {sets.by_key('a.key_hash', 'r->>1')}"
)
_FIND = {
    "postgresql": (
        f"SELECT {_COLUMNS} FROM json_array_elements(%s::json) r, stored_answers a "  # noqa: S608
        f"WHERE {_IS_SAME}"
    ),
    # SQLite keeps the order of a CROSS JOIN, so it looks each key up.
    "sqlite": f"SELECT {_COLUMNS} FROM json_each(?) r CROSS JOIN stored_answers a "  # noqa: S608
    "WHERE a.account_id = r.value->>0 AND a.key_hash = r.value->>1",
}


def find_answers(tx: SetTransaction, requests: Sequence[Once[Any]]) -> Found:
    """The stored answers to requests with these keys, and those of their groups. A set read."""
    keys = {(request.account_id, request.key_hash) for request in requests}
    keys |= {(request.account_id, request.group_hash) for request in requests if request.group_hash}
    return sets.read_set(
        tx, _FIND[tx.dialect.name], parameters=(sets.as_json(sorted(keys)),), columns=_READ
    )


class EarlierAnswers:
    """The answers that `find_answers` has found."""

    def __init__(self, found: Found) -> None:
        self._fingerprints = {row["key_hash"]: row["fingerprint"] for row in found.rows}
        self._answers: dict[str, StoredAnswer] = {}  # by key hash
        self._groups: dict[str, dict[int, StoredAnswer]] = {}  # by group hash and part
        for row in found.rows:
            if row["status"] == GROUP_STATUS:
                self._groups[row["key_hash"]] = _unpacked(row["body"])
            else:
                self._answers[row["key_hash"]] = StoredAnswer(
                    row["status"], row["headers"], row["body"]
                )

    @property
    def groups(self) -> Collection[str]:
        """The hashes of the groups that have a row."""
        return self._groups.keys()

    def result_of(self, request: Once[Any]) -> FrontdeskError | None:
        """The result of a request with a known key: AnsweredBefore, or Invalid
        `idempotency_key_reused`.
        """
        key_hash = request.key_hash
        answer = self._answers.get(key_hash)
        if answer is None:
            key_hash = request.group_hash
            answer = self._groups.get(key_hash, {}).get(request.part)
        if answer is None:
            return None
        if self._fingerprints[key_hash] != request.fingerprint:
            rule = "was sent before with another request; a key is for one request and its retries"
            return Invalid([Fault(FIELD, codes.faults.IDEMPOTENCY_KEY_REUSED, rule)])
        return AnsweredBefore(answer)


def refuse_answered(tx: SetTransaction, request: Once[Any]) -> None:
    """Raises AnsweredBefore, Invalid `idempotency_key_reused`. Call it before the write."""
    earlier = EarlierAnswers(find_answers(tx, [request]))
    if (error := earlier.result_of(request)) is not None:
        raise error


def keep_answers(
    tx: SetTransaction,
    written: Iterable[tuple[Once[Result], Result]],
    *,
    now: datetime,
    groups: Collection[str] = (),
) -> None:
    """Store the answers that the requests make of their results, in the transaction of the writes.
    A key that another transaction has stored is a lost race.

    The answers of a group share a row: a row for each took 30 times the bytes of a short record.
    The hashes in `groups` have a row already, so later answers of these groups, to records that
    were refused before, have rows of their own.
    """
    rows: list[dict[str, Any]] = []
    packed: dict[str, dict[str, StoredAnswer]] = {}  # by group hash and part
    fingerprints: dict[str, tuple[int, str]] = {}
    for request, result in written:
        answer = request.answer(result)
        if request.group_hash and request.group_hash not in groups:
            packed.setdefault(request.group_hash, {})[str(request.part)] = answer
            fingerprints[request.group_hash] = (request.account_id, request.fingerprint)
        else:
            rows.append(
                _row(request.account_id, request.key_hash, request.fingerprint, answer, now)
            )
    for group_hash, answers in packed.items():
        account_id, fingerprint = fingerprints[group_hash]
        together = StoredAnswer(GROUP_STATUS, "", _packed(answers))
        rows.append(_row(account_id, group_hash, fingerprint, together, now))
    sets.insert_set(tx, stored_answers, rows)
    for row in rows:
        size = ROW_BYTES + len(row["headers"]) + len(row["body"])
        usage.count(tx.engine, row["account_id"], answers=size)


def _row(
    account_id: int, key_hash: str, fingerprint: str, answer: StoredAnswer, now: datetime
) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "key_hash": key_hash,
        "fingerprint": fingerprint,
        **answer._asdict(),
        "created_at": stored_time(now),
    }


def _packed(answers: Mapping[str, StoredAnswer]) -> str:
    plain = {part: tuple(answer) for part, answer in answers.items()}
    compressed = zlib.compress(orjson.dumps(plain), COMPRESSION)
    return b64encode(compressed).decode()


def _unpacked(body: str) -> dict[int, StoredAnswer]:
    answers = orjson.loads(zlib.decompress(b64decode(body)))
    return {int(part): StoredAnswer(*answer) for part, answer in answers.items()}
