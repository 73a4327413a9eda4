"""Clients that four generators make from the OpenAPI document get a token, create, change and
upload without a line of repair. The programs are written as a customer would. TypeScript is
compiled, strictly, so the types are tested too.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from frontdesk.api.routes import ENDPOINTS, GROUPS, REMEDIES
from frontdesk.clock import system_clock
from frontdesk.db import open_database
from frontdesk.interface.document import openapi_document
from tests.clients.node import MODULES, TOOLS, run
from tests.factories import Customer, make_customer
from tests.faults.server import Server

PROGRAMS = Path(__file__).parent
CSV = """\
external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date
E-3,M-3,Noor,Sample,1977-01-11,female,02134,2026-01-01
"""
STRICT = (
    "--strict",
    "--skipLibCheck",
    "--types",
    "node",
    "--target",
    "es2022",
    "--module",
    "node16",
)


@pytest.fixture
def served(sqlite_url: str, tmp_path: Path) -> Iterator[tuple[str, Customer]]:
    """The address of a served instance, and a customer of it. No generator depends on the database."""
    db = open_database(sqlite_url)
    customer = make_customer(db, now=system_clock())
    db.close()
    with Server(sqlite_url, tmp_path / "log") as server:
        yield f"http://127.0.0.1:{server.port}", customer


def hey_api(folder: Path) -> None:
    run(
        "openapi-ts",
        "-i",
        "openapi.json",
        "-o",
        "client",
        "-c",
        "@hey-api/client-fetch",
        folder=folder,
    )


def orval(folder: Path) -> None:
    output = {
        "target": "client.ts",
        "client": "fetch",
        "baseUrl": {"getBaseUrlFromSpecification": True},
    }
    config = {"api": {"input": "openapi.json", "output": output}}
    (folder / "orval.config.mjs").write_text(f"export default {json.dumps(config)}")
    run("orval", "--config", "orval.config.mjs", folder=folder)


def openapi_fetch(folder: Path) -> None:
    run("openapi-typescript", "openapi.json", "-o", "client.d.ts", folder=folder)


def openapi_python_client(folder: Path) -> None:
    options = ("--path", "openapi.json", "--meta", "none", "--output-path", "client")
    run("openapi-python-client", "generate", *options, folder=folder)


@pytest.mark.parametrize("generate", [hey_api, orval, openapi_fetch, openapi_python_client])
def test_a_generated_client_needs_no_repair(generate: Any, served: Any, tmp_path: Path) -> None:
    assert (TOOLS / "ready").exists(), (
        "npm's registry did not answer when this was set up; run: make setup"
    )
    address, customer = served
    (tmp_path / "openapi.json").write_text(
        json.dumps(openapi_document(address, GROUPS, ENDPOINTS, REMEDIES))
    )
    (tmp_path / "members.csv").write_text(CSV)
    generate(tmp_path)
    name = generate.__name__
    if generate is openapi_python_client:
        shutil.copy(PROGRAMS / "python_client.py", tmp_path)
        program = (TOOLS / "bin/python", "python_client.py")
    else:
        (tmp_path / "node_modules").symlink_to(MODULES)
        (tmp_path / "package.json").write_text('{"type": "commonjs"}')
        shutil.copy(PROGRAMS / f"{name}.ts", tmp_path)
        run("tsc", *STRICT, f"{name}.ts", folder=tmp_path)
        program = (Path("node"), f"{name}.js")
    arguments = (address, customer.client_id, customer.client_secret, "members.csv")
    did = json.loads(run(*program, *arguments, folder=tmp_path))
    assert (did["created"], did["changed"], did["refused"], did["uploaded"]) == (
        201,
        "Sample-Lee",
        422,
        202,
    )
    assert did["file"]["data"]["dry_run"] is True
    assert did["file"]["data"]["size_bytes"] == len(CSV)


def test_orval_makes_schemas_for_zod_that_compile_and_hold(tmp_path: Path) -> None:
    assert (TOOLS / "ready").exists(), (
        "npm's registry did not answer when this was set up; run: make setup"
    )
    document = openapi_document("https://api.example.com", GROUPS, ENDPOINTS, REMEDIES)
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    schemas = {"path": "model", "type": "zod"}
    config = {
        "requests": {"input": "openapi.json", "output": {"target": "client.ts", "client": "zod"}},
        "models": {
            "input": "openapi.json",
            "output": {"target": "fetch.ts", "client": "fetch", "schemas": schemas},
        },
    }
    (tmp_path / "orval.config.mjs").write_text(f"export default {json.dumps(config)}")
    (tmp_path / "package.json").write_text('{"type": "commonjs"}')
    (tmp_path / "node_modules").symlink_to(MODULES)
    run("orval", "--config", "orval.config.mjs", folder=tmp_path)
    shutil.copy(PROGRAMS / "orval_zod.ts", tmp_path)
    run("tsc", *STRICT, "orval_zod.ts", folder=tmp_path)
    said = json.loads(run("node", "orval_zod.js", folder=tmp_path))
    assert {name for name, is_valid in said.items() if not is_valid} == {"wrong", "url", "plan"}
