"""Reading and changing plans, as a customer sees it."""

import json
from typing import Any

import pytest

from frontdesk import audit, plans
from frontdesk.access.model import Scope
from frontdesk.api import plans as api_plans
from frontdesk.app import App
from frontdesk.audit import AuditQuery
from frontdesk.db import Database
from frontdesk.plans.changes import change_plan, create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues.ingest import set_waiting
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer

PLAN_FIELDS = {
    "id", "type", "external_id", "name", "description", "active", "created_at", "provider_group", "queue_info",
}  # fmt: skip


def faults(answer: Any) -> dict[str, str]:
    return {fault["field"]: fault["code"] for fault in answer.json()["errors"]}


def test_all_plans_of_the_account_are_listed_by_id_with_their_queues(api: Api, customer: Customer) -> None:
    answer = api.get("/v2/plans", headers={"Host": "evil.example"})
    assert answer.status_code == 200
    assert answer.json()["links"] == {"self": "https://api.example.com/v2/plans"}
    assert [plan["id"] for plan in answer.json()["data"]] == customer.plan_ids
    plan = answer.json()["data"][1]
    assert set(plan) == PLAN_FIELDS
    assert plan["description"] is None
    assert plan["created_at"] == "2026-11-20T12:00:00Z"
    assert plan["provider_group"]["type"] == "provider_groups"
    assert plan["queue_info"] == {
        "estimated_wait_time": 0,
        "queue_length": 0,
        "is_active": True,
        "cache_info": {"ttl": 15, "expires_at": "2026-11-20T12:00:15Z"},
    }


def test_an_interval_stands_beside_the_queue_only_where_it_is_asked_for(
    api: Api, db: Database, customer: Customer
) -> None:
    plain = api.get("/v2/plans").json()["data"]
    asked = api.get("/v2/plans?queue_interval=true").json()["data"]
    assert [plan.pop("queue_interval") for plan in asked] == [{"share": 0.8, "low": 0, "high": 0}] * len(
        plain
    )
    assert asked == plain == api.get("/v2/plans?queue_interval=false").json()["data"]
    own = api.get(f"/v2/plans?external_id={plain[0]['external_id']}&queue_interval=true").json()["data"]
    assert own[0]["queue_interval"]["share"] == 0.8
    page = api.get("/v2/plans?page[size]=1&queue_interval=true").json()
    assert page["links"]["next"].endswith("&queue_interval=true")
    assert faults(api.get("/v2/plans?queue_interval=yes")) == {"queue_interval": "not_allowed"}


@pytest.mark.parametrize(
    ("query", "found"),
    [("external_id=plan-1", ["plan-1"]), ("external_id=PLAN-1", []), ("external_id=", []), ("external_id=%00", []),
     ("external_id=%FF", []), ("other=1", ["plan-0", "plan-1"])],
)  # fmt: skip
def test_external_id_filters_exactly(api: Api, query: str, found: list[str]) -> None:
    answer = api.get(f"/v2/plans?{query}")
    assert answer.status_code == 200
    assert [plan["external_id"] for plan in answer.json()["data"]] == found
    assert answer.json()["links"]["self"] == f"https://api.example.com/v2/plans?{query}"


def test_pages_cover_all_plans_once(api: Api, db: Database) -> None:
    customer = make_customer(db, name="Large", plan_count=5)
    seen: list[int] = []
    path: str | None = "/v2/plans?page[size]=2"
    while path:
        body = api.as_(customer.token).get(path).json()
        seen += [plan["id"] for plan in body["data"]]
        path = body["links"].get("next", "").removeprefix("https://api.example.com")
    assert seen == customer.plan_ids


def test_the_link_to_the_next_page_is_a_plain_uri(api: Api, customer: Customer) -> None:
    following = api.get("/v2/plans?page[size]=1").json()["links"]["next"]
    assert following.endswith(f"/v2/plans?page%5Bsize%5D=1&page%5Bafter%5D={customer.plan_ids[0]}")


@pytest.mark.parametrize(
    ("created_at", "status"),
    [
        ("2026-11-20T12:00:00Z", 200),
        ("2026-11-20T12:00:00.000+00:00", 200),
        ("2026-11-20T07:00:00-05:00", 200),
        ("2026-11-20T12:00:00", 422),
        ("2026-11-20T12:00:01Z", 422),
        ("today", 422),
        (1795176000, 422),
        (None, 422),
    ],
)
def test_the_creation_may_be_echoed_as_the_same_instant(
    api: Api, customer: Customer, created_at: Any, status: int
) -> None:
    answer = api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"created_at": created_at})
    assert answer.status_code == status
    if status == 422:
        assert answer.json()["errors"][0]["code"] == "read_only"


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_if_match_is_none(api: Api, customer: Customer, empty: str) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    assert api.patch(path, {"name": "New"}, headers={"If-Match": empty}).status_code == 200


