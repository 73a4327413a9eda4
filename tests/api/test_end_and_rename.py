"""The end of a member's access, and its new identifier, by the id of the record."""

from typing import Any

import pytest

from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.eligibility import list_history
from frontdesk.eligibility.people import lock_pair, merge
from frontdesk.eligibility.reading import get_member
from frontdesk.reach import EVERY
from tests.api.conftest import Trail, codes
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility"


@pytest.fixture
def member(api: Api, path: str) -> str:
    """The address of a member, AB 000001."""
    return f"{path}/{api.post(path, member_body()).json()['id']}"


def told(answer: Any) -> tuple[int, str, str | None]:
    return (
        answer.status_code,
        answer.headers["Eligibility-Outcome"],
        answer.headers.get("Eligibility-Changed"),
    )


def test_an_end_is_the_last_day_of_access(
    api: Api, db: Database, path: str, member: str, trail: Trail
) -> None:
    before = api.post(path, {"external_id": "AB 000001"}).json()
    ended = api.post(
        member + "/end", {"on": "2026-11-30", "onn": 1}, headers={"X-Request-Id": "the-end"}
    )
    assert told(ended) == (200, "ended", "expiry_date")
    assert (ended.json(), ended.headers["Cache-Control"]) == (before, "no-store")
    assert (ended.headers["Ignored-Fields"], ended.headers["Did-You-Mean"]) == ("onn", "onn=on")
    assert told(api.post(member + "/end", {"on": "2026-11-30T00:00:00Z"})) == (
        200,
        "unchanged",
        None,
    )
    assert told(api.post(member + "/end", {"on": "2026-12-31"})) == (200, "ended", "expiry_date")
    assert (
        told(api.post(path, {"external_id": "AB 000001", "expiry_date": "2026-12-31"}))[1]
        == "unchanged"
    )
    last = db.ask(lambda tx: list_history(tx, before["id"]))
    assert [(each.outcome, each.changes) for each in last[1:]] == [
        ("ended", {"expiry_date": [None, "2026-11-30"]}),
        ("ended", {"expiry_date": ["2026-11-30", "2026-12-31"]}),
    ]
    assert next(entry["request_id"] for entry in trail("eligibility.ended")) == "the-end"


def test_an_end_needs_a_real_day_of_access(api: Api, member: str) -> None:
    wrong: dict[str, tuple[Any, ...]] = {
        "required": (None, "", " "),
        "not_a_date": ("2026-02-30",),
        "wrong_type": (7, []),
    }
    for code, values in (*wrong.items(), ("expiry_before_effective", ("2025-12-31",))):
        for value in values:
            assert codes(api.post(member + "/end", {"on": value})) == {"on": code}
    assert codes(api.post(member + "/end", {})) == {"on": "required"}
    strict = {"Prefer": "handling=strict"}
    assert codes(api.post(member + "/end", {"on": "2026-12-01", "x": 1}, headers=strict)) == {
        "x": "unknown_field"
    }
    assert told(api.post(member + "/end", {"on": "2026-01-01"}))[1] == "ended"


def test_a_renamed_member_is_the_same_member(
    api: Api, db: Database, path: str, member: str
) -> None:
    before = api.post(path, {"external_id": "AB 000001"}).json()
    renamed = api.post(member + "/rename", {"external_id": " N-77 "})
    assert told(renamed) == (200, "updated", "external_id")
    assert renamed.json() == before | {"external_id": "N-77"}
    assert told(api.post(member + "/rename", {"external_id": "N-77"})) == (200, "unchanged", None)
    both = api.post(member + "/rename", {"external_id": "N-78", "member_id": "C-78"})
    assert told(both) == (200, "updated", "external_id,member_id")
    assert told(api.post(path, {"external_id": "N-78"}))[1] == "unchanged"
    free = api.post(path, member_body(email=None))
    assert (free.status_code, free.json()["id"] == before["id"]) == (201, False)


