"""The notation of the interface's tables (`schemas`), and the JSON Schema that it stands for.

A table has lines of fields: `name?, name: type {keywords} — text`. A `?` behind the name: the field may be missing; behind the
type: it may be null. `[]` is an array, `+` one value or several, `{…}` an object of such values, `Links&Type` an envelope; `|` is
between alternatives, and `"a"|"b"` are words to choose from. A type is one of `_TYPES`, a schema, or an enum, words or a pattern
by the package's name. Keywords are JSON Schema, and may name limits and patterns of the package; `{NAME}` in a text stands for
words or codes of the package. A line that is indented by 8 spaces continues the line above.
"""

import json
import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from enum import EnumType
from typing import Any

from frontdesk.api import oauth
from frontdesk.config import Environment
from frontdesk.eligibility import fields
from frontdesk.eligibility import model as eligibility
from frontdesk.events import endpoints
from frontdesk.events import model as events
from frontdesk.files import actions, report
from frontdesk.files import model as files
from frontdesk.invitations.model import InvitationState, InvitationStep, NotInvitedReason
from frontdesk.mapping import parser, values
from frontdesk.plans import changes
from frontdesk.web import problems, request

Schema = dict[str, Any]


def ref(name: str, kind: str = "schemas") -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


_LONG_YEARS = {"pattern": "^[^Y]*(?:YYYY[^Y]*)?$"}  # those that need no pivot
# What tables may name.
_NAMED: ChainMap[str, Any] = ChainMap(
    {
        "ERROR_CODES": eligibility.FAULT_CODES | problems.EXACT_CODES,
        "REASONS": {str(reason): reason.description for reason in NotInvitedReason},
        "STEPS": {str(step): step.description for step in InvitationStep},
        "InvitationState": InvitationState,
        "Environment": Environment,
        "KINDS": tuple(problems.PROBLEMS),
        "TARGET": f"^(?:{'|'.join((*fields.FIELDS, values.PLAN, values.FAMILY, values.METADATA_FIELD.pattern))})$",
        "COUNTED": {name: {"type": "integer", "minimum": 0} for name in files.COUNTS},
        "OF_IDENTIFIERS": dict.fromkeys(fields.UNIQUE, ref("MappingSteps")),  # they are no constants
        "LONG_YEARS": _LONG_YEARS | {"items": _LONG_YEARS},
    },
    *map(vars, (parser, values, files, report, actions, fields, eligibility, endpoints, events)),
    *map(vars, (changes, problems, request, oauth)),
)
_FIELD = re.compile(r"^ *(.+?): (\S+)(?: (\{.*?\}))?(?: — (.*))?$")
_TITLE = re.compile(r"^(\w+)(?: = (\S+))?(?: (\{.*\}))?: (.*)$")


def read_fields(table: str) -> Iterator[tuple[str, bool, Schema]]:
    """The fields of a table: the name, whether it may be missing, and the schema with its text."""
    for line in _joined(table).splitlines():
        [(names, type_, keywords, text)] = _FIELD.findall(line)
        about = {"description": filled_in(text)} if text else {}
        for name in names.split(", "):
            yield name.rstrip("?"), name.endswith("?"), read_type(type_, **_keywords(keywords)) | about


def read_objects(table: str) -> dict[str, Schema]:
    """The schemas of a table of objects, of which each has a title, `Name = type {keywords}: text`, and its fields, indented. No
    type stands for an object."""
    schemas: dict[str, Schema] = {}
    for block in re.split(r"\n(?=\S)", _joined(table)):
        title, _, lines = block.partition("\n")
        [(name, type_, keywords, text)] = _TITLE.findall(title)
        schema = read_type(type_ or "object", **_keywords(keywords)) | {"description": text}
        for field, is_optional, its_schema in read_fields(lines):
            schema.setdefault("properties", {})[field] = its_schema
            if not is_optional:
                schema.setdefault("required", []).append(field)
        schemas[name] = schema
    return schemas


def _joined(table: str) -> str:
    return re.sub(r"\n {8,}", " ", table.strip())


