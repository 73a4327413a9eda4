"""The blocking client. Threads may share it."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
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


def blocking(
    function: Callable[Concatenate[Core, P], Operation[T]],
) -> Callable[Concatenate[Frontdesk, P], T]:
    """The operation as a method that returns its result."""

    @functools.wraps(function)
    def method(self: Frontdesk, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.run(function(self.core, *args, **kwargs))

    return method


def iterating(function: Callable[P, Pages[T]]) -> Callable[Concatenate[Frontdesk, P], Iterator[T]]:
    """The list as a method that iterates over its items and reads a page at a time."""

    @functools.wraps(function)
    def method(self: Frontdesk, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return self.items(function(*args, **kwargs))

    return method


def returning_file(
    function: Callable[Concatenate[Core, P], Operation[File]],
) -> Callable[Concatenate[Frontdesk, P], FileHandle]:
    """The operation as a method that returns a handle of its file."""

    @functools.wraps(function)
    def method(self: Frontdesk, /, *args: P.args, **kwargs: P.kwargs) -> FileHandle:
        return FileHandle(self, self.run(function(self.core, *args, **kwargs)))

    return method


class Frontdesk:
    """A client of the service. Use it in a `with` block, or close it."""

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
        transport: httpx.BaseTransport | None = None,
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
        self._http = httpx.Client(base_url=self.core.base_url, timeout=timeout, transport=transport)
        self._token_lock = Lock()

    def __enter__(self) -> Frontdesk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    me = blocking(operations.me)
    plans = iterating(operations.plans)
    plan = blocking(operations.plan)
    versioned_plan = blocking(operations.versioned_plan)
    change_plan = blocking(operations.change_plan)
    enrol = blocking(operations.enrol)
    enrol_batch = blocking(operations.enrol_batch)
    end_member = blocking(operations.end_member)
    rename_member = blocking(operations.rename_member)
    members = iterating(operations.members)
    member = blocking(operations.member)
    find_member = blocking(operations.find_member)
    find_members = iterating(operations.find_members)
    member_history = iterating(operations.member_history)
    upload = returning_file(operations.upload)
    file = returning_file(operations.file)
    suggest_mapping = blocking(operations.suggest_mapping)
    reconcile = blocking(operations.reconcile)
    events = iterating(operations.events)
    webhook_endpoints = iterating(operations.webhook_endpoints)
    webhook_endpoint = blocking(operations.webhook_endpoint)
    create_webhook_endpoint = blocking(operations.create_webhook_endpoint)
    change_webhook_endpoint = blocking(operations.change_webhook_endpoint)
    delete_webhook_endpoint = blocking(operations.delete_webhook_endpoint)
    rotate_webhook_secret = blocking(operations.rotate_webhook_secret)
    test_webhook_endpoint = blocking(operations.test_webhook_endpoint)
    replay_webhook_endpoint = blocking(operations.replay_webhook_endpoint)
    mappings = iterating(operations.mappings)
    mapping = blocking(operations.mapping)
    save_mapping = blocking(operations.save_mapping)
    delete_mapping = blocking(operations.delete_mapping)

    def files(
        self,
        plan_id: int | None = None,
        *,
        state: operations.FileState | None = None,
        sha256: str | None = None,
    ) -> Iterator[FileHandle]:
        """The files of a plan, or of the account, the newest first."""
        for data in self.items(operations.files(plan_id, state=state, sha256=sha256)):
            yield FileHandle(self, data)

    def items(self, pages: Pages[T]) -> Iterator[T]:
        """The items of all pages."""
        following: Pages[T] | None = pages
        while following is not None:
            items, following = self.run(self.core.page(following))
            yield from items

    def run(self, operation: Operation[T]) -> T:
        """Perform the steps of an operation. Returns its result."""
        try:
            step = next(operation)
            while True:
                try:
                    result = self._perform(step)
                except httpx.RequestError as error:
                    step = operation.throw(error)
                else:
                    step = operation.send(result)
        except StopIteration as end:
            result_of_operation: T = end.value
            return result_of_operation
        finally:
            operation.close()

    def _perform(self, step: Step) -> Any:
        match step:
            case Send(method, path, params, headers, body):
                content = body.pieces() if isinstance(body, Content) else body
                return self._http.request(
                    method, path, params=params, headers=headers, content=content
                )
            case Pause(seconds):
                time.sleep(seconds)
            case NeedToken(rejected):
                with self._token_lock:
                    return self.core.token(rejected) or self.run(self.core.fetch_token())
        return None


class FileHandle(FileView):
    """A file of the service: its state as it was last read, and what can be done with it."""

    def __init__(self, desk: Frontdesk, data: File) -> None:
        super().__init__(data)
        self._desk = desk

    def refresh(self) -> FileHandle:
        """Read the file's state anew."""
        return self._become(operations.refresh(self._desk.core, self.data))

    def wait(self, timeout: float | None = None) -> FileHandle:
        """Wait until the file is done, held, failed or cancelled. Raises FileNotFinished after
        `timeout` seconds.
        """
        return self._become(operations.wait(self._desk.core, self.data, timeout))

    def approve(self, *, idempotency_key: str | None = None) -> FileHandle:
        """Let a held file continue as a whole. Raises WrongState, SecondPersonNeeded."""
        return self._become(operations.act(self._desk.core, self.data, "approve", idempotency_key))

    def cancel(self, *, idempotency_key: str | None = None) -> FileHandle:
        """Stop a waiting, running or held file; applied rows stay applied. Raises WrongState."""
        return self._become(operations.act(self._desk.core, self.data, "cancel", idempotency_key))

    def accept_mapping(
        self,
        mapping: Mapping[str, Any] | None = None,
        *,
        keep: bool = True,
        idempotency_key: str | None = None,
    ) -> FileHandle:
        """Give a held 834 a mapping, or the suggested one; `keep` makes it the account's default.
        Raises WrongState.
        """
        return self._become(
            operations.accept_mapping(
                self._desk.core, self.data, mapping, keep=keep, key=idempotency_key
            )
        )

    def undo(self, *, idempotency_key: str | None = None) -> FileHandle:
        """Undo the file's changes. Returns a new file, which does it. Raises WrongState."""
        return FileHandle(
            self._desk,
            self._desk.run(operations.act(self._desk.core, self.data, "undo", idempotency_key)),
        )

    def report(
        self, *, outcome: str | None = None, code: str | None = None, external_id: str | None = None
    ) -> Iterator[ReportLine]:
        """The lines of the report, in the order of the rows; while the file is loaded, those so
        far.
        """
        wanted = operations.report(self.data, outcome=outcome, code=code, external_id=external_id)
        return self._desk.items(wanted)

    def _become(self, operation: Operation[File]) -> FileHandle:
        self.data = self._desk.run(operation)
        return self
