"""Reading and changing plans, as a customer sees it."""

import json
from typing import Any

import pytest

from frontdesk import plans
from frontdesk.api import plans as api_plans
from frontdesk.app import App
from frontdesk.db import Database
from frontdesk.plans.changes import change_plan, create_plan
from frontdesk.plans.model import NewPlan
from frontdesk.queues.events import parse_event
from frontdesk.queues.ingest import ingest, set_waiting
from frontdesk.queues.model import PATIENT_CLASS_RULE
from frontdesk.reach import EVERY
from frontdesk.text import wire_time
from tests.api.conftest import BASE_URL, codes
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer

PLAN_FIELDS = {
    "id",
    "type",
    "external_id",
    "name",
    "description",
    "active",
    "created_at",
    "provider_group",
    "queue_info",
}


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}"


def test_all_plans_of_the_account_are_listed_by_id_with_their_queues(
    api: Api, customer: Customer
) -> None:
    answer = api.get("/v2/plans", headers={"Host": "evil.example"})
    assert answer.status_code == 200
    assert answer.json()["links"] == {"self": "https://api.example.com/v2/plans"}
    assert [plan["id"] for plan in answer.json()["data"]] == customer.plan_ids
    assert api.get(f"/v2/plans/{customer.plan_ids[0]}").json()["data"] == answer.json()["data"][:1]
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


def test_an_interval_stands_beside_the_queue_only_where_it_is_asked_for(api: Api) -> None:
    plain = api.get("/v2/plans").json()["data"]
    asked = api.get("/v2/plans?queue_interval=true").json()["data"]
    intervals = [plan.pop("queue_interval") for plan in asked]
    ready = {"share": 0.8, "low": 0, "high": 0, "for_class": None, "estimated_wait_text": "no wait"}
    assert intervals == [ready] * len(plain)
    assert asked == plain == api.get("/v2/plans?queue_interval=false").json()["data"]
    own = api.get(f"/v2/plans?external_id={plain[0]['external_id']}&queue_interval=true").json()[
        "data"
    ]
    assert own[0]["queue_interval"]["share"] == 0.8
    page = api.get("/v2/plans?page[size]=1&queue_interval=true").json()
    next_page = api.get(page["links"]["next"].removeprefix(BASE_URL)).json()
    assert all("queue_interval" in plan for plan in next_page["data"])
    assert codes(api.get("/v2/plans?queue_interval=yes")) == {"queue_interval": "not_allowed"}


def test_the_wait_of_a_class_is_told_to_those_that_ask_for_it(
    api: Api, db: Database, customer: Customer
) -> None:
    """Urgent patients go first. A plan that had none of a class answers for any patient."""
    plan = customer.plan_ids[0]
    events: list[dict[str, Any]] = [
        {"type": "visit.started", "visit": "v", "doctor": "doctor-1"},
        *({"type": "patient.joined", "visit": f"n{n}", "class": "new"} for n in range(4)),
        {"type": "patient.joined", "visit": "u", "class": "urgent", "priority": 2},
    ]
    told = [
        parse_event(one | {"id": str(n), "at": wire_time(NOW), "plan_id": plan}, now=NOW).event
        for n, one in enumerate(events)
    ]
    with db.write() as tx:
        ingest(tx, [one for one in told if one is not None], now=NOW)

    def shown(query: str) -> tuple[int, Any]:
        found = api.get(f"/v2/plans{query}").json()["data"][0]
        return found["queue_info"]["estimated_wait_time"], found.get("queue_interval")

    anyone, nothing = shown("")
    urgent, interval = shown("?class=urgent")
    new, of_new = shown("?class=new&queue_interval=true")
    unknown, of_unknown = shown("?class=follow-up")
    assert 0 < urgent < anyone < new
    assert nothing is None
    assert (interval["for_class"], of_new["for_class"]) == ("urgent", "new")
    assert interval["low"] <= urgent <= interval["high"]
    assert interval["estimated_wait_text"] == f"about {round(urgent / 60)} minutes"
    assert (unknown, of_unknown["for_class"]) == (anyone, None)
    one = api.get(f"/v2/plans/{plan}?class=urgent&queue_interval=false").json()["data"][0]
    assert (one["queue_info"]["estimated_wait_time"], one["queue_interval"]) == (urgent, interval)
    refused = api.get("/v2/plans?class=Urgent!")
    assert codes(refused) == {"class": "not_allowed"}
    assert refused.json()["errors"][0]["message"] == PATIENT_CLASS_RULE


