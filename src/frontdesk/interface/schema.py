"""Generates the JSON Schema of a Python type.

A class of JSON, an enum, a `Literal`, a list, a dict or a union is described where it stands. A
TypedDict, and a type with the note `Named` or `Derived`, is a schema of its own: other schemas
refer to it by its name. Notes of `Annotated` add to a schema: `Keywords` of JSON Schema, and a
text, which is the description.

>>> schema_of(Annotated[int | None, Keywords(minimum=0), "Seconds."])
{'type': ['integer', 'null'], 'minimum': 0, 'description': 'Seconds.'}
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from types import ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

from frontdesk.text import DescribedEnum

Schema = dict[str, Any]
Body = TypeVar("Body")


class Keywords:
    """A note: keywords of JSON Schema, such as `Keywords(minimum=0)`."""

    def __init__(self, **keywords: Any) -> None:
        self.schema: Schema = keywords


class Named:
    """A note: the type, with the notes before this one, is the schema `name`."""

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description


class Derived:
    """A note: the type is the schema `name`, which the program makes of a table."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema


def one_of(choices: Iterable[str]) -> Keywords:
    return Keywords(enum=[*map(str, choices)])


def matches(pattern: re.Pattern[str]) -> Keywords:
    return Keywords(pattern=f"^(?:{pattern.pattern})$")


def explained(codes: Iterable[str]) -> str:
    """The end of a text: codes with their sentences as a list in Markdown, or words in a line."""
    if isinstance(codes, Mapping):
        return "\n\n" + "\n".join(f"- `{code}`: {text}" for code, text in codes.items())
    return " " + ", ".join(f"`{word}`" for word in codes)


def descriptions(meanings: Iterable[DescribedEnum]) -> dict[str, str]:
    """The sentence of each word."""
    return {str(word): word.description for word in meanings}


def ref(name: str, kind: str = "schemas") -> Schema:
    return {"$ref": f"#/components/{kind}/{name}"}


# By TypedDict: the keywords of the whole object, beside those of its fields.
_OF_OBJECTS: dict[Any, Schema] = {}


def closed(**keywords: Any) -> Callable[[type[Body]], type[Body]]:
    """Decorates a TypedDict that has no other fields; `keywords` are those of the whole object."""

    def close(body: type[Body]) -> type[Body]:
        _OF_OBJECTS[body] = {"additionalProperties": False} | keywords
        return body

    return close


def schema_of(hint: Any) -> Schema:
    """The schema of the type where another schema uses it. Raises TypeError for an unknown type."""
    origin = get_origin(hint)
    if origin in _BY_ORIGIN:
        return _BY_ORIGIN[origin](hint)
    if hint in _OF_JSON:
        return dict(_OF_JSON[hint])
    if isinstance(hint, str | ForwardRef):
        return ref(hint if isinstance(hint, str) else hint.__forward_arg__)
    if is_typeddict(origin):
        return _object_of(origin, dict(zip(origin.__parameters__, get_args(hint), strict=True)))
    if is_typeddict(hint):
        return ref(schema_name(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"type": "string", "enum": [*map(str, hint)]}
    raise TypeError(f"{hint!r} has no JSON Schema")


def schemas_in(*modules: ModuleType) -> dict[str, Schema]:
    """Every named schema that the modules define, by name, in the order of their definitions.
    Raises ValueError for a name that stands for two schemas.
    """
    found: dict[str, Schema] = {}
    for module in modules:
        for name, schema in _definitions(module):
            if found.setdefault(name, schema) != schema:
                raise ValueError(f"{name} stands for two schemas")
    return found


def schema_name(body: Any) -> str:
    """The name that clients see: a class `PlanBody`, beside the `Plan` of the domain, is `Plan`."""
    name: str = body.__name__
    return name.removesuffix("Body")


def object_schema(body: Any) -> Schema:
    """The definition of a TypedDict: its docstring is the description."""
    described = _OF_OBJECTS.get(body, {}) | {"description": " ".join(body.__doc__.split())}
    schema = _object_of(body, {})
    return {"type": schema.pop("type")} | described | schema


def _definitions(module: ModuleType) -> Iterator[tuple[str, Schema]]:
    for name, value in vars(module).items():
        if get_origin(value) is Annotated:
            yield from _definition_by_note(value)
        elif is_typeddict(value) and value.__module__ == module.__name__ and name[0] != "_":
            yield schema_name(value), object_schema(value)


def _definition_by_note(hint: Any) -> Iterator[tuple[str, Schema]]:
    kind, *notes = get_args(hint)
    for place, note in enumerate(notes):
        if isinstance(note, Named):
            schema = _noted(schema_of(kind), notes[:place])
            yield note.name, schema | {"description": note.description}
        elif isinstance(note, Derived):
            yield note.name, note.schema


def _annotated(hint: Any) -> Schema:
    kind, *notes = get_args(hint)
    for place, note in enumerate(notes):
        if isinstance(note, Named | Derived):
            return _noted(ref(note.name), notes[place + 1 :])
    return _noted(schema_of(kind), notes)


def _noted(schema: Schema, notes: Iterable[Any]) -> Schema:
    for note in notes:
        schema |= {"description": note} if isinstance(note, str) else note.schema
    return schema


def _object_of(body: Any, arguments: Mapping[Any, Any]) -> Schema:
    """The fields of a TypedDict; `arguments` stand for the type variables of a generic one."""
    schema: Schema = {"type": "object", "properties": {}}
    required = []
    for name, declared in body.__annotations__.items():
        hint = arguments.get(declared, declared)
        if get_origin(hint) is NotRequired:
            [hint] = get_args(hint)
        else:
            required.append(name)
        schema["properties"][name] = schema_of(hint)
    return schema | ({"required": required} if required else {})


def _array(hint: Any) -> Schema:
    [item] = get_args(hint)
    return {"type": "array", "items": schema_of(item)}


def _mapping(hint: Any) -> Schema:
    _, value = get_args(hint)
    return {"type": "object"} | ({} if value is Any else {"additionalProperties": schema_of(value)})


def _literal(hint: Any) -> Schema:
    choices = get_args(hint)
    return {"type": "string"} | (
        {"enum": [*choices]} if len(choices) > 1 else {"const": choices[0]}
    )


def _union(hint: Any) -> Schema:
    choices = get_args(hint)
    if len(choices) > 2 or NoneType not in choices:
        return {"anyOf": [*map(schema_of, choices)]}
    [choice] = (each for each in choices if each is not NoneType)
    schema = schema_of(choice)
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    or_null = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return schema | {"type": [schema["type"], "null"]} | or_null


_OF_JSON: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
}
_BY_ORIGIN: dict[Any, Callable[[Any], Schema]] = {
    Annotated: _annotated,
    Literal: _literal,
    Union: _union,
    UnionType: _union,
    dict: _mapping,
    list: _array,
}
