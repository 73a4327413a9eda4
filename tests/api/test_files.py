"""Eligibility files over HTTP: upload, types, progress, decisions, lists, reports, audit trail;
whose they are.
"""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import Any

import pytest

from frontdesk.app import App
from frontdesk.audit import Requester
from frontdesk.db import Database
from frontdesk.files import actions, set_file_settings
from frontdesk.files.actions import Upload, begin_file
from frontdesk.files.model import EligibilityFile, NewFile
from frontdesk.idempotency.model import AnsweredBefore, Once, StoredAnswer
from frontdesk.installation import build_asgi
from frontdesk.web.telemetry import Telemetry
from tests.api.conftest import BASE_URL, Files, Trail, codes
from tests.conftest import Api, SetClock
from tests.factories import Customer, make_customer, second_token
from tests.faults.in_process import Nowhere
from tests.files.loading import Desk, csv_of, row

EVERY = "/v2/eligibility-files"
ZOE = csv_of([row(1, first_name="Zoë")])


def ids(answer: Any) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [file["id"] for file in answer.json()["data"]]


def refused(answer: Any, status: int, code: str) -> None:
    assert (answer.status_code, [*codes(answer).values()]) == (status, [code])


def test_an_uploaded_file_waits_is_loaded_and_reported(files: Files, api: Api) -> None:
    taken = files.upload(csv_of([row(1), row(2, dob="never")]))
    assert taken.status_code == 202
    assert taken.headers["Location"] == taken.json()["links"]["self"]
    assert taken.json()["data"]["state"] == "waiting"
    path = taken.headers["Location"].removeprefix(BASE_URL)
    assert files.work()
    data = api.get(path).json()["data"]
    assert (data["state"], data["counts"], data["rows_done"]) == (
        "done",
        {"created": 1, "refused": 1},
        2,
    )
    lines = files.report(data)
    said = '{"row":2,"external_id":"E00001","outcome":"created","code":"","field":"","hint":""'
    said += ',"changed":[],"left_plan":null,"transaction":null,"ordinal":null'
    assert lines[0] == said + ',"access_before":null,"access_after":null}'
    assert files.report(data, "?external_id=E00002") == lines[1:]
    table = api.get(path + "/report?format=csv")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert table.text.splitlines()[2].startswith("3,E00002,refused,not_a_date,dob,")


def test_a_file_says_how_it_was_read_and_which_columns_are_no_field(
    files: Files, customer: Customer
) -> None:
    header, first, _ = csv_of([row(1)]).decode().split("\n")
    content = f"{header.strip()},Shoe size é,100% sure\n{first.strip()},44,x\n".replace(
        ",", ";"
    ).encode()
    disposition = {"Content-Disposition": 'attachment; filename="May 2026.csv"'}
    one = files.upload(content, "?mapping=%7B%22clear%22:%22-%22%7D", **disposition)
    two = files.upload(content, "?file_name=list.csv")
    assert files.work()
    data = files.file(one)
    names = ("client", "file_name", "encoding", "delimiter", "sheet", "mapping")
    version = sha256(b'{"clear":"-"}').hexdigest()[:12]
    assert [data[name] for name in names] == [
        *(customer.client_id, "May 2026.csv", "utf-8", ";", None),
        {"name": None, "version": version},
    ]
    assert data["ignored_columns"] == ["Shoe size é", "100% sure"]
    assert (two.json()["data"]["file_name"], two.json()["data"]["mapping"]) == ("list.csv", None)
    for name in ("a%0Ab", "x" * 256):
        assert files.upload(content, f"?file_name={name}").status_code == 422


def test_a_large_upload_streams_in_and_out(files: Files) -> None:
    def pieces() -> Iterator[bytes]:
        content = csv_of(row(n, email="x" * 4000) for n in range(700))
        for start in range(0, len(content), 70_000):
            yield content[start : start + 70_000]

    data = files.load(pieces())
    assert data["size_bytes"] > 2_500_000
    report = files.report(data)
    assert sum('"outcome":"created"' in line for line in report) == 700
    assert sum('"code":"email_dropped"' in line for line in report) == 700


