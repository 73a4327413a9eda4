"""The rules of the Python client without a connection: retries, tokens, contents, errors, webhooks,
and its models.
"""

import base64
import inspect
import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import frontdesk_client
from frontdesk.web.problems import PROBLEMS
from frontdesk_client import (
    ApiError,
    AsyncFileHandle,
    AsyncFrontdesk,
    AuthenticationFailed,
    BadSignature,
    FileHandle,
    FileNotFinished,
    Frontdesk,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    Unreachable,
    operations,
    verify_webhook,
)
from frontdesk_client.content import Content
from frontdesk_client.core import Call, Core, NeedToken, Operation, Pause, Send, Step
from frontdesk_client.errors import KINDS
from frontdesk_client.operations import wait
from tests.api.reference import SNAPSHOT

CLIENT = Path(__file__).parents[2] / "clients/python"
URL = "https://api.example.com"
# Made with the library `standardwebhooks` 1.1.0.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"type": "file.done", "timestamp": "2026-11-23T20:00:00Z", "data": {"file_id": 7}}'
SIGNED_AT = 1795464000
SIGNATURE = "v1,iHtaR8UhXrOnlUIhUnTlW/CMI5L+HL7QpUQaFC5JcQo="


def core(**changes: Any) -> Core:
    return Core(URL, "client", "secret", **({"scope": None, "attempts": 4} | changes))


def answer(status: int, content: Any = None, **headers: str) -> httpx.Response:
    request = httpx.Request("GET", URL)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(
        status, json=content if content is not None else {}, headers=named, request=request
    )


def problem(status: int, kind: str, *codes: str, **headers: str) -> httpx.Response:
    errors = [{"field": "zipcode", "code": code, "message": "rule"} for code in codes]
    content = {
        "type": f"{URL}/problems#{kind}",
        "title": "Title",
        "detail": "Detail.",
        "errors": errors,
    }
    return answer(status, content, **headers)


def perform(
    operation: Operation[Any], *results: httpx.Response | httpx.RequestError
) -> tuple[Any, list[Step]]:
    """What the operation returns or raises when its requests have these results, and the steps that
    it took.
    """
    left: list[Any] = list(results)
    steps: list[Step] = []
    try:
        step = next(operation)
        while True:
            steps.append(step)
            if isinstance(step, Send) and isinstance(left[0], httpx.RequestError):
                step = operation.throw(left.pop(0))
            else:
                step = operation.send(left.pop(0) if isinstance(step, Send) else "token")
    except StopIteration as end:
        return end.value, steps
    except frontdesk_client.FrontdeskError as error:
        return error, steps
    finally:
        assert left == []


def pauses(steps: list[Step]) -> list[float]:
    return [step.seconds for step in steps if isinstance(step, Pause)]


def sends(steps: list[Step]) -> list[Send]:
    return [step for step in steps if isinstance(step, Send)]


def post() -> Call:
    return Call("POST", "/v2/plans/1/eligibility", json={"external_id": "E-1"})


def test_a_request_is_repeated_with_the_same_key_after_a_failure_that_may_pass() -> None:
    failures = (
        httpx.ReadError(""),
        problem(503, "unavailable"),
        problem(429, "rate_limited", Retry_After="3"),
    )
    result, steps = perform(core().request(post()), *failures, answer(200, {"id": 1}))
    assert result.json() == {"id": 1}
    keys = {step.headers["Idempotency-Key"] for step in sends(steps)}
    assert (len(sends(steps)), len(keys)) == (4, 1)
    first, second, third = pauses(steps)
    assert 0.25 <= first <= 0.5
    assert 0.5 <= second <= 1
    assert 3 <= third <= 3.3


def test_each_call_that_changes_something_has_its_own_key_and_a_read_has_none() -> None:
    keys = [
        sends(perform(core().request(post()), answer(200))[1])[0].headers["Idempotency-Key"]
        for _ in "ab"
    ]
    assert keys[0] != keys[1]
    _, steps = perform(core().request(Call("GET", "/v2/plans")), answer(200))
    assert "Idempotency-Key" not in sends(steps)[0].headers


def test_the_last_failure_is_raised_when_no_attempt_is_left() -> None:
    error, steps = perform(core(attempts=2).request(post()), *[problem(503, "unavailable")] * 2)
    assert isinstance(error, Unavailable)
    assert len(sends(steps)) == 2
    error, _ = perform(core(attempts=1).request(post()), httpx.ConnectTimeout("slow"))
    assert isinstance(error, Unreachable)
    assert isinstance(error.__cause__, httpx.ConnectTimeout)


