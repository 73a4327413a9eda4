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
    return {_name(body): _object(body) for body in types} | _member_schemas() | MAPPING_SCHEMAS


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
    text = {"type": "string"}
    member: Schema = {
        "type": "object",
        "properties": {field.name: _member_property(field) for field in FIELDS.values()},
    }
    answered: dict[str, Schema] = dict.fromkeys(ANSWERED, text) | {
        "id": {"type": "integer", "description": "Identifier of the member record."},
        "dob": text | {"format": "date"},
        "gender": text | {"enum": sorted(GENDERS)},
        "metadata": {"type": "object", "additionalProperties": text},
    }
    return {
        # Two whole objects: generators of clients lose what an `allOf` requires beyond the object that it extends.
        "EligibleMember": {
            "description": "A new member, or a change of a stored one: the `external_id` decides.",
            "anyOf": [ref("NewMember"), ref("MemberChange")],
        },
        "NewMember": {
            "description": "A member that may be new. Text is trimmed and must not hold control characters.",
            "required": list(REQUIRED),
        }
        | member,
        "MemberChange": {
            "description": "A change of a stored member: absent fields keep their values, and null or blank clears an optional "
            "one. Text is trimmed and must not hold control characters.",
            "required": ["external_id"],
        }
        | member,
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
