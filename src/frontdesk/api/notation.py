"""The notation of the interface's tables: a line for each field, `name?: type {keywords} — text`.

A `?` behind the name: the field may be missing; behind the type: it may be null. `[]` is an array, `"a"|"b"` are the words
to choose from. Other types are those of the table's `types`, or schemas by name. Keywords are JSON Schema. A line that is
indented by 8 spaces continues the line above.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from frontdesk.files.model import FileState
from frontdesk.formats.model import SEARCHED_ROWS, Format
from frontdesk.mapping.parser import LONGEST_SHEET_NAME

Schema = dict[str, Any]

# The types that several tables use.
COMMON_TYPES: dict[str, Schema] = {
    **{name: {"type": name} for name in ("string", "integer", "number", "boolean", "object")},
    "count": {"type": "integer", "minimum": 0},
    "time": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "format": {"type": "string", "enum": [*map(str, Format)]},
    "file_state": {"type": "string", "enum": [*map(str, FileState)]},
    "header_row": {"type": "integer", "minimum": 1, "maximum": SEARCHED_ROWS},
    "sheet": {"type": "string", "minLength": 1, "maxLength": LONGEST_SHEET_NAME},
}
_LINE = re.compile(r"(\S+?)(\??): (\S+)(?: (\{.*?\}))?(?: — (.*))?")


class NotedField(NamedTuple):
    """A line of a table. `schema` is without the text."""

    name: str
    is_optional: bool
    schema: Schema
    text: str | None


def read_fields(table: str, types: Mapping[str, Schema]) -> Iterator[NotedField]:
    """The fields of a table."""
    for line in re.sub(r"\n {8,}", " ", table.strip()).splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(line)
        name, optional, type_, keywords, text = match.groups()
        yield NotedField(name, bool(optional), _schema(type_, types) | json.loads(keywords or "{}"), text)


def read_objects(table: str, types: Mapping[str, Schema], *, closed: bool = False) -> dict[str, Schema]:
    """The schemas of a table of objects: `Name: text` is followed by its fields, indented. Only `closed` ones refuse others."""
    schemas: dict[str, Schema] = {}
    for block in re.split(r"\n(?=\S)", re.sub(r"\n {8,}", " ", table.strip())):
        title, _, lines = block.partition("\n")
        name, _, text = title.partition(": ")
        fields = [*read_fields(lines, types)]
        schema: Schema = {
            "type": "object",
            "description": text,
            "properties": {each.name: described(each) for each in fields},
        }
        schema |= {"additionalProperties": False} if closed else {}
        required = [each.name for each in fields if not each.is_optional]
        schemas[name] = schema | ({"required": required} if required else {})
    return schemas


def described(noted: NotedField) -> Schema:
    """The field's schema with its text."""
    return noted.schema | ({"description": noted.text} if noted.text else {})


def ref(name: str) -> Schema:
    """A reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def explained(codes: Mapping[str, str]) -> str:
    """A list of codes and their meanings, in Markdown."""
    return "\n".join(f"- `{code}`: {text}" for code, text in codes.items())


def _schema(type_: str, types: Mapping[str, Schema]) -> Schema:
    if type_.endswith("?"):
        schema = _schema(type_[:-1], types)
        if "$ref" in schema:
            return {"anyOf": [schema, {"type": "null"}]}
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | choices
    if type_.endswith("[]"):
        return {"type": "array", "items": _schema(type_[:-2], types)}
    if words := re.findall('"([^"]*)"', type_):
        return {"type": "string"} | ({"enum": words} if len(words) > 1 else {"const": words[0]})
    return types[type_] if type_ in types else ref(type_)
