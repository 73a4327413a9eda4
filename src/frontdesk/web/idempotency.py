"""Requests with an Idempotency-Key: a retry gets the first answer again (docs/interface.md,
Idempotency keys).

An endpoint takes the header if its handler's docstring lists the parameter `idempotency_key`;
`web.endpoint` then sets `Request.key_hash`. The handler writes by `write_once`, or passes `once` to
its writer; a batch passes `once_each`.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import orjson

from frontdesk import codes
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.idempotency import keep_answers, refuse_answered
from frontdesk.idempotency.model import FIELD, AnsweredBefore, Once, StoredAnswer
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response

REPLAYED: Header = (b"idempotency-replayed", b"true")
_KEY = re.compile("[!-~]{1,255}")
# Headers beside the key that change what a request does: its media type, its conditions, and
# whether it is read strictly.
_MEANINGFUL_HEADERS = (b"content-type", b"if-match", b"if-none-match", b"prefer")
Result = TypeVar("Result")


def key_hash(request: Request, key: str) -> str:
    """The hash of the account and the key. Raises Invalid."""
    if not _KEY.fullmatch(key):
        raise Invalid(
            [Fault(FIELD, codes.faults.NOT_ALLOWED, "must have 1 to 255 visible ASCII characters")]
        )
    return hashlib.sha256(f"{request.account_id} {key}".encode()).hexdigest()


def once(
    request: Request, respond: Callable[[Result], Response], body_sha256: str | None = None
) -> Once[Result] | None:
    """What a writer needs to store the answer, once the body was read (for an upload: its digest);
    None without a key. `respond` makes the answer of the writer's result, of which no part may
    depend on anything else. Only JSON answers without pieces can be stored.
    """
    if request.key_hash is None:
        return None
    digest = body_sha256 or request.raw_sha256 or hashlib.sha256(request.raw).hexdigest()
    headers = [request.header(name) for name in _MEANINGFUL_HEADERS]
    parts = (request.method, request.path, request.query_string, *headers, digest)
    fingerprint = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return Once(
        request.account_id, request.key_hash, fingerprint, lambda result: _stored(respond(result))
    )


async def once_each(
    app: App, request: Request, respond: Callable[[Result], Response], *, parts_together: int
) -> Callable[[int], Once[Result] | None]:
    """What a writer needs to store the answer to each part of the request, by its index, in the
    transaction of the part: a retry finds the answers of the parts that were written. Until then
    the key is stored without one. The answers to `parts_together` parts, which are usually written
    in one transaction, are stored in one row. Raises as `write_once` does.
    """
    if (whole := once(request, respond)) is None:
        return lambda _: None
    with suppress(AnsweredBefore):
        await write_once(app, request, lambda _: Response(200))

    def part(index: int) -> Once[Result]:
        key_hash = _hash_of_part(whole.key_hash, str(index))
        group_hash = _hash_of_part(whole.key_hash, f"group {index // parts_together}")
        return whole._replace(key_hash=key_hash, group_hash=group_hash, part=index)

    return part


def _hash_of_part(key_hash: str, part: str) -> str:
    return hashlib.sha256(f"{key_hash} {part}".encode()).hexdigest()


async def write_once(app: App, request: Request, work: Callable[[Tx], Response]) -> Response:
    """`work(tx)` as `App.write` runs it; with a key its answer is stored in the same transaction,
    or the stored answer raised as AnsweredBefore. `work` raises every refusal. Raises as `work`
    does, Invalid `idempotency_key_reused`, and Unavailable.
    """
    store_answer: Once[Response] | None = once(request, lambda response: response)
    if store_answer is None:
        return await app.write(work)

    def write(tx: Tx) -> Response:
        refuse_answered(tx, store_answer)
        response = work(tx)
        keep_answers(tx, [(store_answer, response)], now=app.clock())
        return response

    return await app.write(write)


async def write_in_turn(app: App, request: Request, work: Callable[[Tx], Response]) -> Response:
    """`write_once` in a place of the account's share: so many changes that they fill the database
    keep no other account waiting. Raises as `write_once` does, and RateLimited.
    """
    async with app.fair_share.admitted(request.account_id):
        return await write_once(app, request, work)


def replayed(answer: StoredAnswer) -> Response:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in orjson.loads(answer.headers)
    ]
    return Response(answer.status, answer.body.encode(), (*headers, REPLAYED))


def _stored(response: Response) -> StoredAnswer:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
    ]
    return StoredAnswer(response.status, orjson.dumps(headers).decode(), response.body.decode())
