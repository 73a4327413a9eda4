"""Requests that read or write much take turns by account; other requests never wait for them."""

import asyncio
import io
import json
from typing import Any

import pytest

from frontdesk import fair_share
from frontdesk.api.routes import ENDPOINTS
from frontdesk.app import App
from frontdesk.config import Config
from frontdesk.db import Database, Tx
from frontdesk.eligibility import reading
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.api.conftest import codes
from tests.conftest import Api, SetClock, open_for_test
from tests.factories import EVERY_SCOPE, Customer, make_customer, member_body

BULK = {
    "/v2/plans/{plan_id}/eligibility GET",
    "/v2/plans/{plan_id}/eligibility/batch POST",
    "/v2/plans/{plan_id}/eligibility/{eligibility_id}/history GET",
    "/v2/plans/{plan_id}/eligibility-files POST",
    "/v2/plans/{plan_id}/eligibility-files GET",
    "/v2/eligibility-files GET",
    "/v2/plans/{plan_id}/eligibility-files/{file_id}/report GET",
    "/v2/events GET",
}
LARGE = member_body(3, **{f"unknown{n}": "x" * 100 for n in range(100)})


@pytest.fixture
def caller(api: Api, db: Database) -> tuple[Api, Customer]:
    """A customer who may read everything, with one member."""
    made = make_customer(db, name="Bulk", scopes=EVERY_SCOPE)
    one = api.as_(made.token)
    assert one.post(members_of(made), member_body(1)).status_code == 201
    return one, made