@pytest.mark.parametrize("key", ["?mode=all", "?dry_run=1", "?mode=full&mode=full", "?dryrun=true"])
def test_a_parameter_that_means_nothing_is_refused_and_nothing_is_taken(
    files: Files, key: str
) -> None:
    answer = files.upload(csv_of([row(1)]), key)
    [fault] = answer.json()["errors"]
    assert (answer.status_code, fault["field"]) == (422, key[1:].partition("=")[0])
    assert fault.get("did_you_mean") == ("dry_run" if "dryrun" in key else None)
    assert files.count() == 0


def test_a_held_file_waits_for_a_second_person_where_wanted(
    files: Files, api: Api, db: Database
) -> None:
    file_id = files.held()
    account = files.customer.account_id
    with db.write() as tx:
        set_file_settings(tx, account, second_approver=True)
    refused(files.act(file_id, "approve"), 403, "second_person_needed")
    approved = api.as_(second_token(db, account)).post(f"{files.path}/{file_id}/approve")
    assert (approved.status_code, approved.json()["data"]["state"]) == (200, "waiting")
    assert files.work()
    assert files.file(file_id)["counts"] == {"unchanged": 1, "ended": 40, "lost": 40}
    refused(files.act(file_id, "approve"), 409, "wrong_state")


def test_a_file_is_undone_by_its_customer_and_the_undo_is_a_file(
    files: Files, trail: Trail
) -> None:
    file_id = files.load(csv_of([row(1)]))["id"]
    undo = files.act(file_id, "undo")
    assert (undo.status_code, undo.json()["data"]["undoes_id"]) == (202, file_id)
    assert undo.headers["Location"] == f"{BASE_URL}{files.path}/{undo.json()['data']['id']}"
    assert files.work()
    assert files.file(undo)["counts"] == {"withdrawn": 1, "lost": 1}
    assert [entry["subject_id"] for entry in trail("file.undo_asked")] == [
        undo.json()["data"]["id"]
    ]
    again = files.act(file_id, "undo")
    assert (again.status_code, "undone already" in again.json()["detail"]) == (409, True)


def test_files_are_listed_newest_first_by_the_page(files: Files, api: Api, db: Database) -> None:
    mine = [files.upload(csv_of([row(n)])).json()["data"]["id"] for n in range(5)]
    other = files.of(make_customer(db, name="Other"))
    theirs = other.upload(csv_of([row(9)])).json()["data"]["id"]
    assert ids(api.get(EVERY)) == ids(api.get(files.path)) == mine[::-1]
    pages = []
    link = EVERY + "?page[size]=2&state=waiting"
    while link:
        pages.append(api.get(link))
        link = pages[-1].json()["links"].get("next", "").removeprefix(BASE_URL)
    assert [ids(page) for page in pages] == [mine[:2:-1], mine[2:0:-1], mine[:1]]
    assert ids(other.api.get(EVERY)) == [theirs]
    assert ids(api.get(f"/v2/plans/{files.customer.plan_ids[1]}/eligibility-files")) == []


def test_files_are_filtered_by_state_and_content(files: Files, api: Api) -> None:
    done = files.load(csv_of([row(1)]))["id"]
    waiting = files.upload(csv_of([row(2)])).json()["data"]
    for path in (EVERY, files.path):
        assert ids(api.get(path + "?state=done")) == [done]
        assert ids(api.get(path + "?state=waiting")) == [waiting["id"]]
        assert ids(api.get(f"{path}?sha256={waiting['sha256']}")) == [waiting["id"]]
        assert ids(api.get(f"{path}?sha256={waiting['sha256']}&state=done")) == []
        wrong = api.get(path + "?state=open&page[size]=0&page[after]=x&sha256=1")
        assert set(codes(wrong)) == {"state", "page[size]", "page[after]", "sha256"}


