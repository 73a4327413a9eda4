"""Eligibility files over HTTP: upload, progress, report; whose they are."""

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from frontdesk.audit import Requester, list_entries
from frontdesk.config import Uniqueness
from frontdesk.db import Database
from frontdesk.files.actions import save_mapping
from frontdesk.files.claims import RunOptions
from frontdesk.files.model import MappingName
from frontdesk.files.run import run_next
from tests.conftest import Api, SetClock
from tests.factories import Customer, member_body
from tests.files.loading import csv_of, lines_of, row


def address(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility-files"


def upload(api: Api, customer: Customer, content: Any, query: str = "", kind: str = "text/csv") -> Any:
    return api.request("POST", address(customer) + query, content=content, headers={"Content-Type": kind})


def work(db: Database, clock: SetClock) -> bool:
    return run_next(db, clock, RunOptions(Uniqueness.SERVICE))


def test_an_uploaded_file_waits_is_loaded_and_reported(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    taken = upload(api, customer, csv_of([row(1), row(2, dob="never")]))
    assert taken.status_code == 202
    assert taken.headers["Location"] == taken.json()["links"]["self"]
    assert taken.json()["data"]["state"] == "waiting"
    path = taken.headers["Location"].removeprefix("https://api.example.com")
    assert work(db, clock)
    data = api.get(path).json()["data"]
    assert (data["state"], data["counts"], data["rows_done"]) == ("done", {"created": 1, "refused": 1}, 2)
    lines = api.get(path + "/report").text.splitlines()
    said = '{"row":2,"external_id":"E00001","outcome":"created","code":"","field":"","hint":""'
    assert lines[0] == said + ',"changed":[],"left_plan":null}'
    assert api.get(path + "/report?external_id=E00002").text.splitlines() == lines[1:]
    table = api.get(path + "/report?format=csv")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert table.text.splitlines()[2].startswith("3,E00002,refused,not_a_date,dob,")


def test_a_file_says_what_it_was_read_by(api: Api, db: Database, customer: Customer, clock: SetClock) -> None:
    content = csv_of([row(1)]).replace(b",", b";")
    sent = {"Content-Type": "text/csv", "Content-Disposition": 'attachment; filename="May 2026.csv"'}
    one = api.request(
        "POST", address(customer) + "?mapping=%7B%22clear%22:%22-%22%7D", content=content, headers=sent
    )
    two = upload(api, customer, content, "?file_name=list.csv")
    assert work(db, clock)
    path = one.headers["Location"].removeprefix("https://api.example.com")
    data = api.get(path).json()["data"]
    names = ("client", "file_name", "encoding", "delimiter", "sheet", "mapping")
    version = sha256(b'{"clear":"-"}').hexdigest()[:12]
    assert [data[name] for name in names] == [
        *(customer.client_id, "May 2026.csv", "utf-8", ";", None),
        {"name": None, "version": version},
    ]
    assert (two.json()["data"]["file_name"], two.json()["data"]["mapping"]) == ("list.csv", None)
    for name in ("a%0Ab", "x" * 256):
        assert upload(api, customer, content, f"?file_name={name}").status_code == 422


def test_the_columns_that_are_no_field_are_named_as_the_file_names_them(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    header, first, _ = csv_of([row(1)]).decode().split("\n")
    content = f"{header.strip()},Shoe size \u00e9,100% sure\n{first.strip()},44,x\n".encode()
    path = upload(api, customer, content).headers["Location"].removeprefix("https://api.example.com")
    assert work(db, clock)
    assert api.get(path).json()["data"]["ignored_columns"] == ["Shoe size \u00e9", "100% sure"]


def test_a_day_that_does_not_exist_is_called_that_in_posts_and_files(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    refused = api.post(f"/v2/plans/{customer.plan_ids[0]}/eligibility", member_body(9, dob="2026-02-30"))
    [fault] = refused.json()["errors"]
    assert (fault["code"], fault["message"].partition("; ")[2]) == ("not_a_date", "this day does not exist")
    mapping = quote('{"fields": {"dob": {"column": "dob", "dates": ["MM/DD/YYYY"]}}}')
    rows = [row(1, dob="2026-02-30"), row(2, dob="02/30/1977"), row(3, dob="13/01/1977")]
    taken = upload(api, customer, csv_of(rows), f"?mapping={mapping}")
    assert work(db, clock)
    path = taken.headers["Location"].removeprefix("https://api.example.com")
    hints = [
        json.loads(line)["hint"].partition("; ")[2] for line in api.get(path + "/report").text.splitlines()
    ]
    assert hints == ["this day does not exist", "this day does not exist", "it looks like day/month/year"]


def test_a_large_upload_streams_in_and_out(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    def pieces() -> Iterator[bytes]:
        content = csv_of(row(n, email="x" * 4000) for n in range(700))
        for start in range(0, len(content), 70_000):
            yield content[start : start + 70_000]

    taken = upload(api, customer, pieces())
    assert taken.json()["data"]["size_bytes"] > 2_500_000
    assert work(db, clock)
    report = api.get(f"{address(customer)}/1/report").text.splitlines()
    assert sum('"outcome":"created"' in line for line in report) == 700
    assert sum('"code":"email_dropped"' in line for line in report) == 700


def test_gzip_and_other_formats_are_recognised(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    upload(api, customer, gzip.compress(lines_of([row(1)])), kind="application/octet-stream")
    upload(api, customer, csv_of([row(2)]), "?format=csv&dry_run=true", "application/json")
    assert work(db, clock)
    assert work(db, clock)
    assert not work(db, clock)
    assert api.get(f"{address(customer)}/1").json()["data"]["counts"] == {"created": 1}
    dry = api.get(f"{address(customer)}/2").json()["data"]
    assert (dry["dry_run"], dry["counts"]) == (True, {"created": 1})


def test_parameters_that_mean_nothing_are_refused(api: Api, customer: Customer) -> None:
    for query in ("?mode=all", "?format=xls", "?dry_run=1", "?encoding=%C3%A9", "?mode=full&mode=full"):
        assert upload(api, customer, b"x", query).status_code == 422
    assert api.get(address(customer) + "/1/report?format=pdf").status_code == 422


def test_an_upload_above_the_limit_is_refused_and_leaves_nothing(
    api: Api, db: Database, customer: Customer
) -> None:
    declared = api.request("POST", address(customer), content=b"x", headers={"Content-Length": str(2**31)})
    assert declared.status_code == 413
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 0
        assert tx.exec_driver_sql("SELECT count(*) FROM file_parts").scalar() == 0


def act(api: Api, customer: Customer, file_id: int, deed: str) -> Any:
    return api.request("POST", f"{address(customer)}/{file_id}/{deed}")


def held(api: Api, db: Database, customer: Customer, clock: SetClock) -> int:
    """A full file that would end 40 members."""
    upload(api, customer, csv_of(row(n) for n in range(41)))
    assert work(db, clock)
    file_id = upload(api, customer, csv_of([row(0)]), "?mode=full").json()["data"]["id"]
    assert work(db, clock)
    return int(file_id)


def test_a_held_file_is_approved_by_its_customer(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    file_id = held(api, db, customer, clock)
    approved = act(api, customer, file_id, "approve")
    assert (approved.status_code, approved.json()["data"]["state"]) == (200, "waiting")
    assert work(db, clock)
    assert api.get(f"{address(customer)}/{file_id}").json()["data"]["counts"] == {"unchanged": 1, "ended": 40}
    again = act(api, customer, file_id, "approve")
    assert (again.status_code, again.json()["errors"][0]["code"]) == (409, "wrong_state")


def test_a_held_file_is_cancelled_by_its_customer(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    file_id = held(api, db, customer, clock)
    cancelled = act(api, customer, file_id, "cancel")
    assert (cancelled.status_code, cancelled.json()["data"]["state"]) == (200, "cancelled")
    assert not work(db, clock)


def test_a_file_is_undone_by_its_customer_and_the_undo_is_a_file(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    file_id = upload(api, customer, csv_of([row(1)])).json()["data"]["id"]
    assert work(db, clock)
    undo = act(api, customer, file_id, "undo")
    assert (undo.status_code, undo.json()["data"]["undoes_id"]) == (202, file_id)
    path = undo.headers["Location"].removeprefix("https://api.example.com")
    assert work(db, clock)
    assert api.get(path).json()["data"]["counts"] == {"withdrawn": 1}
    assert [
        line["action"] for line in db.ask(list_entries) if line["subject_id"] == undo.json()["data"]["id"]
    ][-1] == "file.undo_asked"
    again = act(api, customer, file_id, "undo")
    assert (again.status_code, "undone already" in again.json()["detail"]) == (409, True)


def test_a_misspelt_dry_run_is_refused_and_nothing_is_taken(
    api: Api, db: Database, customer: Customer
) -> None:
    refused = upload(api, customer, csv_of([row(1)]), "?dryrun=true")
    assert refused.status_code == 422
    [fault] = refused.json()["errors"]
    assert (fault["field"], fault["code"]) == ("dryrun", "unknown_parameter")
    assert fault["did_you_mean"] == "dry_run"
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 0


def test_a_file_in_a_form_is_refused(api: Api, customer: Customer) -> None:
    refused = api.request("POST", address(customer), files={"file": ("members.csv", csv_of([row(1)]))})
    assert refused.status_code == 415


def test_an_upload_is_read_by_the_accounts_mapping(
    api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    mapping = {"columns": {"Employee No": "external_id"}, "delimiter": "|"}
    with db.write() as tx:
        key = MappingName(customer.account_id, "usual")
        save_mapping(tx, key, mapping, Requester("test", "test", clock()), default=True)
    content = csv_of([row(1)]).replace(b",", b"|").replace(b"external_id", b"Employee No")
    path = f"{address(customer)}/{upload(api, customer, content).json()['data']['id']}"
    assert work(db, clock)
    assert api.get(path).json()["data"]["counts"] == {"created": 1}
