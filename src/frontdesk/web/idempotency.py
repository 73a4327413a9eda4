"""Requests with an Idempotency-Key: a retry gets the first answer again (docs/interface.md, Idempotency keys).

An endpoint takes the header if its handler's docstring lists the parameter `idempotency_key`; `web.endpoint` then sets
`Request.key_hash`. The handler writes by `write_once`, or passes `once` to its writer; a batch passes `once_each`.
"""

import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import orjson

from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid
from frontdesk.idempotency import keep_answers, refuse_answered
from frontdesk.idempotency.model import FIELD, AnsweredBefore, Once, StoredAnswer
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response

REPLAYED: Header = (b"idempotency-replayed", b"true")
_KEY = re.compile("[!-~]{1,255}")
Result = TypeVar("Result")


def key_hash(request: Request, key: str) -> str:
    """The hash of the account and the key. Raises Invalid."""
    if not _KEY.fullmatch(key):
        raise Invalid([Fault(FIELD, "not_allowed", "must have 1 to 255 visible ASCII characters")])
    return hashlib.sha256(f"{request.account_id} {key}".encode()).hexdigest()


def once(
    request: Request, respond: Callable[[Result], Response], body_sha256: str | None = None
) -> Once[Result] | None:
    """What a writer needs to store the answer, once the body was read (for an upload: its digest); None without a key. `respond`
    makes the answer of the writer's result, of which no part may depend on anything else. Only JSON answers without pieces can
    be stored."""
    if request.key_hash is None:
        return None
    digest = body_sha256 or hashlib.sha256(request.raw).hexdigest()
    parts = (request.method, request.path, request.query_string, request.header(b"content-type"), digest)
    fingerprint = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return Once(request.account_id, request.key_hash, fingerprint, lambda result: _stored(respond(result)))


async def once_each(
    app: App, request: Request, respond: Callable[[Result], Response]
) -> Callable[[int], Once[Result] | None]:
    """What a writer needs to store the answer to each part of the request, by its index, in the transaction of the part: a retry
    finds the answers of the parts that were written. Until then the key is stored without one. Raises as `write_once` does."""
    if (whole := once(request, respond)) is None:
        return lambda _: None
    with suppress(AnsweredBefore):
        await write_once(app, request, lambda _: Response(200))

    def part(index: int) -> Once[Result]:
        return whole._replace(key_hash=hashlib.sha256(f"{whole.key_hash} {index}".encode()).hexdigest())

    return part


async def write_once(app: App, request: Request, work: Callable[[Tx], Response]) -> Response:
    """`work(tx)` as `App.write` runs it; with a key its answer is stored in the same transaction, or the stored answer raised as
    AnsweredBefore. `work` raises every refusal. Raises as `work` does, Invalid `idempotency_key_reused`, and Unavailable."""
    kept: Once[Response] | None = once(request, lambda response: response)
    if kept is None:
        return await app.write(work)

    def write(tx: Tx) -> Response:
        refuse_answered(tx, kept)
        response = work(tx)
        keep_answers(tx, [(kept, response)], now=app.clock())
        return response

    return await app.write(write)


def replayed(answer: StoredAnswer) -> Response:
    headers = [
        (name.encode("latin-1"), value.encode("latin-1")) for name, value in orjson.loads(answer.headers)
    ]
    return Response(answer.status, answer.body.encode(), (*headers, REPLAYED))


def _stored(response: Response) -> StoredAnswer:
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers]
    return StoredAnswer(response.status, orjson.dumps(headers).decode(), response.body.decode())