def test_a_long_list_is_read_in_a_thread_and_is_the_same(
    api: Api, app: App, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ("/v2/plans", "/v2/plans?page[size]=2", f"/v2/plans?page[after]={customer.plan_ids[0]}")
    short = [api.get(path).content for path in paths]
    in_thread, works = app.read_in_thread, []

    def noting(work: Any) -> Any:
        works.append(work)
        return in_thread(work)

    monkeypatch.setattr(app, "read_in_thread", noting)
    monkeypatch.setattr(api_plans, "FEW_PLANS", 1)
    assert [api.get(path).content for path in paths] == short
    assert len(works) == len(customer.plan_ids)


def test_the_bytes_of_an_answer_are_those_of_the_standard_encoder(
    api: Api, db: Database, customer: Customer
) -> None:
    odd = '\x7f\u2028\u00e9\U0001f600</script>"\\\\/ \ufeff'
    with db.write() as tx:
        plan = plans.get_plan(tx, None, customer.plan_ids[0], lock=True)
        change_plan(tx, plan, {"name": odd, "description": "a\tb\nc\x1f\b\f"})
    for path in ("/v2/plans", f"/v2/plans/{customer.plan_ids[0]}"):
        body = api.get(path).content
        data = json.dumps(json.loads(body)["data"], ensure_ascii=False, separators=(",", ":"))
        assert odd in json.loads(data)[0]["name"]
        assert body.endswith(b',"data":' + data.encode() + b"}")


@pytest.mark.parametrize("query", ["page[size]=0", "page[size]=1001", "page[size]=x", "page[after]=-1"])
def test_a_page_out_of_range_is_a_fault(api: Api, query: str) -> None:
    assert faults(api.get(f"/v2/plans?{query}")) == {query.partition("=")[0]: "not_allowed"}


def test_one_plan_comes_in_the_same_envelope(api: Api, customer: Customer) -> None:
    one = api.get(f"/v2/plans/{customer.plan_ids[0]}").json()
    assert one["data"] == api.get("/v2/plans").json()["data"][:1]


@pytest.mark.parametrize("plan_id", ["0", "999999", "abc", "1e3", "-1", "9" * 30, "%31%00", "٣"])
def test_what_is_no_plan_is_not_found(api: Api, plan_id: str) -> None:
    for answer in (
        api.get(f"/v2/plans/{plan_id}"),
        api.patch(f"/v2/plans/{plan_id}", {}),
        api.post(f"/v2/plans/{plan_id}/eligibility", {"external_id": "x"}),
    ):
        assert answer.status_code == 404
        assert answer.json()["type"] == "https://api.example.com/problems#not_found"


def test_a_patch_changes_the_given_fields_and_answers_without_the_queue(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    before = api.get(path).json()["data"][0]
    answer = api.patch(path, {"name": " Renamed ", "description": None})
    assert answer.status_code == 200
    before.pop("queue_info")
    assert answer.json()["data"] == [before | {"name": "Renamed", "description": None}]
    assert api.get(path).json()["data"][0]["name"] == "Renamed"


def test_an_empty_patch_and_an_echo_change_nothing(api: Api, customer: Customer) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    whole = api.get(path).json()["data"][0]
    empty, echo = api.patch(path, {}), api.patch(path, whole)
    assert (empty.status_code, echo.status_code) == (200, 200)
    assert empty.json() == echo.json()
    assert empty.headers["ETag"] == echo.headers["ETag"]


def test_every_fault_of_a_patch_is_told_at_once(api: Api, customer: Customer) -> None:
    body = {"name": " ", "external_id": None, "description": 7, "active": False, "id": "1", "type": "plan",
            "created_at": 0}  # fmt: skip
    assert faults(api.patch(f"/v2/plans/{customer.plan_ids[0]}", body)) == {
        "name": "required", "description": "wrong_type", "external_id": "required", "id": "read_only",
        "type": "read_only", "active": "read_only", "created_at": "read_only",
    }  # fmt: skip


def test_external_id_is_unique_among_the_accounts_plans_only(
    api: Api, db: Database, customer: Customer
) -> None:
    taken = api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"external_id": "plan-1", "active": False})
    assert faults(taken) == {"external_id": "not_unique", "active": "read_only"}
    other = make_customer(db, name="Other")
    assert (
        api.as_(other.token).patch(f"/v2/plans/{other.plan_ids[0]}", {"external_id": "x"}).status_code == 200
    )
    assert api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"external_id": "x"}).status_code == 200