@pytest.mark.parametrize(
    "refusal",
    [
        problem(422, "invalid", "required"),
        problem(409, "wrong_state"),
        problem(429, "rate_limited", "too_many_taken", Retry_After="7200"),
    ],
)
def test_a_refusal_is_not_repeated(refusal: httpx.Response) -> None:
    error, steps = perform(core().request(post()), refusal)
    assert isinstance(error, ApiError)
    assert (error.status, len(steps)) == (refusal.status_code, 2)


def test_a_fault_of_the_service_is_met_with_one_more_attempt() -> None:
    fault = problem(500, "internal")
    result, steps = perform(core().request(post()), fault, answer(200, {"id": 1}))
    assert (result.status_code, len(sends(steps))) == (200, 2)
    error, steps = perform(core().request(post()), fault, problem(503, "unavailable"), fault)
    assert (error.status, len(sends(steps)), len(pauses(steps))) == (500, 3, 2)


def test_a_strict_client_has_unknown_fields_refused_in_every_request() -> None:
    for call in (post(), Call("GET", "/v2/plans")):
        _, steps = perform(core(strict=True).request(call), answer(200))
        assert sends(steps)[0].headers["Prefer"] == "handling=strict"
        _, steps = perform(core().request(call), answer(200))
        assert "Prefer" not in sends(steps)[0].headers
    for client in (Frontdesk, AsyncFrontdesk):
        assert client(URL, "client", "secret", strict=True).core._preference


FILE: Any = {"plan_id": 1, "id": 7}
CHANGES: dict[str, Operation[Any]] = {
    "change_plan": operations.change_plan(core(), 1, {}, idempotency_key="mine"),
    "enrol": operations.enrol(core(), 1, {"external_id": "E"}, idempotency_key="mine"),
    "enrol_batch": operations.enrol_batch(core(), 1, [], idempotency_key="mine"),
    "end_member": operations.end_member(core(), 1, 7, "2026-06-30", idempotency_key="mine"),
    "rename_member": operations.rename_member(core(), 1, 7, "E-2", idempotency_key="mine"),
    "upload": operations.upload(core(), 1, b"x", idempotency_key="mine"),
    "approve": operations.act(core(), FILE, "approve", "mine"),
    "accept_mapping": operations.accept_mapping(core(), FILE, None, keep=True, key="mine"),
    "create": operations.create_webhook_endpoint(core(), URL, idempotency_key="mine"),
    "change": operations.change_webhook_endpoint(core(), 1, {}, idempotency_key="mine"),
    "rotate": operations.rotate_webhook_secret(core(), 1, idempotency_key="mine"),
    "test": operations.test_webhook_endpoint(core(), 1, idempotency_key="mine"),
    "replay": operations.replay_webhook_endpoint(core(), 1, idempotency_key="mine"),
}


@pytest.mark.parametrize("operation", CHANGES.values(), ids=CHANGES)
def test_a_change_is_sent_with_the_key_of_its_caller(operation: Operation[Any]) -> None:
    _, steps = perform(operation, answer(200, {"data": [{}]}))
    [sent] = sends(steps)
    assert sent.headers["Idempotency-Key"] == "mine"


def test_a_batch_names_the_unknown_fields_of_its_records() -> None:
    result = {"index": 0, "status": 201, "ignored_fields": ["zip code"]}
    headers = {"Ignored_Fields": "zip%20code,colour", "Did_You_Mean": "zip%20code=zipcode"}
    found, _ = perform(
        operations.enrol_batch(core(), 1, [{"external_id": "E"}]),
        answer(207, {"data": [result], "counts": {}, "links": {}}, **headers),
    )
    assert found["ignored_fields"] == ["zip code", "colour"]
    assert found["did_you_mean"] == {"zip code": "zipcode"}
    assert found["data"] == [result]


def test_a_request_whose_first_attempt_is_under_way_waits_for_its_answer() -> None:
    in_flight = problem(409, "conflict", "idempotency_in_flight", Retry_After="1")
    result, steps = perform(core().request(post()), in_flight, answer(201, {"id": 1}))
    assert result.status_code == 201
    assert 1 <= pauses(steps)[0] <= 1.1


def test_a_rejected_token_is_replaced_once() -> None:
    rejected = problem(401, "unauthorized")
    result, steps = perform(core().request(post()), rejected, answer(200, {"id": 1}))
    assert result.status_code == 200
    assert [step for step in steps if isinstance(step, NeedToken)] == [
        NeedToken(None),
        NeedToken("token"),
    ]
    error, _ = perform(core().request(post()), rejected, rejected)
    assert isinstance(error, Unauthorized)
    # as of the request for a token, which has none
    error, steps = perform(core().repeat(post()), rejected)
    assert (type(error), len(steps)) == (Unauthorized, 1)