def _keywords(text: str) -> Schema:
    """Keywords of JSON Schema, in which names stand for limits and patterns of the package."""

    def value(name: re.Match[str]) -> str:
        found = _NAMED[name[0]]
        return json.dumps(getattr(found, "pattern", found))

    keywords: Schema = json.loads(re.sub(r"(?<=: )[A-Z_]+", value, text or "{}"))
    return keywords


def read_type(type_: str, **keywords: Any) -> Schema:
    """The schema of a type in the notation, with these keywords."""
    inner, last = type_[:-1], type_[-1]
    if last == "}":
        schema: Schema = {"type": "object", "additionalProperties": read_type(inner[1:])}
    elif re.fullmatch(r'("[^"]+"\|?)+', type_):
        words = type_.replace('"', "").split("|")
        schema = {"type": "string"} | ({"enum": words} if len(words) > 1 else {"const": words[0]})
    elif "|" in type_:
        schema = {"anyOf": [*map(read_type, type_.split("|"))]}
    elif "&" in type_:
        links, data = (read_type(part) for part in type_.split("&"))
        properties = {"links": links, "data": data}
        schema = {"type": "object", "properties": properties, "required": [*properties]}
    elif last == "]":
        schema = {"type": "array", "items": read_type(inner[:-1])}
    elif last == "+":
        several = {"type": "array", "items": read_type(inner), "minItems": 1, "maxItems": parser.MOST_WORDS}
        return {"anyOf": [read_type(inner), several | keywords]}
    elif last == "?":
        return _nullable(read_type(inner, **keywords))
    else:
        schema = _named(type_)
    return schema | keywords


def _nullable(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [schema["type"], "null"]} | choices


def _named(name: str) -> Schema:
    """One of _TYPES, the package's words or pattern of this name, or a schema."""
    if name in _TYPES:
        return _TYPES[name]
    match _NAMED.get(name):
        case re.Pattern(pattern=pattern):
            return {"type": "string", "pattern": f"^(?:{pattern})$"}
        case EnumType() | tuple() | dict() as words:
            return {"type": "string", "enum": [*map(str, words)]}
    return ref(name)


def explained(codes: Iterable[str]) -> str:
    """Codes with their meanings as a list in Markdown, or words in a line."""
    if isinstance(codes, Mapping):
        return "\n\n" + "\n".join(f"- `{code}`: {text}" for code, text in codes.items())
    return " " + ", ".join(f"`{word}`" for word in codes)


def filled_in(text: str) -> str:
    """The text of a table or a docstring, with the package's codes or words for each `{NAME}`."""
    return re.sub(r" ?\{([A-Z_]+)\}", lambda name: explained(_NAMED[name[1]]), text).strip()


_TYPES: dict[str, Schema] = {
    name: {"type": name} for name in ("string", "integer", "number", "boolean", "object", "null")
}
_MORE_TYPES = r"""
count: integer {"minimum": 0}
value: string|object|null
time: string {"format": "date-time"}
moment: string {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?Z$"}
date: string {"format": "date"}
file: string {"format": "binary"}
closed: object {"additionalProperties": false}
sha256: string {"pattern": "^[0-9a-f]{64}$"}
name: string {"maxLength": NAME_LENGTH, "pattern": "\\S"}
header_row: integer {"minimum": 1, "maximum": SEARCHED_ROWS}
sheet: string {"minLength": 1, "maxLength": LONGEST_SHEET_NAME}
page_start: integer {"minimum": 0, "maximum": 999999999999999999}
not_blank: string {"pattern": "[^\\s\\x1c-\\x1f\\x85]"}
constant: not_blank {"maxLength": LONGEST_VALUE}
cell: string {"maxLength": LONGEST_VALUE}
column: string {"pattern": COLUMN_NAME}
joint: string {"maxLength": LONGEST_JOIN}
day: string {"pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"}
date_format: DATE_FORMAT|"excel"
lines: not_blank[] {"minItems": 1}
way: WAY {"maxLength": LONGEST_WAY}
plan_way: SOURCES {"maxLength": LONGEST_WAY}
"""
_TYPES.update((name, schema) for name, _, schema in read_fields(_MORE_TYPES))
