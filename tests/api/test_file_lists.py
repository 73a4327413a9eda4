"""Files are listed, found again after a lost answer, and their reports are read by outcome, by code, by the page, compressed."""

import gzip
import threading
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.files import actions, set_file_settings
from frontdesk.files.actions import Upload, begin_file
from frontdesk.files.model import NewFile
from tests.api.test_files import act, address, held, upload, work
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, second_token
from tests.files.loading import csv_of, row

EVERY = "/v2/eligibility-files"


def ids(answer: Any) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [file["id"] for file in answer.json()["data"]]


def rest(answer: Any) -> str:
    """Path and query of the next page."""
    link: str = answer.json()["links"]["next"]
    return link.removeprefix("https://api.example.com")


def test_files_are_listed_newest_first_by_the_page(api: Api, db: Database, customer: Customer) -> None:
    mine = [upload(api, customer, csv_of([row(n)])).json()["data"]["id"] for n in range(5)]
    other = make_customer(db, name="Other")
    theirs = upload(api.as_(other.token), other, csv_of([row(9)])).json()["data"]["id"]
    assert ids(api.get(EVERY)) == ids(api.get(address(customer))) == mine[::-1]
    assert "next" not in api.get(EVERY).json()["links"]
    first = api.get(EVERY + "?page[size]=2&state=waiting")
    second = api.get(rest(first))
    third = api.get(rest(second))
    assert [ids(page) for page in (first, second, third)] == [mine[:2:-1], mine[2:0:-1], mine[:1]]
    assert "next" not in third.json()["links"]
    assert ids(api.as_(other.token).get(EVERY)) == [theirs]
    assert ids(api.get(f"/v2/plans/{customer.plan_ids[1]}/eligibility-files")) == []