def test_a_token_is_kept_and_renewed_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("frontdesk_client.core.monotonic", lambda: now)
    client = core(scope="customer")
    assert client.token(None) is None
    token, steps = perform(
        client.fetch_token(), answer(200, {"access_token": "one", "expires_in": 7200})
    )
    assert token == client.token(None) == client.token("another") == "one"
    assert client.token("one") is None
    [send] = sends(steps)
    assert (
        send.body
        == b"grant_type=client_credentials&client_id=client&client_secret=secret&scope=customer"
    )
    now += 7139
    assert client.token(None) == "one"
    now += 1
    assert client.token(None) is None


def test_an_answer_of_another_server_is_told_from_one_of_the_service() -> None:
    page = httpx.Response(200, text="<html>", request=httpx.Request("GET", URL))
    for operation in (core().fetch_token(), core().json(post())):
        error, _ = perform(operation, page)
        assert isinstance(error, UnexpectedAnswer)
    gateway = httpx.Response(502, text="<html>", request=httpx.Request("GET", URL))
    error, _ = perform(core(attempts=1).request(post()), gateway)
    assert (type(error), str(error)) == (ApiError, "502 Bad Gateway: no details")
    refused = answer(401, {"error": "invalid_client", "error_description": "Wrong."})
    error, _ = perform(core().fetch_token(), refused)
    assert (type(error), str(error)) == (AuthenticationFailed, "invalid_client: Wrong.")


def test_only_https_and_this_machine_get_the_secret() -> None:
    for url in ("http://api.example.com", "api.example.com", "ftp://localhost", ""):
        with pytest.raises(ValueError, match="https"):
            Core(url, "client", "secret", scope=None, attempts=1)
    assert (
        Core("http://[::1]:8000/", "client", "secret", scope=None, attempts=1).base_url
        == "http://[::1]:8000"
    )


def test_a_next_page_is_never_another_address() -> None:
    pages = frontdesk_client.operations.plans()
    link = "https://elsewhere.example.com/other?page%5Bsize%5D=1&page%5Bafter%5D=9"
    content = {"links": {"self": "", "next": link}, "data": [{"id": 9}]}
    (items, following), steps = perform(core().page(pages), answer(200, content))
    assert items == [{"id": 9}]
    assert following.call.path == sends(steps)[0].path == "/v2/plans"
    assert following.call.params == {"page[size]": "1", "page[after]": "9"}


def test_both_clients_have_the_same_methods() -> None:
    pairs = ((Frontdesk, AsyncFrontdesk), (FileHandle, AsyncFileHandle))
    for blocking, asynchronous in pairs:
        names = [
            {name for name, value in vars(kind).items() if callable(value) and name[0] != "_"}
            for kind in (blocking, asynchronous)
        ]
        assert names[0] == names[1]
        for name in names[0]:
            [one, other] = [
                inspect.signature(getattr(kind, name)) for kind in (blocking, asynchronous)
            ]
            assert one.parameters == other.parameters


def test_httpx_logs_no_identifier_of_a_member(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "httpx")
    found = httpx.Response(200, json={"data": [], "access_token": "x"})
    transport = httpx.MockTransport(lambda _: found)
    with Frontdesk(URL, "client", "secret", transport=transport) as desk:
        assert list(desk.plans(external_id="AB 123356")) == []
    assert f"GET {URL}/v2/plans " in caplog.text
    assert "123356" not in caplog.text


def test_every_kind_of_problem_has_its_error() -> None:
    assert set(KINDS) == set(PROBLEMS)
    assert {kind.__name__ for kind in KINDS.values()} <= set(frontdesk_client.__all__)
    assert all(kind.__module__ == "frontdesk_client.errors" for kind in KINDS.values())


def test_a_file_that_grows_is_sent_as_long_as_it_was_and_again_from_its_beginning(
    tmp_path: Path,
) -> None:
    path = tmp_path / "members.csv"
    path.write_bytes(b"a" * 100_000)
    with Content(path) as content:
        with path.open("ab") as growing:
            growing.write(b"b" * 100_000)
        assert (content.size, content.is_repeatable) == (100_000, True)
        assert b"".join(content.pieces()) == b"".join(content.pieces()) == b"a" * 100_000


def test_the_size_of_a_file_is_sent_ahead() -> None:
    with Content(b"12345") as content:
        _, steps = perform(core().request(Call("POST", "/", content=content)), answer(202))
    assert sends(steps)[0].headers["Content-Length"] == "5"


