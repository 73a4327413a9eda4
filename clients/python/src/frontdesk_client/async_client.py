"""The client for asyncio. Tasks of one event loop may share it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx

from frontdesk_client import operations
from frontdesk_client.content import Content
from frontdesk_client.core import Core, NeedToken, Operation, Pages, Pause, Send, Step
from frontdesk_client.file_view import FileView
from frontdesk_client.models import File
from frontdesk_client.operations import ReportLine

P = ParamSpec("P")
T = TypeVar("T")


def awaiting(
    function: Callable[Concatenate[Core, P], Operation[T]],
) -> Callable[Concatenate[AsyncFrontdesk, P], Awaitable[T]]:
    """The operation as a method to await."""

    @functools.wraps(function)
    async def method(self: AsyncFrontdesk, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(function(self.core, *args, **kwargs))

    return method


def iterating(
    function: Callable[P, Pages[T]],
) -> Callable[Concatenate[AsyncFrontdesk, P], AsyncIterator[T]]:
    """The list as a method that iterates over its items and reads a page at a time."""

    @functools.wraps(function)
    def method(self: AsyncFrontdesk, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self.items(function(*args, **kwargs))

    return method


def returning_file(
    function: Callable[Concatenate[Core, P], Operation[File]],
) -> Callable[Concatenate[AsyncFrontdesk, P], Awaitable[AsyncFileHandle]]:
    """The operation as a method to await, which returns a handle of its file."""

    @functools.wraps(function)
    async def method(self: AsyncFrontdesk, /, *args: P.args, **kwargs: P.kwargs) -> AsyncFileHandle:
        return AsyncFileHandle(self, await self.run(function(self.core, *args, **kwargs)))

    return method


class AsyncFrontdesk:
    """A client of the service. Use it in an `async with` block, or close it."""

    def __init__(
        self,
        base_url: str,
        client_id: str,
        client_secret: str,
        *,
        scope: str | None = None,
        timeout: float = 30.0,
        attempts: int = 6,
        strict: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`timeout` is in seconds, for connecting and for each piece of an answer; `attempts` of a
        request in all.

        Without `scope` a token gets every scope of the client. `strict`: unknown fields and
        parameters are refused instead of ignored. Raises ValueError unless `base_url`
        is https or local.
        """
        self.core = Core(
            base_url, client_id, client_secret, scope=scope, attempts=attempts, strict=strict
        )
        self._http = httpx.AsyncClient(
            base_url=self.core.base_url, timeout=timeout, transport=transport
        )
        self._token_lock = asyncio.Lock()

    async def __aenter__(self) -> AsyncFrontdesk:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    me = awaiting(operations.me)
    plans = iterating(operations.plans)
    plan = awaiting(operations.plan)
    versioned_plan = awaiting(operations.versioned_plan)
    change_plan = awaiting(operations.change_plan)
    enrol = awaiting(operations.enrol)
    enrol_batch = awaiting(operations.enrol_batch)
    end_member = awaiting(operations.end_member)
    rename_member = awaiting(operations.rename_member)
    members = iterating(operations.members)
    member = awaiting(operations.member)
    find_member = awaiting(operations.find_member)
    find_members = iterating(operations.find_members)
    member_history = iterating(operations.member_history)
    upload = returning_file(operations.upload)
    file = returning_file(operations.file)
    suggest_mapping = awaiting(operations.suggest_mapping)
    reconcile = awaiting(operations.reconcile)
    events = iterating(operations.events)
    webhook_endpoints = iterating(operations.webhook_endpoints)
    webhook_endpoint = awaiting(operations.webhook_endpoint)
    create_webhook_endpoint = awaiting(operations.create_webhook_endpoint)
    change_webhook_endpoint = awaiting(operations.change_webhook_endpoint)
    delete_webhook_endpoint = awaiting(operations.delete_webhook_endpoint)
    rotate_webhook_secret = awaiting(operations.rotate_webhook_secret)
    test_webhook_endpoint = awaiting(operations.test_webhook_endpoint)
    replay_webhook_endpoint = awaiting(operations.replay_webhook_endpoint)
    mappings = iterating(operations.mappings)
    mapping = awaiting(operations.mapping)
    save_mapping = awaiting(operations.save_mapping)
    delete_mapping = awaiting(operations.delete_mapping)

    async def files(
        self,
        plan_id: int | None = None,
        *,
        state: operations.FileState | None = None,
        sha256: str | None = None,
    ) -> AsyncIterator[AsyncFileHandle]:
        """The files of a plan, or of the account, the newest first."""
        async for data in self.items(operations.files(plan_id, state=state, sha256=sha256)):
            yield AsyncFileHandle(self, data)

    async def items(self, pages: Pages[T]) -> AsyncIterator[T]:
        """The items of all pages."""
        following: Pages[T] | None = pages
        while following is not None:
            items, following = await self.run(self.core.page(following))
            for item in items:
                yield item

    async def run(self, operation: Operation[T]) -> T:
        """Perform the steps of an operation. Returns its result."""
        try:
            step = next(operation)
            while True:
                try:
                    result = await self._perform(step)
                except httpx.RequestError as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(result)
        except StopIteration as end:
            result_of_operation: T = end.value
            return result_of_operation
        finally:
            operation.close()

    async def _perform(self, step: Step) -> Any:
        match step:
            case Send(method, path, params, headers, body):
                content = in_threads(body) if isinstance(body, Content) else body
                return await self._http.request(
                    method, path, params=params, headers=headers, content=content
                )
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case NeedToken(rejected):
                async with self._token_lock:
                    return self.core.token(rejected) or await self.run(self.core.fetch_token())
        return None