def test_an_upload_is_found_again_by_its_key_and_no_other_is(
    files: Files, api: Api, db: Database
) -> None:
    content = csv_of([row(1)])
    key = {"Idempotency-Key": "night-1"}
    first, again = (files.upload(content, "?dry_run=true", **key) for _ in range(2))
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.headers["Location"] == again.headers["Location"]
    assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
    assert files.work()  # the answer stays the first one, of a file that waits
    assert files.upload(content, "?dry_run=true", **key).content == first.content
    changed = (
        (csv_of([row(2)]), "?dry_run=true"),
        (content, ""),
        (content, "?dry_run=true&mode=full"),
    )
    for other, query in changed:
        refused(files.upload(other, query, **key), 422, "idempotency_key_reused")
    assert ids(api.get(EVERY)) == [first.json()["data"]["id"]]
    for odd in ("a b", "x" * 256, "\x7f"):
        assert files.upload(content, **{"Idempotency-Key": odd}).status_code == 422
    theirs = files.of(make_customer(db, name="Other")).upload(content, "?dry_run=true", **key)
    assert theirs.json()["data"]["id"] != first.json()["data"]["id"]


def test_of_racing_uploads_with_one_key_one_wins(
    db: Database, customer: Customer, clock: SetClock
) -> None:
    new = NewFile(customer.account_id, customer.plan_ids[0])
    requester = Requester("client", "id", clock())
    start = threading.Barrier(6)

    def keyed(sha256: str) -> Once[EligibilityFile]:
        return Once(
            customer.account_id, "key", sha256, lambda file: StoredAnswer(202, "[]", str(file.id))
        )

    def send(_: int) -> int:
        with db.write() as tx:
            upload = Upload(db, begin_file(tx, new, requester))
        upload.write(b"external_id\nE1\n")
        start.wait()
        try:
            return upload.finish(requester, keyed).id
        except AnsweredBefore as before:
            upload.discard()
            return int(before.answer.body)

    with ThreadPoolExecutor(6) as threads:
        assert len(set(threads.map(send, range(6)))) == 1
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT count(*) FROM eligibility_files").scalar() == 1