def members_of(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


def send(caller: Api, customer: Customer, *, uploads: bool = True) -> dict[str, Any]:
    """The answers to a request of each kind. Uploads are never refused, so without a place they
    would wait for ever.
    """
    members = members_of(customer)
    files = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
    csv = {"content": b"external_id\n1\n", "headers": {"Content-Type": "text/csv"}}
    columns = {"columns": {"Employee No": "external_id"}}
    answers = {
        "list": caller.get(members),
        "filter": caller.get(f"{members}?updated_since=2099-01-01T00:00:00Z"),
        "batch": caller.post(f"{members}/batch", [member_body(2)]),
        "large body": caller.post(members, LARGE),
        "history": caller.get(f"{members}/1/history"),
        "events": caller.get("/v2/events"),
        "files": caller.get("/v2/eligibility-files"),
        "files of a plan": caller.get(files),
        "mapping": caller.request("PUT", "/v2/eligibility-mappings/a", json=columns),
        "plan": caller.patch(f"/v2/plans/{customer.plan_ids[0]}", {"description": "New"}),
        "webhook": caller.post("/v2/webhook-endpoints", {"url": "https://hooks.example.com"}),
        "mapping removed": caller.request("DELETE", "/v2/eligibility-mappings/a"),
    }
    if uploads:
        answers["upload"] = caller.post(files, **csv)
    answers["report"] = caller.get(f"{files}/1/report")
    return answers


def ask_for_token(caller: Api, customer: Customer, secret: str) -> Any:
    form = {
        "grant_type": "client_credentials",
        "client_id": customer.client_id,
        "client_secret": secret,
    }
    return caller.as_(None).request("POST", "/oauth/token", data=form)


def test_the_endpoints_that_read_or_write_much_declare_it() -> None:
    assert {f"{each.path} {each.method}" for each in ENDPOINTS if each.is_bulk} == BULK


def test_bulk_requests_beyond_the_account_s_queue_are_refused_with_a_time_to_return(
    caller: tuple[Api, Customer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, customer = caller
    monkeypatch.setattr(fair_share, "AT_ONCE", 0)
    monkeypatch.setattr(fair_share, "MOST_WAITING", 0)
    for name, answer in send(one, customer, uploads=False).items():
        assert answer.status_code == 429, name
        assert codes(answer) == {"request": "too_many_at_once"}, name
        assert answer.headers["Retry-After"] == "2", name


def test_other_requests_wait_for_no_bulk_request(
    caller: tuple[Api, Customer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, customer = caller
    monkeypatch.setattr(fair_share, "AT_ONCE", 0)
    monkeypatch.setattr(fair_share, "MOST_WAITING", 0)
    members = members_of(customer)
    assert one.post(members, member_body(1)).status_code == 200
    assert one.get(f"{members}/1").status_code == 200
    for path in (
        "/v2/plans",
        f"/v2/plans/{customer.plan_ids[0]}",
        "/v2/me",
        "/v2/webhook-endpoints",
    ):
        assert one.get(path).status_code == 200, path


def test_bulk_requests_are_answered_as_before_and_leave_their_places(
    caller: tuple[Api, Customer], app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one place in all, each has to give it back for the next."""
    one, customer = caller
    monkeypatch.setattr(fair_share, "AT_ONCE", 1)
    monkeypatch.setattr(fair_share, "MOST_WAITING", 0)
    for _ in range(2):
        statuses = {name: answer.status_code for name, answer in send(one, customer).items()}
        assert not {429, 500, 503} & {*statuses.values()}, statuses
    assert one.post(f"{members_of(customer)}/batch", content=b"[").status_code == 400
    assert one.get(f"{members_of(customer)}/999/history").status_code == 404
    assert one.get(members_of(customer)).status_code == 200


def test_the_right_secret_waits_for_no_stranger_and_strangers_wait_for_each_other(
    caller: tuple[Api, Customer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, customer = caller
    with monkeypatch.context() as patch:
        patch.setattr(fair_share, "AT_ONCE", 0)
        patch.setattr(fair_share, "MOST_WAITING", 0)
        answer = ask_for_token(one, customer, "wrong")
        assert (answer.status_code, answer.json()["error"]) == (429, "rate_limited")
        assert answer.headers["Retry-After"] == "2"
        assert ask_for_token(one, customer, customer.client_secret).status_code == 200
    assert ask_for_token(one, customer, "wrong").status_code == 401


def test_a_stranger_does_not_make_the_places_of_customers_rest(
    caller: tuple[Api, Customer], app: App
) -> None:
    one, customer = caller
    before = app.fair_share.latest_account
    assert ask_for_token(one, customer, "wrong").status_code == 401
    assert app.fair_share.latest_account == before


def test_a_long_page_is_read_a_hundred_members_at_a_time_and_is_the_same(
    caller: tuple[Api, Customer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, customer = caller
    members = members_of(customer)
    assert one.post(f"{members}/batch", [member_body(n) for n in range(2, 252)]).status_code == 207
    counts = []
    list_records = reading.list_records

    def counted(tx: Tx, filter_: Any, **options: Any) -> reading.Page:
        page = list_records(tx, filter_, **options)
        counts.append(len(page[0]))
        return page

    monkeypatch.setattr(reading, "list_records", counted)
    page = one.get(f"{members}?page[size]=210").json()
    assert counts == [100, 100, 10]
    assert [each["id"] for each in page["data"]] == list(range(1, 211))
    rest = one.get(page["links"]["next"].removeprefix("https://api.example.com")).json()
    assert [each["id"] for each in rest["data"]] == list(range(211, 252))
    assert "next" not in rest["links"]
    nothing = one.get(f"{members}?page[size]=210&updated_since=2099-01-01T00:00:00Z").json()
    assert (nothing["data"], "next" in nothing["links"]) == ([], False)


def test_a_page_of_members_is_written_member_by_member(
    caller: tuple[Api, Customer], app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice is over at its first step, so there is a pause after each member."""
    one, customer = caller
    records = [member_body(n) for n in range(2, 102)]
    assert one.post(f"{members_of(customer)}/batch", records).status_code == 207
    time = 0.0
    pauses = 0

    def now() -> float:
        nonlocal time
        time += 1
        return time

    pause = app.slices.pause

    async def noted_pause() -> None:
        nonlocal pauses
        pauses += 1
        await pause()

    monkeypatch.setattr(app.slices, "now", now)
    monkeypatch.setattr(app.slices, "pause", noted_pause)
    answer = one.get(f"{members_of(customer)}?page[size]=100")
    assert len(json.loads(answer.content)["data"]) == 100
    assert pauses >= 100


def test_each_part_of_an_upload_takes_a_place_of_its_own(
    config: Config, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part is a MiB. A sender that pauses between two parts keeps no place."""
    content = b"external_id\n" + b"1234567\n" * (3 * 1024 * 1024 // 8)
    left = [content[start : start + 65_536] for start in range(0, len(content), 65_536)]
    accounts: list[int] = []
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    async def upload() -> None:
        app = App(config, open_for_test(config.database_url, "service"), clock)
        admitted = app.fair_share.admitted

        def noted(account_id: int, *, wait_seconds: float | None) -> Any:
            assert wait_seconds is None  # what has arrived is not thrown away
            accounts.append(account_id)
            return admitted(account_id, wait_seconds=None)

        monkeypatch.setattr(app.fair_share, "admitted", noted)
        headers = [
            (b"host", b"testserver"),
            (b"content-type", b"text/csv"),
            (b"authorization", f"Bearer {customer.token}".encode()),
        ]
        path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": headers,
            "query_string": b"",
        }
        await build_asgi(app, Telemetry(io.StringIO()))(scope, receive, send)
        await app.close()

    asyncio.run(upload())
    assert sent[0]["status"] == 202, sent
    assert accounts == [customer.account_id] * 4  # three parts, and the end


def test_a_query_may_have_a_hundred_parameters(caller: tuple[Api, Customer]) -> None:
    one, _ = caller
    unknown = [f"name{n}=1" for n in range(101)]
    assert one.get("/v2/plans?" + "&".join(unknown[:100])).status_code == 200
    answer = one.get("/v2/plans?" + "&".join(unknown))
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "The query may have 100 parameters at most.",
    )