async def in_threads(content: Content) -> AsyncIterator[bytes]:
    """The pieces of the content; each is read beside the event loop."""
    pieces = content.pieces()
    while data := await asyncio.to_thread(next, pieces, b""):
        yield data


class AsyncFileHandle(FileView):
    """A file of the service: its state as it was last read, and what can be done with it."""

    def __init__(self, desk: AsyncFrontdesk, data: File) -> None:
        super().__init__(data)
        self._desk = desk

    async def refresh(self) -> AsyncFileHandle:
        """Read the file's state anew."""
        return await self._become(operations.refresh(self._desk.core, self.data))

    async def wait(self, timeout: float | None = None) -> AsyncFileHandle:
        """Wait until the file is done, held, failed or cancelled. Raises FileNotFinished after
        `timeout` seconds.
        """
        return await self._become(operations.wait(self._desk.core, self.data, timeout))

    async def approve(self, *, idempotency_key: str | None = None) -> AsyncFileHandle:
        """Let a held file continue as a whole. Raises WrongState, SecondPersonNeeded."""
        return await self._become(
            operations.act(self._desk.core, self.data, "approve", idempotency_key)
        )

    async def cancel(self, *, idempotency_key: str | None = None) -> AsyncFileHandle:
        """Stop a waiting, running or held file; applied rows stay applied. Raises WrongState."""
        return await self._become(
            operations.act(self._desk.core, self.data, "cancel", idempotency_key)
        )

    async def accept_mapping(
        self,
        mapping: Mapping[str, Any] | None = None,
        *,
        keep: bool = True,
        idempotency_key: str | None = None,
    ) -> AsyncFileHandle:
        """Give a held 834 a mapping, or the suggested one; `keep` makes it the account's default.
        Raises WrongState.
        """
        return await self._become(
            operations.accept_mapping(
                self._desk.core, self.data, mapping, keep=keep, key=idempotency_key
            )
        )

    async def undo(self, *, idempotency_key: str | None = None) -> AsyncFileHandle:
        """Undo the file's changes. Returns a new file, which does it. Raises WrongState."""
        undo = await self._desk.run(
            operations.act(self._desk.core, self.data, "undo", idempotency_key)
        )
        return AsyncFileHandle(self._desk, undo)

    def report(
        self, *, outcome: str | None = None, code: str | None = None, external_id: str | None = None
    ) -> AsyncIterator[ReportLine]:
        """The lines of the report, in the order of the rows; while the file is loaded, those so
        far.
        """
        wanted = operations.report(self.data, outcome=outcome, code=code, external_id=external_id)
        return self._desk.items(wanted)

    async def _become(self, operation: Operation[File]) -> AsyncFileHandle:
        self.data = await self._desk.run(operation)
        return self