def test_so_many_files_and_bytes_wait_and_no_more(
    files: Files, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_FILES", 2)
    for n in range(2):
        assert files.upload(csv_of([row(n)])).status_code == 202
    answer = files.upload(csv_of([row(9)]))
    refused(answer, 429, "too_many_files")
    assert int(answer.headers["Retry-After"]) > 0
    assert files.of(make_customer(db, name="Other")).upload(csv_of([row(3)])).status_code == 202
    assert files.work()
    assert files.upload(csv_of([row(9)])).status_code == 202
    monkeypatch.setattr(actions, "MOST_FILES", 9)
    monkeypatch.setattr(actions, "MOST_BYTES", 1 << 20)
    waiting = files.count()
    assert files.upload(b"external_id\n" + b"x" * 700_000).status_code == 202
    refused(files.upload(b"external_id\n" + b"y" * 700_000), 413, "too_many_bytes")
    assert files.count() == waiting + 1
    assert files.upload(csv_of([row(1)])).status_code == 202


def test_a_report_is_read_by_outcome_by_code_and_by_the_page(files: Files, api: Api) -> None:
    file = files.file(files.held())
    assert file["counts"] == {"would_lose": 40, "lost": 40}
    assert file["codes"] == {"loses_access": 40}
    whole = files.report(file)
    assert len(whole) == 40
    assert (
        files.report(file, "?outcome=would_lose")
        == files.report(file, "?code=loses_access")
        == whole
    )
    path = f"{files.path}/{file['id']}/report"
    none = api.get(path + "?code=not_a_date&page[size]=5")
    assert (none.text, none.headers["Content-Type"]) == ("", "application/x-ndjson")
    for query in ("", "outcome=would_lose&"):
        pages = []
        link = f"{path}?{query}page[size]=15"
        while link:
            answer = api.get(link)
            pages.append(answer.text.splitlines())
            link = answer.links.get("next", {}).get("url", "").removeprefix(BASE_URL)
        assert [len(page) for page in pages] == [15, 15, 10]
        assert [line for page in pages for line in page] == whole
    table = files.report(file, "?format=csv&page[size]=1&page[after]=0.0")
    assert [line.partition(",")[0] for line in table] == ["row", ""]
    for query in (
        "outcome=gone",
        "code=%20",
        "page[size]=0",
        "page[size]=10001",
        "page[after]=1",
        "format=pdf",
    ):
        assert api.get(f"{path}?{query}").status_code == 422


def test_a_report_is_compressed_for_callers_that_take_it(files: Files, api: Api) -> None:
    file = files.load(csv_of(row(n) for n in range(50)))
    accepted = dict.fromkeys(("gzip", "br, gzip;q=0.5", "*"), True)
    accepted |= dict.fromkeys(("identity", "gzip;q=0, *", "gzip; q=0.0"), False)
    for accepts, is_packed in accepted.items():
        asked = {"Authorization": f"Bearer {api.token}", "Accept-Encoding": accepts}
        for query in ("", "?page[size]=50"):
            path = f"{files.path}/{file['id']}/report{query}"
            plain = api.get(path, headers={"Accept-Encoding": "identity"})
            with api.http.stream("GET", path, headers=asked) as answer:
                raw = b"".join(answer.iter_raw())
            assert (answer.headers.get("Content-Encoding") == "gzip") is is_packed, accepts
            assert answer.headers["Vary"] == "accept-encoding"
            assert (gzip.decompress(raw) if is_packed else raw) == plain.content


def test_whole_reports_go_one_at_a_time(
    app: App, db: Database, customer: Customer, clock: SetClock
) -> None:
    """docs/interface.md, Limits."""
    file = Desk(db, customer, clock).load(csv_of([row(1)]))
    path = f"/v2/plans/{customer.plan_ids[0]}/eligibility-files/{file.id}/report"
    other_client = second_token(db, customer.account_id)
    asgi = build_asgi(app, Telemetry(Nowhere()))
    told: list[tuple[int, int, int]] = []

    async def read(during: Any = None, *, token: str = customer.token, query: bytes = b"") -> Any:
        """The messages of the answer; `during` is called whenever a piece of the report is on its
        way.
        """
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)
            if during is not None and message["type"] == "http.response.body":
                await during()

        headers = [(b"host", b"api.example.com"), (b"authorization", f"Bearer {token}".encode())]
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "headers": headers,
            "query_string": query,
        }
        await asgi(scope | {"root_path": ""}, receive, send)
        return sent

    async def others() -> None:
        start, body = await read()
        if "report_open" in str(body["body"]) and (b"retry-after", b"5") in start["headers"]:
            paged = await read(query=b"page%5Bsize%5D=10")
            theirs = await read(token=other_client)
            told.append((start["status"], paged[0]["status"], theirs[0]["status"]))

    async def gone() -> None:
        raise ConnectionError

    async def run() -> None:
        assert (await read(others))[0]["status"] == 200
        assert set(told) == {(429, 200, 200)}
        with suppress(ConnectionError):
            await read(gone)
        assert (await read())[0]["status"] == 200
        await app.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ((b'{"external_id": "1"}', "", "Text/CSV; charset=utf-8"), ("text/csv", "JSON lines")),
        ((ZOE, "", "image/png"), ("image/png", "CSV")),
        ((b"PK\x03\x04", "?format=csv", "text/csv"), ("format is csv", "an Excel workbook")),
    ],
)
def test_a_type_that_the_content_contradicts_is_415(
    files: Files, sent: Any, named: tuple[str, str]
) -> None:
    refused = files.upload(*sent)
    declared, found = named
    assert refused.status_code == 415
    assert declared in refused.json()["detail"]
    assert f"looks like {found}" in refused.json()["detail"]
    assert files.count() == 0


