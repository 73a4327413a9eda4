"""A batch of members: each record as if it had been sent alone, in order, and no record in the way
of another.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.eligibility import parse_member
from frontdesk.eligibility.enrolments import Enrolments
from frontdesk.eligibility.model import Enrolled, Submission
from frontdesk.errors import FrontdeskError, Unavailable
from tests.api.batches import LINES, kind, lines_of, statuses
from tests.api.conftest import codes
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility/batch"


def records_of(n: int) -> list[dict[str, Any]]:
    """Records of every outcome; those of different numbers do not touch each other. The member n +
    9 is under another plan.
    """
    ids = {"external_id": f"AB {n + 1:06d}"}
    return [
        member_body(n + 1, invite_immediately=True),
        member_body(n + 1, last_name="Other", member_id=f"M-{n}"),
        member_body(n + 2, member_id=f"M-{n}", state="Atlantis"),
        member_body(n + 2, dob="?", zipcode=...),
        ids | {"metadata": {"a": 1}},
        ids,
        {"external_id": f"AB {n + 9:06d}", "city": "Salem"},
        {"external_id": f"unknown {n}"},
        {"external_id": None},
        {},
    ]


def as_result(answer: Any) -> dict[str, Any]:
    """The answer to a POST as the result of a batch."""
    ignored = answer.headers.get("Ignored-Fields")
    of_body = {"ignored_fields": ignored.split(",")} if ignored else {}
    if answer.status_code >= 400:
        return {name: answer.json()[name] for name in ("status", "detail", "errors")} | of_body
    told = {name: answer.headers.get(f"Eligibility-{name}", "") for name in ("Changed", "Warnings")}
    lists = {name.lower(): value.split(",") if value else [] for name, value in told.items()}
    left = answer.headers.get("Eligibility-Left-Plan")
    return {
        "status": answer.status_code,
        "outcome": answer.headers["Eligibility-Outcome"],
        "invitation": answer.headers["Invitation"],
        **lists,
        **({"left_plan": left} if left else {}),
        **of_body,
    }


@pytest.mark.parametrize("is_lines", [False, True])
def test_each_record_is_answered_as_a_post_of_it_alone(
    api: Api, customer: Customer, path: str, is_lines: bool
) -> None:
    elsewhere = f"/v2/plans/{customer.plan_ids[1]}/eligibility"
    for n in (9, 109):
        assert api.post(elsewhere, member_body(n)).status_code == 201
    if is_lines:
        content = lines_of(records_of(0)) + b"\r\n\n"
        answer = api.post(f"{path}?move=true", content=content, headers=LINES)
    else:
        answer = api.post(f"{path}?move=true", records_of(0))
    alone = [api.post(path.removesuffix("/batch"), record) for record in records_of(100)]
    assert (answer.status_code, answer.headers["Cache-Control"]) == (207, "no-store")
    body = answer.json()
    assert body["links"]["self"].endswith(f"{path}?move=true")
    counts = {"created": 1, "updated": 1, "unchanged": 1, "moved": 1, "reopened": 0, "refused": 6}
    assert body["counts"] == counts
    for index, (result, post, record) in enumerate(
        zip(body["data"], alone, records_of(0), strict=True)
    ):
        stored = {name: result.pop(name) for name in ("id", "external_id") if name in result}
        assert result == {"index": index} | as_result(post)
        assert stored.get("external_id") == (
            record["external_id"] if result["status"] < 400 else None
        )
        assert ("id" in stored) is (result["status"] < 400)
    assert {each["status"] for each in body["data"]} == {200, 201, 422}


def test_a_record_that_is_no_object_stops_no_other(api: Api, path: str) -> None:
    as_array = api.post(path, [7, member_body(1), [], None, "x", {"a": {"b": 1}}])
    assert statuses(as_array) == [400, 201, 400, 400, 400, 422]
    assert as_array.json()["data"][0] == {
        "index": 0, "status": 400, "detail": "The record must be a JSON object.",
    }  # fmt: skip
    sent = (
        b'{"external_id": "AB 000001", "external_id": "2"}\n{"exter\n'
        + lines_of([member_body(2)])
        + b"\nNaN"
    )
    answer = api.post(path, content=sent, headers=LINES)
    assert statuses(answer) == [400, 400, 201, 400]
    assert "external_id twice" in answer.json()["data"][0]["detail"]
    assert "counts" in answer.json()


@pytest.mark.parametrize(("content", "status", "word"), [
    (b"", 400, "malformed"), (b"{}", 400, "malformed"), (b"[{}", 400, "malformed"),
    (b"[{}] x", 400, "malformed"), (b"[{},]", 400, "malformed"), (b"\xef\xbb\xbf[{}]", 400, "malformed"),
    (b'[{"a": "\xff"}]', 400, "malformed"),
    (b"\xff\xfe[\x00]\x00", 400, "malformed"), (b"[" * 100_000, 400, "malformed"),
    (b'[{"a": "' + b"x" * 140_000 + b'"}]', 400, "malformed"), (b"[]", 422, "empty"),
    (b"[" + b"{}," * 1000 + b"{}]", 422, "too_many_records"), (b" " * 8_388_609, 413, "too_large"),
], ids=range(13))  # fmt: skip
def test_a_body_that_is_at_fault_as_a_whole_writes_nothing(
    api: Api, path: str, content: bytes, status: int, word: str
) -> None:
    first = json.dumps(member_body()).encode() + b","
    if content.startswith(b"[{"):
        content = b"[" + first + content[1:]
    answer = api.post(path, content=content)
    assert answer.status_code == status
    assert word in (kind(answer)[1], codes(answer).get("records") if status == 422 else "")
    assert (
        codes(api.post(path.removesuffix("/batch"), {"external_id": "AB 000001"}))["dob"]
        == "required"
    )


def test_lines_are_limited_as_items_are(api: Api, path: str) -> None:
    assert kind(api.post(path, content=b"{}\n" * 1001, headers=LINES)) == (422, "invalid")
    assert kind(api.post(path, content=b"\n" * 70_000, headers=LINES)) == (422, "invalid")
    assert kind(api.post(path, content=b'{"a": "' + b"x" * 70_000, headers=LINES)) == (
        400,
        "malformed",
    )
    wide = [
        member_body(n, first_name="é" * 90, metadata={f"k{k}": "é" * 400 for k in range(40)})
        for n in range(2)
    ]
    assert statuses(api.post(path, content=json.dumps(wide, ensure_ascii=False).encode())) == [
        201,
        201,
    ]


@pytest.mark.parametrize(
    "kind_", ["text/plain", "application/jsonl", "application/x-ndjson; charset=utf-16"]
)
def test_only_json_and_json_lines_are_taken(api: Api, path: str, kind_: str) -> None:
    assert api.post(path, content=b"[]", headers={"Content-Type": kind_}).status_code == 415
    packed = LINES | {"Content-Encoding": "gzip"}
    assert api.post(path, content=b"{}", headers=packed).status_code == 415
    one = path.removesuffix("/batch")
    assert api.post(one, content=b"{}", headers=LINES).status_code == 415  # a batch only


def test_a_condition_counts_for_every_record(api: Api, customer: Customer, path: str) -> None:
    api.post(f"/v2/plans/{customer.plan_ids[1]}/eligibility", member_body(2))
    api.post(path, [member_body(1)])
    records = [member_body(1), member_body(2), member_body(3)]
    assert statuses(api.post(path + "?only=update&move=false", records)) == [200, 409, 404]
    found = api.post(path, records, headers={"If-None-Match": "*"}).json()["data"]
    assert [each["status"] for each in found] == [412, 412, 201]
    assert found[0]["errors"][0]["code"] == "member_exists"


def test_unknown_fields_of_all_records_are_named_or_refused(api: Api, path: str) -> None:
    records = [
        member_body(1, colour="x"),
        member_body(2, expiration_date="2027-01-01"),
        member_body(3, colour="y"),
    ]
    answer = api.post(path, records, headers={"Prefer": "handling=strict"})
    assert statuses(answer) == [422] * 3
    assert answer.json()["data"][0]["errors"][0]["code"] == "unknown_field"
    answer = api.post(path, records)
    assert (statuses(answer), answer.headers["Ignored-Fields"]) == (
        [201] * 3,
        "colour,expiration_date",
    )
    assert answer.headers["Did-You-Mean"] == "expiration_date=expiry_date"


def test_a_whole_batch_is_written_in_order(api: Api, path: str) -> None:
    records = [member_body(n % 500, last_name=f"Name {n}") for n in range(1000)]
    answer = api.post(path, records)
    assert statuses(answer) == [201] * 500 + [200] * 500
    assert answer.json()["counts"] == {
        "created": 500,
        "updated": 500,
        "unchanged": 0,
        "moved": 0,
        "reopened": 0,
        "refused": 0,
    }
    again = api.post(path, records[500:])
    assert again.json()["counts"]["unchanged"] == 500


def group_writer(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[int]:
    """The sizes of the groups that are written from now on; `answer` makes the results of each,
    from its number.
    """
    sizes: list[int] = []
    commit = Enrolments.commit_group

    async def commit_group(self: Enrolments, items: Sequence[Submission]) -> Any:
        sizes.append(len(items))
        error = answer(len(sizes))
        if error is not None:
            raise error
        return await commit(self, items)

    monkeypatch.setattr(Enrolments, "commit_group", commit_group)
    return sizes


def test_a_database_that_is_away_is_not_asked_for_each_group(
    api: Api, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = group_writer(
        monkeypatch, lambda number: Unavailable("The database is busy.") if number > 1 else None
    )
    answer = api.post(path, [member_body(n) for n in range(200)])
    assert len(sizes) == 2
    written = sizes[0]
    assert statuses(answer) == [201] * written + [503] * (200 - written)
    details = [each["detail"] for each in answer.json()["data"][written:]]
    assert (len(set(details)), details[0]) == (2, "The database is busy.")
    assert "not tried" in details[-1]
    monkeypatch.undo()
    again = api.post(path, [member_body(n) for n in range(200)])
    assert again.json()["counts"]["created"] == 200 - written


def test_a_fault_of_the_service_hides_no_record_that_could_be_written(
    api: Api, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    group_writer(monkeypatch, lambda number: ZeroDivisionError("a fault") if number == 1 else None)
    records = [member_body(n) for n in range(100)]
    assert api.post(path, records).status_code == 500
    monkeypatch.undo()
    counts = api.post(path, records).json()["counts"]
    assert (counts["unchanged"] > 0, counts["created"] > 0) == (True, True)


def test_groups_of_batches_take_turns_beside_single_records(
    app: App, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submission(n: int) -> Submission:
        record = parse_member(member_body(n), today=clock().date().isoformat())
        return Submission(customer.account_id, customer.plan_ids[0], record, "client", f"r-{n}")

    running = 0
    most = 0
    commit = app.enrolments.commit_group

    async def commit_group(items: Sequence[Submission]) -> Sequence[Enrolled | Exception]:
        nonlocal running, most
        is_of_batch = items[0].request_id < "r-6"
        running += is_of_batch
        most = max(most, running)
        results = await commit(items)
        running -= is_of_batch
        return results

    monkeypatch.setattr(app.enrolments, "commit_group", commit_group)

    async def scene() -> tuple[list[Any], list[Any]]:
        enrolments = app.enrolments
        groups = [
            enrolments.submit_together([submission(n + k) for k in range(5)])
            for n in range(0, 50, 5)
        ]
        alone = [enrolments.submit(submission(n)) for n in range(60, 65)]
        done = await asyncio.gather(*groups, *alone)
        await enrolments.close()
        with pytest.raises(Unavailable):
            await enrolments.submit_together([submission(99)])
        return done[:10], done[10:]

    groups, alone = asyncio.run(scene())
    assert ([len(group) for group in groups], most) == ([5] * 10, 1)
    assert all(
        isinstance(each, Enrolled)
        for each in (*(each for group in groups for each in group), *alone)
    )
    assert not any(isinstance(each, FrontdeskError) for group in groups for each in group)