def test_a_read_that_is_known_is_not_sent_again(api: Api, customer: Customer) -> None:
    for path in ("/v2/plans", f"/v2/plans/{customer.plan_ids[0]}"):
        tag = api.get(path).headers["ETag"]
        again = api.get(path, headers={"If-None-Match": f'"other", {tag}'})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
        assert api.get(path, headers={"If-None-Match": '"other"'}).status_code == 200


def test_if_match_refuses_a_stale_copy_and_a_changing_queue_does_not_matter(
    api: Api, db: Database, clock: SetClock, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[0]}"
    tag = api.get(path).headers["ETag"]
    with db.write() as tx:
        set_waiting(tx, customer.plan_ids[0], "patient-1", waiting=True, now=NOW)
    clock.advance(16)
    assert api.get(path).headers["ETag"] != tag
    assert api.patch(path, {"name": "First"}, headers={"If-Match": tag}).status_code == 200
    stale = api.patch(path, {"name": "Second"}, headers={"If-Match": tag})
    assert stale.status_code == 412
    assert api.patch(path, {"name": "Third"}, headers={"If-Match": "*"}).status_code == 200


def test_a_plan_found_by_its_external_id_can_be_changed_in_the_version_that_was_read(
    api: Api, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[1]}"
    found = api.get("/v2/plans?external_id=plan-1")
    assert found.headers["ETag"] == api.get(path).headers["ETag"]
    matching = {"If-Match": found.headers["ETag"]}
    assert api.patch(path, {"name": "First"}, headers=matching).status_code == 200
    assert api.patch(path, {"name": "Second"}, headers=matching).status_code == 412


def test_the_tag_of_a_list_names_no_version(api: Api, customer: Customer) -> None:
    tag = api.get("/v2/plans").headers["ETag"]
    stale = api.patch(f"/v2/plans/{customer.plan_ids[0]}", {"name": "x"}, headers={"If-Match": tag})
    assert stale.status_code == 412


def test_a_page_is_another_one_when_a_next_one_has_come(api: Api, db: Database, customer: Customer) -> None:
    path = "/v2/plans?page[size]=2"
    before = api.get(path)
    with db.write() as tx:
        group = plans.list_provider_groups(tx)[0]
        new = NewPlan(customer.account_id, group.id, "plan-2", "Third")
        create_plan(tx, new, now=NOW)
    after = api.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, "next" in after.json()["links"]) == (200, True)
    assert after.json()["data"] == before.json()["data"]


def test_the_audit_entry_of_a_patch_names_what_it_changed_and_not_what_was_sent(
    api: Api, db: Database, customer: Customer
) -> None:
    path = f"/v2/plans/{customer.plan_ids[1]}"
    api.patch(path, {"name": "Renamed", "description": None, "external_id": "plan-1"})
    entry = db.ask(lambda tx: audit.list_entries(tx, AuditQuery(account_id=customer.account_id)))[0]
    assert (entry["action"], entry["detail"]["fields"]) == ("plan.changed", ["name"])
    assert set(entry["detail"]) == {"fields", "network"}


def test_queue_values_are_kept_for_their_ttl_and_then_taken_anew(
    api: Api, db: Database, clock: SetClock, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reader on a busy machine must not be content with the last snapshot before the new one is there.
    monkeypatch.setattr("frontdesk.queues.snapshot.READ_SECONDS", 30.0)

    def length() -> int:
        return int(api.get("/v2/plans").json()["data"][0]["queue_info"]["queue_length"])

    assert length() == 0
    with db.write() as tx:
        set_waiting(tx, customer.plan_ids[0], "patient-1", waiting=True, now=NOW)
    clock.advance(14)
    assert length() == 0
    clock.advance(1)
    assert length() == 1


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [(Scope.PLANS_READ, {"GET"}), (Scope.PLANS_WRITE, {"PATCH"}), (Scope.ELIGIBILITY_WRITE, {"POST"}),
     (Scope.CUSTOMER, {"GET", "PATCH", "POST"})],
)  # fmt: skip
def test_a_token_opens_what_its_scope_names(api: Api, db: Database, scope: Scope, allowed: set[str]) -> None:
    narrow = make_customer(db, name="Narrow", scopes=frozenset({scope}))
    plan = f"/v2/plans/{narrow.plan_ids[0]}"
    for method, path in (("GET", plan), ("PATCH", plan), ("POST", f"{plan}/eligibility")):
        content = b"" if method == "GET" else b"{}"
        answer = api.as_(narrow.token).request(method, path, content=content)
        assert (answer.status_code == 403) is (method not in allowed)
        if answer.status_code == 403:
            assert "insufficient_scope" in answer.headers["WWW-Authenticate"]