@pytest.mark.parametrize(
    ("sent", "faults"),
    [
        ((b"",), {"body": "empty"}),
        ((ZOE, "", "text/csv; charset=klingon"), {"encoding": "unknown_encoding"}),
        ((ZOE, "?encoding=klingon"), {"encoding": "unknown_encoding"}),
    ],
)
def test_no_content_or_a_strange_encoding_is_refused(
    files: Files, sent: Any, faults: dict[str, str]
) -> None:
    refused = files.upload(*sent)
    assert (refused.status_code, codes(refused)) == (422, faults)
    assert files.count() == 0


@pytest.mark.parametrize(
    ("codec", "query", "kind"),
    [
        ("cp1252", "", 'text/csv; header=present; Charset="windows-1252"'),
        ("cp1252", "?encoding=cp1252", "text/csv; charset=utf-8"),
        ("utf-16", "", "text/csv; charset=utf-8"),
        ("utf-16-le", "", "text/csv;charset=UTF-16LE"),
    ],
)
def test_a_declared_charset_is_read(
    files: Files, db: Database, codec: str, query: str, kind: str
) -> None:
    assert files.load(ZOE.decode().encode(codec), query, kind)["counts"] == {"created": 1}
    with db.read() as tx:
        assert tx.exec_driver_sql("SELECT first_name FROM members").scalar() == "Zoë"


def test_the_header_row_and_the_sheet_of_an_upload_go_before_the_mappings(files: Files) -> None:
    content = b"external_id,a title that looks like a header\n" + ZOE
    assert files.load(content, '?header_row=2&mapping={"header_row":1}')["counts"] == {"created": 1}
    for query in ("header_row=0", "header_row=51", "header_row=x", "sheet=", "sheet=" + "x" * 32):
        assert files.upload(content, f"?{query}").status_code == 422


def test_each_reading_of_a_report_is_recorded(
    files: Files, api: Api, db: Database, trail: Trail
) -> None:
    path = f"{files.path}/{files.load(csv_of([row(1)]))['id']}/report"
    read = [api.get(path + query) for query in ("", "?format=csv", "?page[size]=1")]
    assert api.as_(make_customer(db, name="Other").token).get(path).status_code == 404
    entries = trail("file.report_read")
    customer = files.customer
    assert [entry["request_id"] for entry in entries] == [
        answer.headers["X-Request-Id"] for answer in read
    ]
    named = [entries[0][name] for name in ("actor", "account_id", "subject_id")]
    assert named == [customer.client_id, customer.account_id, 1]
    assert [len(entry["detail"]["network"]) for entry in entries] == [16] * 3
    assert "testclient" not in str(entries)


def test_uploads_decisions_and_changes_have_the_callers_network(
    files: Files, api: Api, trail: Trail
) -> None:
    files.act(files.load(csv_of([row(1)]))["id"], "undo")
    api.request("PUT", "/v2/eligibility-mappings/hr", json={"columns": {"Name": "last_name"}})
    body = {"name": "Renamed", "description": None, "external_id": "plan-0"}
    api.patch(f"/v2/plans/{files.customer.plan_ids[0]}", body)
    assert [entry["detail"]["fields"] for entry in trail("plan.changed")] == [
        ["description", "name"]
    ]
    for action in ("file.received", "file.undo_asked", "mapping.saved", "plan.changed"):
        [entry] = trail(action)
        assert len(entry["detail"]["network"]) == 16, action
    [done] = trail("file.done")  # by a worker: it has none
    assert "network" not in done["detail"]


def test_an_upload_is_recorded_with_the_time_of_its_end(
    files: Files, trail: Trail, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin_and_wait(*arguments: Any, **options: Any) -> EligibilityFile:
        file = begin_file(*arguments, **options)
        clock.advance(600)
        return file

    monkeypatch.setattr("frontdesk.files.actions.begin_file", begin_and_wait)
    files.upload(csv_of([row(1)]))
    [entry] = trail("file.received")
    assert entry["at"] == clock()