def test_files_are_filtered_by_state_and_content(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    done, waiting = (upload(api, customer, csv_of([row(n)])).json()["data"] for n in (1, 2))
    assert work(db, clock)
    for path in (EVERY, address(customer)):
        assert ids(api.get(path + "?state=done")) == [done["id"]]
        assert ids(api.get(path + "?state=waiting")) == [waiting["id"]]
        assert ids(api.get(f"{path}?sha256={waiting['sha256']}")) == [waiting["id"]]
        assert ids(api.get(f"{path}?sha256={waiting['sha256']}&state=done")) == []
        assert api.get(path + "?state=open&page[size]=0&page[after]=x&sha256=1").status_code == 422


def keyed(api: Api, customer: Customer, content: bytes, key: str, query: str = "") -> Any:
    headers = {"Content-Type": "text/csv", "Idempotency-Key": key}
    return api.request("POST", address(customer) + query, content=content, headers=headers)


def test_an_upload_is_found_again_by_its_key(api: Api, db: Database, customer: Customer) -> None:
    content = csv_of([row(1)])
    first, again = (keyed(api, customer, content, "night-1") for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.headers["Location"] == again.headers["Location"]
    assert ids(api.get(EVERY)) == [first.json()["data"]["id"]]
    other = make_customer(db, name="Other")
    assert (
        keyed(api.as_(other.token), other, content, "night-1").json()["data"]["id"]
        != first.json()["data"]["id"]
    )


def test_a_key_that_comes_with_something_else_is_refused_and_leaves_nothing(
    api: Api, db: Database, customer: Customer
) -> None:
    content = csv_of([row(1)])
    keyed(api, customer, content, "night-1", "?dry_run=true")
    for other, query in (
        (csv_of([row(2)]), "?dry_run=true"),
        (content, ""),
        (content, "?dry_run=true&mode=full"),
    ):
        refused = keyed(api, customer, other, "night-1", query)
        assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "idempotency_key_reused")
    assert len(ids(api.get(EVERY))) == 1
    for key in ("a b", "x" * 256, "\x7f"):
        assert keyed(api, customer, content, key).status_code == 422


def test_of_racing_uploads_with_one_key_one_becomes_a_file(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    new = NewFile(customer.account_id, customer.plan_ids[0], idempotency_key="key")
    requester = Requester("client", "id", clock())
    found: list[int] = []
    start = threading.Barrier(6)

    def send() -> None:
        with db.write() as tx:
            upload = Upload(db, begin_file(tx, new, requester))
        upload.write(b"external_id\nE1\n")
        start.wait()
        found.append(upload.finish(requester, new).id)

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 1


def test_an_empty_upload_is_refused_at_once(api: Api, db: Database, customer: Customer) -> None:
    refused = upload(api, customer, b"")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "empty")
    assert ids(api.get(EVERY)) == []


def test_a_report_is_read_by_outcome_by_code_and_by_the_page(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    path = f"{address(customer)}/{held(api, db, customer, clock)}"
    file = api.get(path).json()["data"]
    assert file["counts"] == {"would_end": 40}
    assert file["codes"] == {"ended_by_absence": 40}
    whole = api.get(path + "/report").text.splitlines()
    listed = api.get(path + "/report?outcome=would_end").text.splitlines()
    assert (len(whole), listed) == (40, whole)
    assert api.get(path + "/report?code=ended_by_absence").text.splitlines() == listed
    none = api.get(path + "/report?code=not_a_date&page[size]=5")
    assert (none.text, none.headers["Content-Type"]) == ("", "application/x-ndjson")
    for query in ("", "outcome=would_end&"):
        pages, link = [], f"{path}/report?{query}page[size]=15"
        while link:
            answer = api.get(link)
            pages.append(answer.text.splitlines())
            link = answer.links.get("next", {}).get("url", "").removeprefix("https://api.example.com")
        assert [line for page in pages for line in page] == (listed if query else whole)
        assert [len(page) for page in pages[:2]] == [15, 15]
    table = api.get(path + "/report?format=csv&page[size]=1&page[after]=0.0").text.splitlines()
    assert [line.partition(",")[0] for line in table] == ["row", ""]
    for query in ("outcome=gone", "code=%20", "page[size]=0", "page[size]=10001", "page[after]=1"):
        assert api.get(f"{path}/report?{query}").status_code == 422


@pytest.mark.parametrize(
    ("accepts", "is_packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0, *", False),
        ("gzip; q=0.0", False),
    ],
)
def test_a_report_is_compressed_for_callers_that_take_it(
    api: Api, db: Database, customer: Customer, clock: SetClock, accepts: str, is_packed: bool
) -> None:
    upload(api, customer, csv_of(row(n) for n in range(50)))
    assert work(db, clock)
    for query in ("", "?page[size]=50"):
        plain = api.get(f"{address(customer)}/1/report{query}", headers={"Accept-Encoding": "identity"})
        asked = {"Authorization": f"Bearer {api.token}", "Accept-Encoding": accepts}
        with api.http.stream("GET", f"{address(customer)}/1/report{query}", headers=asked) as answer:
            raw = b"".join(answer.iter_raw())
        assert (answer.headers.get("Content-Encoding") == "gzip", answer.headers["Vary"]) == (
            is_packed,
            "accept-encoding",
        )
        assert (gzip.decompress(raw) if is_packed else raw) == plain.content


def test_a_running_file_is_cancelled(api: Api, db: Database, customer: Customer) -> None:
    file_id = upload(api, customer, csv_of([row(1)])).json()["data"]["id"]
    with db.write() as tx:
        tx.exec_driver_sql("UPDATE eligibility_files SET state = 'running'")
    cancelled = act(api, customer, file_id, "cancel")
    assert (cancelled.status_code, cancelled.json()["data"]["state"]) == (200, "cancelled")
    again = act(api, customer, file_id, "cancel")
    assert (again.status_code, again.json()["type"].rpartition("#")[2]) == (409, "wrong_state")


def test_an_account_may_want_a_second_person_to_approve(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    file_id = held(api, db, customer, clock)
    with db.write() as tx:
        set_file_settings(tx, customer.account_id, second_approver=True)
    refused = act(api, customer, file_id, "approve")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (403, "second_person_needed")
    second = second_token(db, customer.account_id)
    approved = act(api.as_(second), customer, file_id, "approve")
    assert (approved.status_code, approved.json()["data"]["state"]) == (200, "waiting")


def test_an_account_has_so_many_files_waiting_and_no_more(
    api: Api, app: App, db: Database, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_FILES", 2)
    for n in range(2):
        assert upload(api, customer, csv_of([row(n)])).status_code == 202
    refused = upload(api, customer, csv_of([row(9)]))
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (429, "too_many_files")
    assert int(refused.headers["Retry-After"]) > 0
    other = make_customer(db, name="Other")
    assert upload(api.as_(other.token), other, csv_of([row(3)])).status_code == 202
    assert work(db, clock)
    assert upload(api, customer, csv_of([row(9)])).status_code == 202


def test_the_waiting_files_of_an_account_have_so_many_bytes_together(
    api: Api, app: App, db: Database, customer: Customer, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_BYTES", 1 << 20)
    assert upload(api, customer, b"external_id\n" + b"x" * 700_000).status_code == 202
    refused = upload(api, customer, b"external_id\n" + b"y" * 700_000)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (413, "too_many_bytes")
    assert len(ids(api.get(EVERY))) == 1
    assert upload(api, customer, csv_of([row(1)])).status_code == 202