def test_a_wait_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1000.0, 1000.0, 1000.0, 1010.0])
    monkeypatch.setattr("frontdesk_client.operations.monotonic", lambda: next(times))
    running: Any = {"id": 7, "plan_id": 1, "state": "running"}
    error, steps = perform(wait(core(), running, 10), answer(200, {"data": running}))
    assert (type(error), str(error)) == (FileNotFinished, "File 7 is running after 10 seconds.")
    assert pauses(steps) == [0.2]


def test_threads_that_need_a_token_at_once_share_one() -> None:
    asked = []

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/oauth/token":
            asked.append(request)
            time.sleep(0.05)
        return httpx.Response(200, json={"data": [], "access_token": "x", "expires_in": 7200})

    with Frontdesk(URL, "client", "secret", transport=httpx.MockTransport(respond)) as desk:
        threads = [threading.Thread(target=lambda: list(desk.plans())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(asked) == 1


def test_a_file_that_becomes_shorter_is_not_sent_as_if_it_were_whole(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    path.write_bytes(b"a" * 100_000)
    with Content(path) as content:
        path.write_bytes(b"a")
        with pytest.raises(ValueError, match="shorter"):
            list(content.pieces())


def test_a_pipe_is_sent_once_and_never_repeated() -> None:
    receiving, sending = os.pipe()
    os.close(sending)
    with os.fdopen(receiving, "rb") as pipe, Content(pipe) as content:
        call = Call("POST", "/v2/plans/1/eligibility-files", content=content)
        for refusal in (
            problem(503, "unavailable"),
            problem(401, "unauthorized"),
            httpx.WriteError(""),
        ):
            _, steps = perform(core().request(call), refusal)
            assert len(sends(steps)) == 1
            assert "Content-Length" not in sends(steps)[0].headers


def test_a_record_that_json_does_not_have_is_refused() -> None:
    for value in (float("nan"), object()):
        with pytest.raises((ValueError, TypeError)) as refused:
            Content([{"external_id": value}])
        assert "object object" not in str(refused.value)
    with Content(io.BytesIO(b"x")) as content:
        assert list(content.pieces()) == [b"x"]


def headers(signatures: str, **changes: str) -> dict[str, str]:
    return {
        "webhook-id": "msg_1",
        "Webhook-Timestamp": str(SIGNED_AT),
        "webhook-signature": signatures,
    } | changes


def test_a_webhook_is_taken_with_any_of_its_secrets() -> None:
    other = "whsec_" + base64.b64encode(b"another secret of an endpoint").decode()
    for secrets in (SECRET, [SECRET, other], (other, SECRET)):
        for signatures in (SIGNATURE, f"v1a,x v1,AAAA {SIGNATURE}"):
            event = verify_webhook(BODY, headers(signatures), secrets, now=SIGNED_AT + 299)
            assert event == json.loads(BODY)


@pytest.mark.parametrize(
    ("body", "changed", "late"),
    [
        (BODY + b" ", {}, 0),
        (BODY, {"webhook-id": "msg_2"}, 0),
        (BODY, {"webhook-signature": SIGNATURE.replace("v1,", "v2,")}, 0),
        (BODY, {"webhook-signature": ""}, 0),
        (BODY, {"webhook-signature": SIGNATURE[:-4]}, 0),
        (BODY, {"webhook-id": ""}, 0),
        (BODY, {"Webhook-Timestamp": "²"}, 0),
        (BODY, {}, 301),
        (BODY, {}, -301),
    ],
)
def test_a_webhook_that_was_changed_or_comes_late_is_refused(
    body: bytes, changed: dict[str, str], late: int
) -> None:
    with pytest.raises(BadSignature):
        verify_webhook(body, headers(SIGNATURE, **changed), SECRET, now=SIGNED_AT + late)


def test_a_secret_of_another_form_is_refused_for_what_it_is() -> None:
    for secret in ("", "whsec_", "whsec_!"):
        with pytest.raises(ValueError, match="whsec_"):
            verify_webhook(BODY, headers(SIGNATURE), secret, now=SIGNED_AT)


def test_the_models_are_those_of_the_interface(tmp_path: Path) -> None:
    """The docstring of generate.py has the command that renews them."""
    written = tmp_path / "models.py"
    subprocess.run(
        [sys.executable, CLIENT / "generate.py", SNAPSHOT, written], check=True, cwd=CLIENT
    )
    assert (CLIENT / "src/frontdesk_client/models.py").read_text() == written.read_text()