def test_a_member_id_that_equals_the_old_identifier_follows(api: Api, path: str) -> None:
    first = api.post(path, member_body(member_id="AB 000001")).json()["id"]
    renamed = api.post(f"{path}/{first}/rename", {"external_id": "N-1"})
    assert (renamed.json()["external_id"], renamed.json()["member_id"]) == ("N-1", "N-1")
    kept = api.post(f"{path}/{first}/rename", {"external_id": "N-2", "member_id": "N-1"})
    assert (kept.json()["external_id"], kept.json()["member_id"]) == ("N-2", "N-1")


def test_a_rename_is_refused_with_every_fault(api: Api, path: str, member: str) -> None:
    api.post(path, member_body(2))
    taken = api.post(member + "/rename", {"external_id": "AB 000002", "member_id": "M-000002"})
    assert codes(taken) == dict.fromkeys(("external_id", "member_id"), "not_unique")
    assert codes(api.post(member + "/rename", {"member_id": "C-1"})) == {"external_id": "required"}
    wrong = {"external_id": None, "member_id": "x" * 256}
    assert codes(api.post(member + "/rename", wrong)) == {
        "external_id": "required",
        "member_id": "too_long",
    }
    ignored = api.post(member + "/rename", {"external_id": "AB 000001", "last_name": "Other"})
    assert (told(ignored)[1], ignored.headers["Ignored-Fields"]) == ("unchanged", "last_name")


@pytest.mark.parametrize("verb", ["end", "rename"])
def test_a_member_that_is_elsewhere_merged_or_moved_is_not_there(
    api: Api, db: Database, customer: Customer, clock: SetClock, member: str, verb: str
) -> None:
    path = member.rpartition("/")[0]
    body = {"on": "2026-12-31", "external_id": "N-77"}
    other = api.post(path, member_body(2)).json()["id"]
    with db.write() as tx:
        merge(
            tx, *lock_pair(tx, EVERY, "AB 000001", "AB 000002"), Requester("someone", "r", clock())
        )
    elsewhere = member.replace(path, f"/v2/plans/{customer.plan_ids[1]}/eligibility")
    gone = [elsewhere, f"{path}/{other}", f"{path}/0", f"{path}/x", f"{path}/{10**18 - 1}"]
    answers = [api.post(f"{address}/{verb}", body) for address in gone]
    assert {(answer.status_code, answer.json()["detail"]) for answer in answers} == {
        (404, "There is no such eligible member.")
    }
    api.post(elsewhere.rpartition("/")[0], {"external_id": "AB 000001"})  # moves it
    assert api.post(f"{member}/{verb}", body).status_code == 404
    assert api.post(f"{elsewhere}/{verb}", body).status_code == 200


def test_a_member_can_not_take_the_identifier_that_leads_to_it(
    api: Api, db: Database, clock: SetClock, path: str, member: str
) -> None:
    api.post(path, member_body(2))
    with db.write() as tx:
        merge(
            tx, *lock_pair(tx, EVERY, "AB 000001", "AB 000002"), Requester("someone", "r", clock())
        )
    assert codes(api.post(member + "/rename", {"external_id": "AB 000002"})) == {
        "external_id": "not_unique"
    }
    assert api.post(path, {"external_id": "AB 000002"}).json()["external_id"] == "AB 000001"


@pytest.mark.parametrize("verb", ["end", "rename"])
def test_a_change_that_another_request_overtakes_is_a_conflict(
    api: Api, path: str, member: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The identifiers of the member are read before its chunk begins."""

    def overtaken(*member: Any, **place: Any) -> dict[str, Any]:
        earlier = {"external_id": "AB 999999", "member_id": "M-999999"}  # as before a rename
        return get_member(*member, **place) | earlier

    monkeypatch.setattr("frontdesk.eligibility.reading.get_member", overtaken)
    answer = api.post(f"{member}/{verb}", {"on": "2026-12-31", "external_id": "N-77"})
    assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (409, "conflict")
    assert told(api.post(path, member_body()))[1] == "unchanged"
