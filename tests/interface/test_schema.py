"""The schemas of the interface are generated from types, and follow from nothing else."""

import ast
import doctest
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NotRequired, TypedDict, Union

import pytest

from frontdesk import interface
from frontdesk.interface import schema as generator
from frontdesk.interface.bodies import schemas
from frontdesk.interface.parameters import HEADERS, PARAMETERS
from frontdesk.interface.schema import (
    Derived,
    Keywords,
    Named,
    Schema,
    closed,
    object_schema,
    ref,
    schema_of,
    schemas_in,
)

SNAPSHOT = Path(__file__).parents[1] / "api/snapshots/openapi.json"
KEYWORDS = {
    *("$ref", "type", "description", "examples", "format", "pattern", "enum", "const", "anyOf"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("items", "properties", "required", "additionalProperties", "propertyNames"),
    *("maxProperties",),
}


class Child(TypedDict):
    """A child."""

    age: int


@closed(maxProperties=2)
class Parent(TypedDict):
    """A
    parent.
    """

    child: Child | None
    next: NotRequired[Annotated["Parent", "The next one."]]


def parts(schema: Schema) -> Iterator[Schema]:
    """The schema, and every schema in it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for keyword in ("items", "additionalProperties", "propertyNames"):
        inner += [schema[keyword]] if isinstance(schema.get(keyword), dict) else []
    for each in inner:
        yield from parts(each)


def every_part() -> list[Schema]:
    of_values = [each.schema for each in PARAMETERS.values()]
    of_values += [each.schema for each in HEADERS.values()]
    return [part for schema in (*schemas().values(), *of_values) for part in parts(schema)]


def test_the_examples_of_the_generator_are_right() -> None:
    assert doctest.testmod(generator) == (0, 1)


def test_an_object_refers_to_others_by_name() -> None:
    assert object_schema(Parent) == {
        "type": "object",
        "additionalProperties": False,
        "maxProperties": 2,
        "description": "A parent.",
        "properties": {
            "child": {"anyOf": [ref("Child"), {"type": "null"}]},
            "next": ref("Parent") | {"description": "The next one."},
        },
        "required": ["child"],
    }


def test_notes_before_a_name_belong_to_the_schema_and_notes_behind_it_to_its_use() -> None:
    kind = Annotated[list[Child], Keywords(minItems=1), Named("Children", "Children.")]
    module = ModuleType("bodies")
    vars(module).update(Children=kind)
    children = {"type": "array", "items": ref("Child"), "minItems": 1, "description": "Children."}
    assert schemas_in(module) == {"Children": children}
    assert schema_of(Annotated[kind, "Hers."]) == ref("Children") | {"description": "Hers."}


@pytest.mark.parametrize("kind", [bytes, tuple[int, ...], set[str], object(), list])
def test_a_type_without_a_schema_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="has no JSON Schema"):
        schema_of(Union[kind, None] if isinstance(kind, type) else kind)  # noqa: UP007


def test_a_name_that_stands_for_two_schemas_is_refused() -> None:
    module = ModuleType("bodies")
    vars(module).update(
        one=Annotated[dict[str, Any], Derived("Member", {"type": "object"})],
        two=Annotated[dict[str, Any], Derived("Member", {"type": "string"})],
    )
    with pytest.raises(ValueError, match="Member stands for two schemas"):
        schemas_in(module)


def test_every_reference_has_its_schema() -> None:
    referred = {part["$ref"].rpartition("/")[2] for part in every_part() if "$ref" in part}
    assert len(referred) > 30
    assert referred <= schemas().keys()


def test_keywords_are_those_of_json_schema() -> None:
    """A misspelt keyword would mean nothing, and no type check sees it."""
    assert {keyword for part in every_part() for keyword in part} == KEYWORDS


PROGRAM = """
import importlib, json, pkgutil, sys
import frontdesk
names = sys.argv[1:]
rooms = ("access", "eligibility", "events", "files", "formats", "invitations", "mapping", "plans", "web")
for room in rooms:
    package = importlib.import_module(f"frontdesk.{room}")
    for found in pkgutil.iter_modules(package.__path__, f"frontdesk.{room}."):
        module = importlib.import_module(found.name)
        for name in names:
            if name not in vars(module):
                setattr(module, name, 7)
from frontdesk.interface.bodies import schemas
print(json.dumps(schemas()))
"""


def test_a_name_in_another_module_changes_no_schema() -> None:
    names = set()
    for path in Path(interface.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names |= {each.name for each in node.names if each.name.isupper()}
    assert {"MOST_RECORDS", "DESCRIPTION_LENGTH", "COLUMN_NAME"} <= names
    command = [sys.executable, "-c", PROGRAM, *sorted(names)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    documented = json.loads(SNAPSHOT.read_text())["components"]["schemas"]
    assert json.loads(ran.stdout) == documented
