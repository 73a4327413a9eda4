"""The site at /docs, its search, /llms.txt, the collection and /problems: nothing leads nowhere,
nothing comes from outside.
"""

import hashlib
import importlib
import json
import re
import zipfile
from collections.abc import Iterator
from html import unescape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from markupsafe import escape

from frontdesk import codes
from frontdesk.api import reference, site
from frontdesk.api.codes import example_of, sections
from frontdesk.api.collection import postman_collection
from frontdesk.api.routes import ENDPOINTS
from frontdesk.api.site import SECTIONS
from frontdesk.api.site_files import ASSETS
from frontdesk.clock import system_clock
from frontdesk.codes import Code, Kind, Where
from frontdesk.db import Database
from tests.api.reference import DOCUMENT
from tests.conftest import Api
from tests.factories import EVERY_SCOPE, make_customer
from tests.interface.made import BASE_URL

ON_ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

SLUGS = [slug for section in SECTIONS.values() for slug in section]
PAGES = ["/docs", "/problems", "/docs/reference", *(f"/docs/{slug}" for slug in SLUGS)]
PROJECT = Path(__file__).parents[2] / "pyproject.toml"
DOCS = Path(__file__).parents[2] / "docs"
NEW_MEMBER = {
    "external_id": "E-1001",
    "member_id": "M-1001",
    "first_name": "Robin",
    "last_name": "Sample",
    "dob": "1977-01-11",
    "gender": "female",
    "zipcode": "02134",
    "effective_date": "2026-01-01",
    "expiry_date": None,
}


@ON_ONE_DATABASE
def test_every_link_of_every_page_leads_somewhere(api: Api) -> None:
    reader = api.as_(None)
    texts = {path: reader.get(path) for path in PAGES}
    anchors = {path: set(re.findall(r' id="([^"]+)"', page.text)) for path, page in texts.items()}
    for path, page in texts.items():
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = page.headers["Content-Security-Policy"]
        assert re.findall(r"https?:[^ ;]+", policy) == [BASE_URL]
        assert {"default-src 'none'", "script-src 'self'"} <= set(policy.split("; "))
        assert not re.search(r"<(?:script|style)>|<[^>]*\son\w+=", page.text)
        assert re.findall(r'<script src="(?!/docs/)|<link[^>]* href="(?!/docs/)', page.text) == []
        for target in map(unescape, re.findall(r'(?:href|src)="([^"]+)"', page.text)):
            place, _, anchor = target.removeprefix(BASE_URL).partition("#")
            if place.startswith("https://") and f'<a href="{target}"' in page.text:
                continue  # a link that the reader may follow; nothing is loaded
            assert place.startswith("/") or not place, (path, target)
            if (place or path) in anchors:
                assert not anchor or anchor in anchors[place or path], (path, target)
            else:
                assert reader.get(place).status_code == 200, (path, target)


@ON_ONE_DATABASE
def test_no_page_is_empty_or_shows_what_is_not_published(api: Api) -> None:
    for slug in SLUGS:
        page = api.get(f"/docs/{slug}").text
        source = api.get(f"/docs/{slug}.md").text
        [title] = re.findall(r"^# (.+)$", source.partition("\n## ")[0], re.MULTILINE)
        assert "<h1" in page
        assert unescape(page).count(title.replace("`", "")) >= 2
        assert len(source) > 500
        assert "Why: decision" not in source
        assert re.findall(r"\]\((?!https?:|/docs/|#)", source) == []
        assert 'href="/docs/security' not in page


def test_html_in_a_page_is_text() -> None:
    shown = site._reader().render(
        "<b>x</b> <script>y</script>\n\n<div>z</div>\n\n```\nBearer <token>\n```\n"
    )
    assert re.findall("<(?:b|script|div|token)>", shown) == []


@ON_ONE_DATABASE
def test_html_in_an_example_is_text(api: Api) -> None:
    page = api.get("/docs/interface").text
    assert "Bearer &lt;token&gt;" in page
    assert "<token>" not in page


@ON_ONE_DATABASE
def test_other_files_of_the_package_are_not_served(api: Api) -> None:
    for name in (
        "page.html",
        "site.html",
        "examples.json",
        "LICENSE",
        "..%2fcodes.py",
        "%2e%2e",
        "security",
        "security.md",
    ):
        assert api.get(f"/docs/{name}").status_code == 404
    for path in ASSETS:
        assert api.get(f"/docs/{path}").status_code == 200


@ON_ONE_DATABASE
def test_each_picture_of_the_documentation_is_served_light_and_dark(api: Api) -> None:
    shown = set()
    for source in [*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")]:
        for alt, path in re.findall(r"!\[([^]]*)\]\(([^)]+)\)", source.read_text()):
            assert len(alt) > 40, f"{source.name}: {path} says too little to those who can't see it"
            assert (source.parent / path).is_file(), f"{source.name}: {path}"
            shown.add(Path(path).name)
            page = api.get(f"/docs/{source.stem}").text
            assert f'<img src="/docs/{Path(path).name}" alt="{escape(alt)}" width="1280"' in page
            assert f'srcset="/docs/{Path(path).stem}-dark.png"' in page
            assert f"![{alt}](/docs/{Path(path).name})" in api.get(f"/docs/{source.stem}.md").text
    stored = {path.name for path in DOCS.glob("pictures/*")}
    assert stored == shown | {name.replace(".png", "-dark.png") for name in shown}
    for name in stored:
        answer = api.get(f"/docs/{name}")
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
        assert answer.content == (DOCS / "pictures" / name).read_bytes()
    assert sum(path.stat().st_size for path in DOCS.glob("pictures/*")) < 300_000
    assert api.get("/docs/console-odd.png").status_code == 404


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the clients' packages of an installation, empty at first."""
    folder = tmp_path / "clients"
    folder.mkdir()
    monkeypatch.setattr("frontdesk.api.site_files.PACKAGES", folder)
    reference._made_file.cache_clear()
    yield folder
    reference._made_file.cache_clear()


@ON_ONE_DATABASE
def test_the_packages_of_the_clients_are_served_where_the_page_says(
    api: Api, packages: Path
) -> None:
    assert "for pip and npm:" not in api.get("/llms.txt").text
    reference._made_file.cache_clear()
    page = api.get("/docs/clients.md").text
    addresses = re.findall(r"(?:pip|npm) install (https:\S+)`", page)
    assert [Path(each).suffix for each in addresses] == [".whl", ".tgz"]
    for address in addresses:
        place = address.removeprefix(BASE_URL)
        assert api.get(place).status_code == 404
        (packages / Path(place).name).write_bytes(b"PK" + place.encode())
        assert api.get(place).content == b"PK" + place.encode()
        readme = "python" if place.endswith(".whl") else "typescript"
        assert address in api.get(f"/docs/{readme}-client.md").text
    (packages / "made").touch()
    assert api.get("/docs/made").status_code == 404
    assert f"for pip and npm: {' and '.join(addresses)}." in api.get("/llms.txt").text


@ON_ONE_DATABASE
def test_a_file_is_compressed_for_a_caller_that_takes_it(api: Api) -> None:
    plain, packed = (
        api.http.get("/docs/site.css", headers={"Accept-Encoding": coding})
        for coding in ("identity", "gzip")
    )
    assert (plain.headers.get("Content-Encoding"), packed.headers["Content-Encoding"]) == (
        None,
        "gzip",
    )
    assert plain.headers["Vary"] == packed.headers["Vary"] == "accept-encoding"
    assert plain.text == packed.text
    assert int(packed.headers["Content-Length"]) < int(plain.headers["Content-Length"])


@ON_ONE_DATABASE
def test_the_search_knows_every_page_operation_and_code(api: Api) -> None:
    entries = api.get("/docs/search.json").json()
    paths = {entry[0] for entry in entries}
    assert len(paths) == len(entries)
    operations = [each for methods in DOCUMENT["paths"].values() for each in methods.values()]
    wanted = {
        f"/docs/reference#tag/{each['tags'][0].lower()}/{each['operationId']}"
        for each in operations
    }
    wanted |= {
        f"/problems#{section.prefix}{entry.word}"
        for section in sections(BASE_URL)
        for entry in section.entries
    }
    wanted |= {f"/docs/{slug}" for slug in SLUGS[1:]} | {"/docs", "/docs/interface#errors"}
    assert wanted - paths == set()
    [errors] = [entry for entry in entries if entry[0] == "/docs/interface#errors"]
    assert (errors[1], errors[2]) == ("The HTTP interface", "Errors")
    assert "rfc" in errors[4].split() or "RFC" in errors[3]
    assert len(json.dumps(entries)) < 300_000


@ON_ONE_DATABASE
def test_llms_txt_lists_every_page_with_its_markdown(api: Api) -> None:
    text = api.as_(None).get("/llms.txt")
    assert text.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert re.match(r"# [^\n]+\n\n> [^\n]+\n\n", text.text)
    listed = re.findall(r"^- \[[^]]+\]\((\S+)\): \S", text.text, re.MULTILINE)
    assert [path.removeprefix(BASE_URL) for path in listed] == [
        f"/docs/{slug}.md" for slug in SLUGS
    ]
    for path in listed:
        page = api.get(path.removeprefix(BASE_URL))
        assert (page.status_code, page.headers["Content-Type"]) == (
            200,
            "text/markdown; charset=utf-8",
        )


# Requests of the collection that the first customer is refused: nothing is held, and metrics are
# for operators.
NOT_POSSIBLE = {
    "Approve a held file": 409,
    "Give a held 834 the mapping that it needs": 409,
    "Read the metrics for Prometheus": 403,
}


@ON_ONE_DATABASE
def test_the_collection_has_every_operation_and_its_requests_are_answered(
    api: Api, db: Database
) -> None:
    make_customer(db)
    customer = make_customer(db, name="Postman", scopes=EVERY_SCOPE, now=system_clock())
    collection = api.get("/docs/collection.json").json()
    assert collection == postman_collection(DOCUMENT)
    requests = {
        item["name"]: item["request"] for folder in collection["item"] for item in folder["item"]
    }
    sent = {
        f"{request['method']} /{'/'.join(request['url']['path'])}" for request in requests.values()
    }
    paths = {(each.method, re.sub(r"{(\w+)}", r":\1", each.path)) for each in ENDPOINTS}
    assert sent == {f"{method} {path}" for method, path in paths}
    values = {variable["key"]: variable["value"] for variable in collection["variable"]}
    values |= {
        "base_url": "",
        "client_id": customer.client_id,
        "client_secret": customer.client_secret,
    }
    refused = {}
    for folder in collection["item"]:
        for item in folder["item"]:
            answer = send(api, item["request"], values)
            if answer.status_code >= 400:
                refused[item["name"]] = answer.status_code
            for event in item.get("event", []):
                keep(event["script"]["exec"][0], answer.json(), values)
    assert refused == NOT_POSSIBLE
    assert values["external_id"] == "N-77"


def keep(script: str, answer: Any, values: dict[str, str]) -> None:
    """Set a variable of the collection, as the script of a request says."""
    said = re.search(r"""set[(]"(\w+)", pm.response.json[(][)][.]([\w.[\]]+)[)]""", script)
    assert said is not None
    found = answer
    for part in re.findall(r"\w+", said[2]):
        found = found[int(part) if part.isdecimal() else part]
    values[said[1]] = str(found)


def send(api: Api, request: dict[str, Any], values: dict[str, str]) -> Any:
    """Send a request of the collection as Postman does."""
    text = json.dumps(request)
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    filled = json.loads(text)
    path = filled["url"]["raw"]
    for variable in filled["url"]["variable"]:
        path = path.replace(f":{variable['key']}", variable["value"])
    chosen = {each["key"]: each["value"] for each in filled["url"]["query"] if not each["disabled"]}
    path += f"?{urlencode(chosen)}" if chosen else ""
    headers = {header["key"]: header["value"] for header in filled["header"]}
    token = None if filled.get("auth", {}).get("type") == "noauth" else values["token"]
    body = filled.get("body", {})
    content = (
        {"data": {each["key"]: each["value"] for each in body.get("urlencoded", [])}}
        if "urlencoded" in body
        else {}
    )
    content |= {"content": body["raw"].encode()} if "raw" in body else {}
    return api.as_(token).request(filled["method"], path, headers=headers, **content)


@ON_ONE_DATABASE
def test_the_problems_page_has_an_example_of_every_code(api: Api) -> None:
    page = api.get("/problems").text
    for kind in Kind:
        assert f'<dt id="{kind}">' in page
    shown = codes.of(Where.FAULT, Where.WARNING, Where.ROW, Where.FILE)
    assert [
        code for code in shown if not code.is_kind and escape(example_of(code)) not in page
    ] == []


SENT_CODES = [
    code
    for code in codes.of(Where.FAULT)
    if code.kind is Kind.INVALID or code in codes.faults.INTENT
]
EXAMPLES = [code for code in codes.of(Where.FAULT, Where.WARNING) if code.example]
UNSHOWN_BODIES = {  # too long for the page
    "too_many_records": json.dumps([{}] * 1001),
    "too_many_blank_lines": "{}" + "\n" * 1002,
}


@ON_ONE_DATABASE
def test_the_examples_of_faults_are_what_the_service_answers(api: Api) -> None:
    """In the order of the page. `not_enrolled` is a row's, so it has no request."""
    assert set(SENT_CODES) - set(EXAMPLES) == {codes.faults.NOT_ENROLLED}
    upload = {"Content-Type": "text/csv", "Idempotency-Key": "members-2026-11-20"}
    api.post("/v2/plans/1/eligibility-files", content="external_id\nE-1001\n", headers=upload)
    for code in EXAMPLES:
        answer = _answer(api, code)
        assert code.example is not None
        if code.where is Where.FAULT:
            fault = {"field": code.example.field, "code": code, "message": code.example.rule}
            assert fault in answer.json()["errors"], (code, answer.text)
        else:
            assert code in answer.headers["Eligibility-Warnings"]


def _answer(api: Api, code: Code) -> httpx.Response:
    """The answer to the example of the code, after the member that most examples change is sent."""
    assert code.example is not None
    assert api.post("/v2/plans/1/eligibility", NEW_MEMBER).status_code in (200, 201)
    method, path = code.example.request.split(" ")
    body = code.example.body or UNSHOWN_BODIES.get(code, "")
    options: Any = {"content": body} if isinstance(body, str) else {"json": body}
    answer: httpx.Response = api.request(method, path, headers=code.example.headers, **options)
    return answer


def test_the_reference_is_scalar_as_it_was_published_with_its_licence() -> None:
    folder = files("frontdesk.api").joinpath("assets/scalar")
    digest = hashlib.sha256(folder.joinpath("standalone.js").read_bytes()).hexdigest()
    assert digest in folder.joinpath("NOTICE").read_text()
    assert "Permission is hereby granted" in folder.joinpath("LICENSE").read_text()


def test_an_installed_package_has_the_pages(tmp_path: Path) -> None:
    built = importlib.import_module("flit_core.wheel").make_wheel_in(PROJECT, tmp_path)
    with zipfile.ZipFile(built.file) as archive:
        for slug in SLUGS:
            assert archive.read(f"frontdesk/api/assets/docs/{slug}.md").startswith(b"# ")
