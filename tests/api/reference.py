"""The OpenAPI document of the tests, its parts, and the snapshot that is committed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs

from tests.interface.made import document

DOCUMENT = document()
SNAPSHOT = Path(__file__).parent / "snapshots/openapi.json"


def schema_validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """A validator for a schema of the document, which may refer to the document's components."""
    return jsonschema_rs.Draft202012Validator(
        schema | {"components": DOCUMENT["components"]}, validate_formats=True
    )


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Path, method and description of every operation."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation
