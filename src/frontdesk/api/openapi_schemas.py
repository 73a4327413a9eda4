"""The schemas of the OpenAPI document, made from the types of the bodies and from the table of the member's fields."""

from inspect import cleandoc
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from frontdesk.api import bodies
from frontdesk.api.mapping_schemas import MAPPING_SCHEMAS
from frontdesk.eligibility.code_sets import GENDERS
from frontdesk.eligibility.fields import FIELDS, REQUIRED, Field
from frontdesk.eligibility.model import ANSWERED

Schema = dict[str, Any]

_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schemas() -> dict[str, Schema]:
    """Every named schema of the document. Bodies stay open to unknown fields, because the service ignores them."""
    types = [body for name, body in vars(bodies).items() if name.endswith("Body") and is_typeddict(body)]
    schemas = {_name(body): _object(body) for body in types} | _member_schemas() | MAPPING_SCHEMAS
    schemas |= _oauth_schemas("Token", bodies.TokenParameters)
    return schemas | _oauth_schemas("Revocation", bodies.RevocationParameters)


def ref(name: str) -> Schema:
    """A reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def _name(body: type) -> str:
    return body.__name__.removesuffix("Body")


def _object(body: type) -> Schema:
    """The schema of a TypedDict: every field that is not `NotRequired` is required."""
    hints = get_type_hints(body, include_extras=True)
    schema: Schema = {
        "type": "object",
        "description": cleandoc(body.__doc__ or "").replace("\n", " "),
        "properties": {name: _schema(hint) for name, hint in hints.items()},
    }
    required = [name for name in hints if name in body.__required_keys__]  # type: ignore[attr-defined]
    return schema | {"required": required} if required else schema


def _oauth_schemas(noun: str, parameters: type) -> dict[str, Schema]:
    """A schema for each way to send the parameters. In JSON those that may be absent may be null."""
    form = _object(parameters)
    properties = {
        name: schema if name in form["required"] else _or_null(schema)
        for name, schema in form["properties"].items()
    }
    return {
        noun + kind: form
        | {"description": f"{form['description']} {text}"}
        | ({"properties": properties} if kind == "Request" else {})
        for kind, text in bodies.OAUTH_BODIES.items()
    }


def _schema(hint: Any) -> Schema:
    """The schema of a value: text, number, enum or another body; `| None`, notes and the like around one of these."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        return ref(_name(hint))
    if origin is None:
        return (
            {"type": _JSON_TYPES[hint]}
            if hint in _JSON_TYPES
            else {"type": "string", "enum": [*map(str, hint)]}
        )
    if origin is Literal:
        return {"type": "string"} | (
            {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
        )
    if origin is list:
        return {"type": "array", "items": _schema(arguments[0])}
    if origin is dict:
        return {"type": "object"}
    if origin in (Union, UnionType):
        return _or_null(next(_schema(argument) for argument in arguments if argument is not NoneType))
    schema = _schema(arguments[0])  # of NotRequired or Annotated
    for note in arguments[1:]:
        schema |= {"description": note} if isinstance(note, str) else note
    return schema


def _or_null(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [schema["type"], "null"]} | choices


def _member_schemas() -> dict[str, Schema]:
    required = ", ".join(f"`{name}`" for name in REQUIRED)
    text = {"type": "string"}
    answered: dict[str, Schema] = dict.fromkeys(ANSWERED, text) | {
        "id": {"type": "integer", "description": "Identifier of the member record."},
        "dob": text | {"format": "date"},
        "gender": text | {"enum": sorted(GENDERS)},
        "metadata": {"type": "object", "additionalProperties": text},
    }
    return {
        "EligibleMember": {
            "type": "object",
            "description": f"A new member needs {required}. An update needs `external_id` only: absent fields keep their "
            "values, and null or blank clears an optional one. Text is trimmed and must not hold control characters.",
            "properties": {field.name: _member_property(field) for field in FIELDS.values()},
            "required": ["external_id"],
        },
        "Eligibility": {
            "type": "object",
            "description": "These nine fields, and no others.",
            "properties": answered,
            "required": list(ANSWERED),
        },
    }


def _member_property(field: Field) -> Schema:
    """The field's schema, widened by what every field allows: spaces around text, and null or blank to clear it."""
    schema = dict(field.kind.schema)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "pattern" in schema:
        again = "" if field.required else "?"
        schema["pattern"] = rf"^\s*(?:{schema['pattern'][1:-1]}){again}\s*$"
    elif field.required:
        schema["pattern"] = r"\S"  # not blank
    elif "string" not in types:
        schema["pattern"] = r"^\s*$"  # blank
    if not field.required:
        schema["type"] = [*types, "null"] if "string" in types else [*types, "string", "null"]
    note = "Required for a new member; never null or blank." if field.required else "null or blank clears it."
    return schema | {"description": f"{field.description} {note}", "examples": [field.example]}
