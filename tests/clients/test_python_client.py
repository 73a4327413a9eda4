"""The Python client against a served instance, as a customer uses it: blocking and asynchronous,
with the same results.
"""

import io
import os
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple

import httpx
import pytest

from frontdesk.access.model import Scope
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk_client import (
    AuthenticationFailed,
    Conflict,
    FileNotLoaded,
    Forbidden,
    Invalid,
    NotFound,
    PreconditionFailed,
    UnsupportedMediaType,
    WrongState,
)
from tests.clients.python_desk import open_desk
from tests.factories import Customer, make_customer, member_body
from tests.faults.server import Server

HEADER = "external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date\n"


class Served(NamedTuple):
    address: str
    database_url: str


def csv(*numbers: int, last_name: str = "Sample") -> bytes:
    lines = (
        f"E-{n},M-{n},Noor,{last_name}-{n},1977-01-11,female,02134,2026-01-01\n" for n in numbers
    )
    return (HEADER + "".join(lines)).encode()


@pytest.fixture(scope="module")
def served(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A served instance with a worker. No client sees which database it has."""
    folder = tmp_path_factory.mktemp("served")
    url = f"sqlite:///{shutil.copy(sqlite_template, folder / 'frontdesk.db')}"
    with Server(url, folder / "log", with_worker=True) as server:
        yield Served(f"http://127.0.0.1:{server.port}", url)


@pytest.fixture
def customer(served: Served, sqlite_template: Path) -> Customer:
    """An account of the test's own. The identifiers of members are unique in it only where a test
    makes them so.
    """
    db = open_database(served.database_url)
    scopes = frozenset(
        {Scope.CUSTOMER, Scope.ELIGIBILITY_READ, Scope.EVENTS_READ, Scope.WEBHOOKS_MANAGE}
    )
    made = make_customer(db, scopes=scopes, now=system_clock())
    db.close()
    return made


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def desk(kind: str, served: Served, customer: Customer) -> Iterator[Any]:
    yield from open_desk(kind, served.address, customer.client_id, customer.client_secret)


@pytest.fixture
def start(served: Served) -> int:
    """The first number of the test's members: identifiers are unique over the whole service."""
    return int.from_bytes(os.urandom(5), "big")


def test_a_plan_is_listed_read_and_changed_unless_it_has_changed_since(
    desk: Any, customer: Customer
) -> None:
    first, second = customer.plan_ids
    assert [plan["id"] for plan in desk.plans()] == [first, second]
    assert [plan["id"] for plan in desk.plans(external_id="plan-1")] == [second]
    assert "queue_interval" in next(iter(desk.plans(queue_interval=True)))
    plan, etag = desk.versioned_plan(first)
    assert plan["name"] == desk.plan(first)["name"] == "Example Health Plan 0"
    assert desk.change_plan(first, {"name": "Gold"}, if_match=etag)["name"] == "Gold"
    with pytest.raises(PreconditionFailed):
        desk.change_plan(first, {"name": "Silver"}, if_match=etag)
    with pytest.raises(NotFound):
        desk.plan(10**9)


def test_a_member_is_created_changed_and_moved(desk: Any, customer: Customer, start: int) -> None:
    first, second = customer.plan_ids
    member = member_body(start, email=..., dob=date(1977, 1, 11))
    created = desk.enrol(first, member)
    assert (created.outcome, created.invitation, created.invitation_reason) == (
        "created",
        "none",
        "no_email",
    )
    assert created.member["last_name"] == f"Sample {start}"
    changed = desk.enrol(
        first, {"external_id": member["external_id"], "city": "Salem", "state": "Oz", "x": 1}
    )
    assert (changed.outcome, set(changed.changed)) == ("updated", {"city", "state"})
    assert (changed.warnings, changed.ignored_fields) == (("state_not_recognised",), ("x",))
    moved = desk.enrol(second, {"external_id": member["external_id"]})
    assert (moved.outcome, moved.left_plan, moved.member["id"]) == (
        "moved",
        "plan-0",
        created.member["id"],
    )


def test_members_are_listed_found_and_read_with_their_history(
    desk: Any, customer: Customer, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk_client.operations.PAGE_OF_MEMBERS", 2)
    first, second = customer.plan_ids
    since = datetime.now(UTC) - timedelta(minutes=1)
    ids = [desk.enrol(first, member_body(n)).member["id"] for n in range(start, start + 5)]
    gone = desk.enrol(first, member_body(start, expiry_date="2026-02-01")).member
    assert [member["id"] for member in desk.members(first)] == ids
    assert [member["id"] for member in desk.members(first, updated_since=since)] == ids
    assert list(desk.members(first, updated_since=since + timedelta(days=1))) == []
    assert [member["id"] for member in desk.members(first, eligible_on=date(2026, 3, 1))] == ids[1:]
    assert list(desk.members(second)) == []
    member = desk.member(first, ids[0])
    assert (member["external_id"], member["eligible"]) == (gone["external_id"], False)
    found = desk.find_member(external_id=gone["external_id"])
    assert found == desk.find_member(email=member["email"].upper(), plan_id=first) == member
    assert desk.find_member(member_id=member["member_id"], plan_id=second) is None
    history = list(desk.member_history(first, ids[0]))
    assert [change["outcome"] for change in history] == ["created", "updated"]
    assert history[1]["changed"] == {"expiry_date": [None, "2026-02-01"]}
    with pytest.raises(NotFound):
        desk.member(second, ids[0])
    with pytest.raises(TypeError, match="one of"):
        desk.find_member(external_id="a", email="b")
    with pytest.raises(ValueError, match="time zone"):
        desk.members(first, updated_since=datetime(2026, 11, 20))  # noqa: DTZ001 - it is refused


def test_people_are_found_by_last_name_and_birth_date(
    desk: Any, customer: Customer, start: int
) -> None:
    for n in (start, start + 1):
        desk.enrol(customer.plan_ids[0], member_body(n, last_name=f"Twin {start}", email=...))
    found = [*desk.find_members(f"TWIN {start}", date(1977, 1, 11))]
    assert [each["member_id"] for each in found] == [f"M-{n:06d}" for n in (start, start + 1)]
    assert [*desk.find_members(f"Twin {start}", "1977-01-12")] == []


def test_a_write_with_a_condition_is_refused_where_it_does_not_hold(
    desk: Any, customer: Customer, start: int
) -> None:
    first, second = customer.plan_ids
    member = member_body(start)
    with pytest.raises(NotFound) as missing:
        desk.enrol(first, member, only="update")
    assert missing.value.codes == {"no_such_member"}
    assert desk.enrol(first, member, only="create", move=False).outcome == "created"
    with pytest.raises(PreconditionFailed) as stored:
        desk.enrol(first, member, only="create")
    assert stored.value.codes == {"member_exists"}
    with pytest.raises(Conflict) as other:
        desk.enrol(second, member, move=False)
    assert other.value.codes == {"other_plan"}
    assert desk.enrol(second, member, only="update", move=True).outcome == "moved"


def test_a_family_shares_an_address_and_a_batch_moves_only_if_asked(
    desk: Any, customer: Customer, start: int
) -> None:
    first, second = customer.plan_ids
    address = f"family.{start}@example.com"
    desk.enrol(first, member_body(start, email=address))
    child = desk.enrol(first, member_body(start + 1, email=address), email_taken="drop")
    assert (child.outcome, child.warnings) == ("created", ("email_taken",))
    batch = [member_body(start + 1, email=address)]
    [kept] = desk.enrol_batch(second, batch, email_taken="drop")["data"]
    assert kept["status"] == 409
    [moved] = desk.enrol_batch(second, batch, email_taken="drop", move=True)["data"]
    assert moved["outcome"] == "moved"


def test_a_batch_has_a_result_for_each_member(desk: Any, customer: Customer, start: int) -> None:
    plan_id = customer.plan_ids[0]
    batch = [
        member_body(start),
        {"external_id": f"E-{start}"},
        member_body(start + 1, dob=date(1977, 1, 11)),
    ]
    results = desk.enrol_batch(plan_id, batch)
    assert [result["status"] for result in results["data"]] == [201, 422, 201]
    assert (results["counts"]["created"], results["counts"]["refused"]) == (2, 1)
    assert "required" in {fault["code"] for fault in results["data"][1]["errors"]}
    again = desk.enrol_batch(plan_id, batch[::2], only="create")
    assert [result["status"] for result in again["data"]] == [412, 412]
    with pytest.raises(Invalid) as refused:
        desk.enrol_batch(plan_id, [{"external_id": "E-1"}] * 1001)
    assert refused.value.codes == {"too_many_records"}


def test_a_member_is_ended_and_renamed(desk: Any, customer: Customer, start: int) -> None:
    plan_id = customer.plan_ids[0]
    id_ = desk.enrol(plan_id, member_body(start)).member["id"]
    assert desk.end_member(plan_id, id_, date(2026, 6, 30)).outcome == "ended"
    assert desk.end_member(plan_id, id_, "2026-06-30").outcome == "unchanged"
    renamed = desk.rename_member(plan_id, id_, f"N-{start}", member_id=f"NM-{start}")
    assert set(renamed.changed) == {"external_id", "member_id"}
    assert (renamed.member["id"], renamed.member["member_id"]) == (id_, f"NM-{start}")
    with pytest.raises(NotFound):
        desk.rename_member(plan_id, 10**9, f"O-{start}")


def test_a_client_reads_who_it_is_and_no_member_without_the_scope(
    kind: str, served: Served, customer: Customer
) -> None:
    credentials = (customer.client_id, customer.client_secret)
    for desk in open_desk(kind, served.address, *credentials, scope="customer"):
        found = desk.me()
        assert found["account"]["id"] == customer.account_id
        assert found["client"]["client_id"] == customer.client_id
        assert "eligibility:read" not in found["scopes"]
        assert found["limits"]["remaining"] < found["limits"]["requests_per_minute"]
        with pytest.raises(Forbidden):
            desk.find_member(external_id="E-1")


def test_a_refusal_is_an_error_of_its_kind_with_every_fault(
    desk: Any, customer: Customer, start: int
) -> None:
    with pytest.raises(Invalid) as refused:
        desk.enrol(
            customer.plan_ids[0],
            {"external_id": f"E-{start}", "dob": "Feb 30", "expiration_date": "x"},
        )
    error = refused.value
    assert (error.status, error.kind) == (422, "invalid")
    assert {"required", "not_a_date"} == error.codes
    assert error.did_you_mean == {"expiration_date": "expiry_date"}
    assert error.request_id in str(error)
    assert "Feb 30" not in str(error)


def test_wrong_credentials_and_scopes_are_told_from_each_other(
    kind: str, served: Served, customer: Customer
) -> None:
    refusals = ("wrong", None, "invalid_client"), (customer.client_secret, "x", "invalid_scope")
    for secret, scope, word in refusals:
        for desk in open_desk(kind, served.address, customer.client_id, secret, scope=scope):
            with pytest.raises(AuthenticationFailed) as refused:
                desk.plan(customer.plan_ids[0])
            assert refused.value.error == word
            assert customer.client_secret not in f"{refused.value!r}"


def test_a_revoked_token_is_replaced_once(kind: str, served: Served, customer: Customer) -> None:
    for desk in open_desk(kind, served.address, customer.client_id, customer.client_secret):
        desk.core._token = "no such token"
        desk.core._renew_at = float("inf")
        assert desk.plan(customer.plan_ids[0])["id"] == customer.plan_ids[0]


def test_a_file_is_uploaded_awaited_reported_and_undone(
    desk: Any, customer: Customer, start: int, tmp_path: Path
) -> None:
    plan_id = customer.plan_ids[0]
    path = tmp_path / "members.csv"
    path.write_bytes(csv(*range(start, start + 2000)) + f"E-{start + 2000},M-1\n".encode())
    seen: list[tuple[int, int | None]] = []
    file = desk.upload(plan_id, path, file_name="members", progress=lambda *sent: seen.append(sent))
    assert file.wait(60).state == "done"
    assert file.counts == {"created": 2000, "refused": 1}
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert len(seen) > 1
    lines = list(file.report(outcome="refused"))
    assert {line["row"] for line in lines} == {2002}
    assert {line["external_id"] for line in lines} == {f"E-{start + 2000}"}
    assert len(list(file.report(outcome="created"))) == 2000
    assert [found.id for found in desk.files(plan_id, state="done")] == [file.id]
    assert desk.file(plan_id, file.id).data["file_name"] == "members"
    with pytest.raises(WrongState):
        file.cancel()
    undo = file.undo().wait(60)
    assert (undo.state, undo.problem["code"]) == ("held", "too_many_lose_access")
    undo = undo.approve().wait(60)
    assert (undo.state, undo.counts["withdrawn"]) == ("done", 2000)


def test_a_report_is_read_by_the_page(
    desk: Any, customer: Customer, start: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("frontdesk_client.operations.PAGE_OF_LINES", 7)
    monkeypatch.setattr("frontdesk_client.operations.PAGE_OF_PLANS", 1)
    monkeypatch.setattr("frontdesk_client.operations.PAGE_OF_FILES", 1)
    plan_id = customer.plan_ids[0]
    file = desk.upload(plan_id, csv(*range(start, start + 20)), dry_run=True).wait(60)
    other = desk.upload(plan_id, csv(start), dry_run=True).wait(60)
    assert [line["row"] for line in file.report()] == list(range(2, 22))
    assert [plan["id"] for plan in desk.plans()] == customer.plan_ids
    assert [found.id for found in desk.files()] == [other.id, file.id]


def fill(pipe: IO[bytes], content: bytes) -> None:
    with pipe:
        pipe.write(content)


def test_records_streams_and_pipes_are_uploaded_too(
    desk: Any, customer: Customer, start: int
) -> None:
    plan_id = customer.plan_ids[0]
    records = ({"external_id": f"E-{n}", "dob": date(1977, 1, 11)} for n in range(3))
    file = desk.upload(plan_id, records, dry_run=True)
    assert (file.data["format"], file.data["size_bytes"]) == (
        "jsonl",
        3 * len('{"external_id": "E-0", "dob": "1977-01-11"}\n'),
    )
    stream = io.BytesIO(b"skipped" + csv(start))
    stream.seek(7)
    assert desk.upload(plan_id, stream, dry_run=True).data["size_bytes"] == len(csv(start))
    assert not stream.closed
    receiving, sending = os.pipe()
    with os.fdopen(receiving, "rb") as pipe, os.fdopen(sending, "wb") as into:
        threading.Thread(target=fill, args=(into, csv(start, start + 1))).start()
        assert desk.upload(plan_id, pipe, dry_run=True).data["size_bytes"] == len(
            csv(start, start + 1)
        )
    with pytest.raises(TypeError, match="a list of records"):
        desk.upload(plan_id, {"external_id": "E-1"})
    with pytest.raises(UnsupportedMediaType):
        desk.upload(plan_id, csv(start), format="xlsx")


class LosesAnswers(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Carries requests to the service, and loses the first answer of each method and path."""

    def __init__(self) -> None:
        self._blocking = httpx.HTTPTransport()
        self._asynchronous = httpx.AsyncHTTPTransport()
        self.sent: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._blocking.handle_request(request)
        response.read()
        self._lose_first(request)
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._asynchronous.handle_async_request(request)
        await response.aread()
        self._lose_first(request)
        return response

    def _lose_first(self, request: httpx.Request) -> None:
        is_first = (request.method, request.url) not in [
            (sent.method, sent.url) for sent in self.sent
        ]
        self.sent.append(request)
        if is_first:
            raise httpx.ReadError("lost")

    def close(self) -> None:
        self._blocking.close()

    async def aclose(self) -> None:
        await self._asynchronous.aclose()


def test_a_lost_answer_makes_no_second_file(
    kind: str, served: Served, customer: Customer, start: int, tmp_path: Path
) -> None:
    transport = LosesAnswers()
    plan_id = customer.plan_ids[0]
    path = tmp_path / "members.csv"
    path.write_bytes(csv(start))
    credentials = (customer.client_id, customer.client_secret)
    for desk in open_desk(kind, served.address, *credentials, transport=transport):
        file = desk.upload(plan_id, path).wait(60)
        assert file.counts == {"created": 1}
        assert [found.id for found in desk.files(plan_id)] == [file.id]
    uploads = [
        sent for sent in transport.sent if sent.url.path.endswith("files") and sent.method == "POST"
    ]
    assert len(uploads) == 2
    assert len({sent.headers["Idempotency-Key"] for sent in uploads}) == 1


def test_a_lost_answer_to_a_member_is_the_first_one_again(
    kind: str, served: Served, customer: Customer, start: int
) -> None:
    transport = LosesAnswers()
    plan_id = customer.plan_ids[0]
    credentials = (customer.client_id, customer.client_secret)
    for desk in open_desk(kind, served.address, *credentials, transport=transport):
        assert desk.enrol(plan_id, member_body(start), only="create").outcome == "created"
        _, etag = desk.versioned_plan(plan_id)
        assert desk.change_plan(plan_id, {"name": "Gold"}, if_match=etag)["name"] == "Gold"
    writes = [
        sent.headers["Idempotency-Key"]
        for sent in transport.sent
        if "Idempotency-Key" in sent.headers
    ]
    assert len(writes) == 4
    assert writes[0] == writes[1] != writes[2] == writes[3]


def test_mappings_are_stored_suggested_and_deleted(desk: Any, customer: Customer) -> None:
    hr_export = b"Employee No,Birth Date,First Name,Last Name\n7,01/11/1977,Noor,Sample\n"
    suggestion = desk.suggest_mapping(customer.plan_ids[0], hr_export)
    assert suggestion["mapping"]["columns"]["Employee No"] == "external_id"
    assert desk.save_mapping("hr", suggestion["mapping"], default=True)["is_default"] is True
    assert desk.mapping("hr")["mapping"] == suggestion["mapping"]
    assert [mapping["name"] for mapping in desk.mappings()] == ["hr"]
    desk.delete_mapping("hr")
    with pytest.raises(NotFound):
        desk.mapping("hr")


def test_a_held_file_is_approved(desk: Any, customer: Customer, start: int) -> None:
    plan_id = customer.plan_ids[0]
    desk.upload(plan_id, csv(*range(start, start + 40))).wait(60)
    held = desk.upload(plan_id, csv(start), mode="full").wait(60)
    assert (held.state, held.problem["code"]) == ("held", "too_many_lose_access")
    assert held.approve().wait(60).state == "done"
    assert held.counts["ended"] == 39


def test_reconcile_says_who_is_missing_and_who_differs_and_writes_nothing(
    desk: Any, customer: Customer, start: int
) -> None:
    first, second = customer.plan_ids
    here, there, same, other, moved = (start + n for n in range(5))
    desk.upload(first, csv(here, same, other)).wait(60)
    desk.upload(second, csv(moved)).wait(60)
    rows = (
        csv(there, same, moved) + csv(other, last_name="Renamed")[len(HEADER) :] + b"E-bad,,,,,,,\n"
    )
    found = desk.reconcile(first, rows, timeout=60)
    assert found.missing_there == [f"E-{there}"]
    assert found.missing_here == [f"E-{here}"]
    assert found.differs == {f"E-{other}": ["last_name"]}
    assert found.other_plan == {f"E-{moved}": "plan-1"}
    assert "member_id: required" in found.refused["E-bad"]
    assert (found.unchanged, found.is_equal) == (1, False)
    assert desk.reconcile(first, csv(here, same, other), timeout=60).is_equal
    with pytest.raises(FileNotLoaded, match="no_header"):
        desk.reconcile(first, b"a,b\n1,2\n", timeout=60)


def test_events_are_read_on_from_the_last_one_and_webhooks_are_kept(
    desk: Any, customer: Customer, start: int
) -> None:
    plan_id = customer.plan_ids[0]
    assert list(desk.events()) == []
    id_ = desk.enrol(plan_id, member_body(start)).member["id"]
    [created] = desk.events()
    assert (created["type"], created["data"]["eligibility_id"]) == ("member.created", id_)
    desk.enrol(plan_id, member_body(start, city="Salem"))
    [updated] = desk.events(after=created["id"])
    assert updated["data"]["fields"] == ["city"]
    endpoint = desk.create_webhook_endpoint("http://127.0.0.1:9/hook", event_types=["file.done"])
    assert endpoint["secret"].startswith("whsec_")
    assert [found["id"] for found in desk.webhook_endpoints()] == [endpoint["id"]]
    assert desk.rotate_webhook_secret(endpoint["id"])["secret"] != endpoint["secret"]
    assert desk.test_webhook_endpoint(endpoint["id"])["id"] == endpoint["id"]
    for again in ({"event_id": created["id"]}, {"since": datetime(2026, 11, 20, tzinfo=UTC)}):
        assert desk.replay_webhook_endpoint(endpoint["id"], **again)["id"] == endpoint["id"]
    assert desk.change_webhook_endpoint(endpoint["id"], {"state": "paused"})["state"] == "paused"
    with pytest.raises(WrongState):
        desk.test_webhook_endpoint(endpoint["id"])
    desk.delete_webhook_endpoint(endpoint["id"])
    with pytest.raises(NotFound):
        desk.webhook_endpoint(endpoint["id"])
