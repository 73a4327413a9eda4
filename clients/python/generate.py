"""Write the models of the client from an OpenAPI document. Needs ruff, which formats them.

python clients/python/generate.py tests/api/snapshots/openapi.json
"""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HEAD = '''\
"""The bodies of requests and answers, as JSON has them. Written by clients/python/generate.py; do not edit.

An answer may have more keys than its type: the interface changes by addition only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired

'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def type_of(schema: dict[str, Any]) -> str:
    """The annotation of a schema."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "const" in schema or "enum" in schema:
        values = schema.get("enum", [schema.get("const")])
        literal = (
            f"Literal[{', '.join(json.dumps(value) for value in values if value is not None)}]"
        )
        return f"{literal} | None" if None in values else literal
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return joined(map(type_of, schema[union]))
    types = schema.get("type", [])
    found = (type_of_one(name, schema) for name in ([types] if isinstance(types, str) else types))
    return joined(found) or "Any"


def joined(types: Iterable[str]) -> str:
    """The union of types, without the texts that `str` has too."""
    found = list(dict.fromkeys(types))
    return " | ".join(
        type_ for type_ in found if "str" not in found or not type_.startswith('Literal["')
    )


def type_of_one(name: str, schema: dict[str, Any]) -> str:
    """The annotation of a schema for one of its JSON types."""
    if name == "array":
        return f"list[{type_of(schema.get('items', {}))}]"
    if name == "object":
        values: Any = schema.get("additionalProperties") or next(
            iter(schema.get("properties", {}).values()), {}
        )
        return f"dict[str, {type_of(values) if isinstance(values, dict) else 'Any'}]"
    return SCALARS[name]


def documentation(schema: dict[str, Any], indent: str) -> list[str]:
    """The description as a docstring, without the list of codes that may follow it."""
    text = " ".join(schema.get("description", "").partition("\n- ")[0].removeprefix("- ").split())
    if not text:
        return []
    quoted = text.replace("\\", "\\\\").rstrip('"')
    wrapped = textwrap.wrap(f'"""{quoted}"""', 106, break_long_words=False)
    return [indent + line for line in wrapped]


def model(name: str, schema: dict[str, Any]) -> str:
    """A class for an object with known keys, an alias for any other schema."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = schema.get("required", [])
    types = {
        key: type_of(value) if key in required else f"NotRequired[{type_of(value)}]"
        for key, value in properties.items()
    }
    if not properties:
        return f"{name}: TypeAlias = {json.dumps(type_of(schema))}"
    if not all(key.isidentifier() for key in properties):
        entries = ", ".join(
            f"{json.dumps(key)}: {json.dumps(type_)}" for key, type_ in types.items()
        )
        return f"{name} = TypedDict({json.dumps(name)}, {{{entries}}})"
    lines = [f"class {name}(TypedDict):", *documentation(schema, "    ")]
    for key, value in properties.items():
        lines += [f"    {key}: {types[key]}", *documentation(value, "    ")]
    return "\n".join(lines)


def models(document: dict[str, Any]) -> str:
    """The text of the module."""
    schemas: dict[str, Any] = document["components"]["schemas"]
    text = HEAD + "\n\n".join(model(name, schema) for name, schema in schemas.items()) + "\n"
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "models.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout


if __name__ == "__main__":
    document, written = map(Path, sys.argv[1:])
    written.write_text(models(json.loads(document.read_text())))