@pytest.mark.parametrize(
    ("query", "found"),
    [("external_id=plan-1", ["plan-1"]), ("external_id=PLAN-1", []), ("external_id=", []),
     ("external_id=%00", []), ("external_id=%FF", []), ("other=1", ["plan-0", "plan-1"])],
)  # fmt: skip
def test_external_id_filters_exactly(api: Api, query: str, found: list[str]) -> None:
    answer = api.get(f"/v2/plans?{query}")
    assert answer.status_code == 200
    assert [plan["external_id"] for plan in answer.json()["data"]] == found
    assert answer.json()["links"]["self"] == f"https://api.example.com/v2/plans?{query}"


def test_a_long_list_is_read_in_a_thread_and_is_the_same(
    api: Api, app: App, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = ("/v2/plans", "/v2/plans?page[size]=2", f"/v2/plans?page[after]={customer.plan_ids[0]}")
    short = [api.get(path).content for path in paths]
    in_thread = app.read_in_thread
    works = []

    def noting(work: Any) -> Any:
        works.append(work)
        return in_thread(work)

    monkeypatch.setattr(app, "read_in_thread", noting)
    monkeypatch.setattr(api_plans, "FEW_PLANS", 1)
    assert [api.get(path).content for path in paths] == short
    assert len(works) == len(customer.plan_ids)


def test_an_answers_bytes_are_the_standard_encoders(
    api: Api, db: Database, customer: Customer
) -> None:
    odd = '\x7f\u2028\u00e9\U0001f600</script>"\\\\/ \ufeff'
    with db.write() as tx:
        plan = plans.get_plan(tx, EVERY, customer.plan_ids[0], lock=True)
        change_plan(tx, plan, {"name": odd, "description": "a\tb\nc\x1f\b\f"})
    for path in ("/v2/plans", f"/v2/plans/{customer.plan_ids[0]}"):
        body = api.get(path).content
        data = json.dumps(json.loads(body)["data"], ensure_ascii=False, separators=(",", ":"))
        assert odd in json.loads(data)[0]["name"]
        assert body.endswith(b',"data":' + data.encode() + b"}")


@pytest.mark.parametrize("plan_id", ["0", "999999", "abc", "1e3", "-1", "9" * 30, "%31%00", "٣"])
def test_what_is_no_plan_is_not_found(api: Api, plan_id: str) -> None:
    plan = f"/v2/plans/{plan_id}"
    for answer in (
        api.get(plan),
        api.patch(plan, {}),
        api.post(f"{plan}/eligibility", {"external_id": "x"}),
    ):
        assert answer.status_code == 404
        assert answer.json()["type"] == "https://api.example.com/problems#not_found"


def test_a_patch_changes_the_given_fields_and_answers_without_the_queue(
    api: Api, path: str
) -> None:
    before = api.get(path).json()["data"][0]
    answer = api.patch(path, {"name": " Renamed ", "description": None})
    assert answer.status_code == 200
    before.pop("queue_info")
    assert answer.json()["data"] == [before | {"name": "Renamed", "description": None}]
    assert api.get(path).json()["data"][0]["name"] == "Renamed"


def test_a_page_is_another_one_when_a_next_one_has_come(
    api: Api, db: Database, customer: Customer
) -> None:
    path = "/v2/plans?page[size]=2"
    before = api.get(path)
    with db.write() as tx:
        group = plans.list_provider_groups(tx)[0]
        new = NewPlan(customer.account_id, group.id, "plan-2", "Third")
        create_plan(tx, new, now=NOW)
    after = api.get(path, headers={"If-None-Match": before.headers["ETag"]})
    assert (after.status_code, "next" in after.json()["links"]) == (200, True)
    assert after.json()["data"] == before.json()["data"]


def test_pages_cover_all_plans_once_and_their_size_has_limits(api: Api, db: Database) -> None:
    customer = make_customer(db, name="Large", plan_count=5)
    seen: list[int] = []
    path = "/v2/plans?page[size]=2"
    while path:
        body = api.as_(customer.token).get(path).json()
        seen += [plan["id"] for plan in body["data"]]
        path = body["links"].get("next", "").removeprefix(BASE_URL)
        assert path in ("", f"/v2/plans?page%5Bsize%5D=2&page%5Bafter%5D={seen[-1]}")
    assert seen == customer.plan_ids
    for query in ("page[size]=0", "page[size]=1001", "page[size]=x", "page[after]=-1"):
        assert codes(api.get(f"/v2/plans?{query}")) == {query.partition("=")[0]: "not_allowed"}


def test_an_empty_patch_and_an_echo_change_nothing(api: Api, path: str) -> None:
    whole = api.get(path).json()["data"][0]
    empty = api.patch(path, {})
    echo = api.patch(path, whole)
    assert (empty.status_code, echo.status_code) == (200, 200)
    assert (empty.json(), empty.headers["ETag"]) == (echo.json(), echo.headers["ETag"])
    instant = whole["created_at"]
    for same in (instant.replace("Z", ".000+00:00"), "2026-11-20T07:00:00-05:00"):
        assert api.patch(path, {"created_at": same}).status_code == 200
    for other in (instant.strip("Z"), instant.replace("00Z", "01Z"), "today", 1795176000, None):
        assert codes(api.patch(path, {"created_at": other})) == {"created_at": "read_only"}


def test_external_id_is_unique_among_the_accounts_plans_only(
    api: Api, db: Database, path: str
) -> None:
    taken = api.patch(path, {"external_id": "plan-1", "active": False})
    assert codes(taken) == {"external_id": "not_unique", "active": "read_only"}
    other = make_customer(db, name="Other")
    theirs = api.as_(other.token).patch(f"/v2/plans/{other.plan_ids[0]}", {"external_id": "x"})
    assert (theirs.status_code, api.patch(path, {"external_id": "x"}).status_code) == (200, 200)


def test_if_match_refuses_a_stale_copy_and_a_changing_queue_does_not_matter(
    api: Api, db: Database, clock: SetClock, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reader on a busy machine must not be content with the last snapshot before the new one is
    # there.
    monkeypatch.setattr("frontdesk.queues.snapshot.READ_SECONDS", 30.0)

    def change(tag: str) -> int:
        return int(api.patch(path, {"name": f"After {tag}"}, headers={"If-Match": tag}).status_code)

    tag = api.get(path).headers["ETag"]
    assert api.get("/v2/plans?external_id=plan-0").headers["ETag"] == tag
    with db.write() as tx:
        set_waiting(tx, int(path.rpartition("/")[2]), "patient-1", waiting=True, now=NOW)
    clock.advance(14)
    assert api.get(path).headers["ETag"] == tag
    clock.advance(1)
    assert api.get(path).headers["ETag"] != tag
    assert [change(sent) for sent in (tag, tag, "*", "", " ")] == [200, 412, 200, 200, 200]
    assert change(api.get("/v2/plans").headers["ETag"]) == 412  # a list names no version


def test_if_match_compares_a_tag_that_a_proxy_made_weak(api: Api, path: str) -> None:
    tag = api.get(path).headers["ETag"]
    for sent, status in ((f"W/{tag}", 200), (f"W/{tag}", 412), (f'"x", W/{tag}', 412)):
        answer = api.patch(path, {"name": f"After {status}"}, headers={"If-Match": sent})
        assert answer.status_code == status
    for sent in ("W/*", "w/" + api.get(path).headers["ETag"]):
        assert api.patch(path, {"name": "Never"}, headers={"If-Match": sent}).status_code == 412
