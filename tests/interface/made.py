"""Writes what is made from the declarations of the interface: `make interface`.

The snapshot of the OpenAPI document, the marked tables of docs, and the types of both clients. A
marked table stands between `[//]: # (table NAME)` and `[//]: # (end NAME)`, which no page shows.

python -m tests.interface.made [ROOT]
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from inspect import cleandoc
from pathlib import Path
from typing import Any

from frontdesk import codes
from frontdesk.api.routes import ENDPOINTS, GROUPS, REMEDIES
from frontdesk.codes import Where
from frontdesk.interface.document import openapi_document
from frontdesk.web.problems import shown_sentence

ROOT = Path(__file__).parents[2]
BASE_URL = "https://api.example.com"
SNAPSHOT = Path("tests/api/snapshots/openapi.json")
MARKED = re.compile(r"(\[//\]: # \(table (\w+)\)\n\n).*?(\n\[//\]: # \(end \2\))", re.DOTALL)


def write(root: Path) -> None:
    """Write everything below this root, which has the sources of clients and pages."""
    (root / SNAPSHOT).write_text(document_text(document()), encoding="utf-8")
    for page in (root / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        renewed = MARKED.sub(lambda mark: mark[1] + TABLES[mark[2]]() + mark[3], text)
        if renewed != text:
            page.write_text(renewed, encoding="utf-8")
    python = root / "clients/python"
    models = python / "src/frontdesk_client/models.py"
    command: list[str | Path] = [sys.executable, python / "generate.py", root / SNAPSHOT, models]
    subprocess.run(command, check=True, cwd=python)
    node = root / ".venv/clients/bin/python"
    subprocess.run([node, root / "clients/typescript/generate.py"], check=True, cwd=root)


@cache
def document() -> dict[str, Any]:
    return openapi_document(BASE_URL, GROUPS, ENDPOINTS, REMEDIES)


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """A part of the document, or the component that it refers to."""
    if "$ref" in part:
        _, _, kind, name = part["$ref"].split("/")
        return dict(document()["components"][kind][name])
    return part


def document_text(made: dict[str, Any]) -> str:
    """The document as the snapshot has it: a reference takes one line."""
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    return re.sub(r'\{\s+("\$ref": "[^"]+")\s+\}', r"{\1}", text)


def operations_table() -> str:
    """Every operation of customers, with the scope that its token needs."""
    lines = ["| request | scope | what it does |", "|---|---|---|"]
    for operation in ENDPOINTS:
        summary = cleandoc(operation.handler.__doc__ or "").partition("\n")[0].removesuffix(".")
        scope = "any" if operation.any_scope else "no token"
        if operation.scope is not None:
            scope = f"`{operation.scope}`"
        lines.append(f"| `{operation.method} {operation.path}` | {scope} | {summary} |")
    return "\n".join([*lines, ""])


def codes_table(where: Where) -> str:
    """The codes of a place with their sentences, without those that are kinds of problems."""
    rows = [
        f"| `{code}` | {shown_sentence(code)} |" for code in codes.of(where) if not code.is_kind
    ]
    return "\n".join(["| `code` | meaning |", "|---|---|", *rows, ""])


TABLES: dict[str, Callable[[], str]] = {
    "operations": operations_table,
    "faults": partial(codes_table, Where.FAULT),
    "warnings": partial(codes_table, Where.WARNING),
}

if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT)
