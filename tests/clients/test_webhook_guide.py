"""The code of docs/guides/webhooks.md takes what the service signs, and refuses everything else."""

import json
import re
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from frontdesk.events.signature import secret_text, signed_headers
from tests.clients.node import run

GUIDE = (Path(__file__).parents[2] / "docs/guides/webhooks.md").read_text()
OLD = bytes(range(32))
NEW = bytes(range(32, 64))
BODY = '{"type": "member.updated", "data": {"name": "é"}}'
CALL_NODE = """
import { verify } from "./verify.mjs";
import { readFileSync } from "node:fs";
const [body, headers, secret] = JSON.parse(readFileSync("call.json", "utf8"));
let answer;
try { answer = verify(Buffer.from(body, "base64"), headers, secret); } catch { answer = null; }
console.log(JSON.stringify(answer));
"""


def code(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    return str(found)


def python(folder: Path, body: bytes, headers: dict[str, str], secret: str) -> Any:
    program: dict[str, Any] = {}
    exec(code("python"), program)  # noqa: S102 - the guide's own code
    try:
        return program["verify"](body, headers, secret)
    except (ValueError, KeyError):
        return None


def javascript(folder: Path, body: bytes, headers: dict[str, str], secret: str) -> Any:
    (folder / "verify.mjs").write_text(code("js"))
    (folder / "call.mjs").write_text(CALL_NODE)
    (folder / "call.json").write_text(json.dumps([b64encode(body).decode(), headers, secret]))
    return json.loads(run("node", "call.mjs", folder=folder))


Verify = Callable[[Path, bytes, dict[str, str], str], Any]


@pytest.mark.parametrize("verify", [python, javascript])
def test_the_code_of_the_guide_takes_signed_webhooks_only(verify: Verify, tmp_path: Path) -> None:
    body = BODY.encode()
    now = int(time.time())

    def signed(*secrets: bytes, at: int = now) -> dict[str, str]:
        return signed_headers(secrets, event_id="evt_871_42", timestamp=at, body=body)

    both = signed(NEW, OLD)
    secret = secret_text(OLD)
    assert verify(tmp_path, body, signed(OLD), secret) == json.loads(body)
    assert verify(tmp_path, body, both, secret) == json.loads(body)
    assert verify(tmp_path, body, signed(OLD, at=now - 200), secret) == json.loads(body)
    without = {name: value for name, value in both.items() if name != "webhook-timestamp"}
    for wrong, headers in (
        (body, signed(NEW)),
        (body, signed(OLD, at=now - 400)),
        (body, signed(OLD, at=now + 400)),
        (body.replace(b"member", b"number"), both),
        (body, both | {"webhook-id": "evt_871_43"}),
        (body, both | {"webhook-timestamp": str(now - 1)}),
        (body, both | {"webhook-timestamp": "now"}),
        (body, both | {"webhook-signature": ""}),
        (body, without),
    ):
        assert verify(tmp_path, wrong, headers, secret) is None, headers
