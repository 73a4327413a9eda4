"""A noun's `model.py` holds its types and imports no store, no table, no database and no HTTP or command line."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src/frontdesk"
MODELS = sorted(SOURCE.rglob("model.py"))
REFUSED = ("db", "web", "api", "operator", "cli", "worker", "app", "asgi")


@pytest.mark.parametrize("path", MODELS, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_model_imports_only_models_and_plain_helpers(path: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("frontdesk.")
    }
    parts = {module: module.split(".")[1:] for module in imported}
    refused = {module for module, names in parts.items() if names[0] in REFUSED}
    refused |= {module for module, names in parts.items() if {"store", "tables"} & set(names)}
    assert refused == set()


def test_the_nouns_have_models() -> None:
    assert {path.parent.name for path in MODELS} >= {
        "access",
        "eligibility",
        "files",
        "invitations",
        "plans",
        "queues",
    }
