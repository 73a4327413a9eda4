"""Finds every regular expression of the package: where it stands, its text, and how much of a text
it has to match.
"""

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import frontdesk

SOURCE = Path(frontdesk.__file__).parent
ONLY_ALEMBIC_CAN_IMPORT = "frontdesk.db.migrations.env"  # alembic runs it; it holds no pattern
# The functions of `re`, and the way in which each applies a pattern. `compile` alone tells nothing.
WAYS = {
    "compile": "compile",
    "match": "match",
    "fullmatch": "fullmatch",
    "search": "search",
    "sub": "search",
    "subn": "search",
    "split": "search",
    "findall": "search",
    "finditer": "search",
}
METHODS = set(WAYS) - {"compile"}


class Pattern(NamedTuple):
    """A regular expression. `way` is `search`, `match` or `fullmatch`: a search begins anew at each
    character.
    """

    where: str
    text: str
    flags: int
    way: str

    def compile(self) -> re.Pattern[str]:
        return re.compile(self.text, self.flags)

    def apply(self, text: str) -> None:
        """Match as the package does; a search looks for every match."""
        compiled = self.compile()
        if self.way == "search":
            for _ in compiled.finditer(text):
                pass
        elif self.way == "match":
            compiled.match(text)
        else:
            compiled.fullmatch(text)


class CannotEvaluate(Exception):
    """A pattern depends on values that only exist at run time. `patterns_at_run_time` has to name
    some.
    """


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(frontdesk.__path__, "frontdesk."):
        if found.name != ONLY_ALEMBIC_CAN_IMPORT:
            yield importlib.import_module(found.name)


def patterns_of_package(at_run_time: Mapping[str, list[tuple[str, int]]]) -> list[Pattern]:
    """Every pattern that a module of the package compiles or applies.

    `at_run_time` has the texts and flags of those that a function makes of its arguments, by
    `module.function`. Raises CannotEvaluate for a pattern that is neither readable in the source
    nor listed there.
    """
    trees = {module: ast.parse(Path(str(module.__file__)).read_text()) for module in modules()}
    ways = _ways_of_names(trees.values())
    found: list[Pattern] = []
    for module, tree in trees.items():
        for call, function in _calls_of_re(tree):
            name = function or "".join(_assigned_names(call)[:1])
            place = f"{module.__name__.removeprefix('frontdesk.')}.{name}".rstrip(".")
            found += _patterns_of_call(call, place, vars(module), ways, at_run_time)
    return found


def compiled_in_modules() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The compiled patterns that attributes of modules and of their classes hold, in containers and
    closures too.
    """
    for module in modules():
        seen: set[int] = set()
        for name, value in vars(module).items():
            for pattern in _compiled_within(value, seen, depth=0):
                yield f"{module.__name__.removeprefix('frontdesk.')}.{name}", pattern


def _compiled_within(value: object, seen: set[int], *, depth: int) -> Iterator[re.Pattern[Any]]:
    if id(value) in seen or depth > 6 or isinstance(value, ModuleType):
        return
    seen.add(id(value))
    if isinstance(value, re.Pattern):
        yield value
        return
    inner: list[object] = []
    if isinstance(value, Mapping):
        inner += [*value.keys(), *value.values()]
    elif isinstance(value, tuple | list | set | frozenset):
        inner += value
    elif isinstance(value, type) and value.__module__.startswith("frontdesk."):
        inner += vars(value).values()
    owner = getattr(value, "__self__", None)  # of `re.compile(...).fullmatch`
    inner += [owner] if isinstance(owner, re.Pattern) else []
    for cell in getattr(value, "__closure__", None) or ():
        inner.append(cell.cell_contents)
    if isinstance(value, functools.partial):
        inner += [value.func, *value.args]
    for each in inner:
        yield from _compiled_within(each, seen, depth=depth + 1)


def _calls_of_re(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """The calls `re.function(...)`, with the name of the function around each."""
    for node, function in _walk(tree, ""):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in WAYS:
                yield node, function


def _walk(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    for child in ast.iter_child_nodes(node):
        inside = (
            child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        )
        child.parent = node  # type: ignore[attr-defined]
        yield child, inside
        yield from _walk(child, inside)


def _patterns_of_call(
    call: ast.Call,
    place: str,
    names: Mapping[str, Any],
    ways: Mapping[str, set[str]],
    at_run_time: Mapping[str, list[tuple[str, int]]],
) -> list[Pattern]:
    assert isinstance(call.func, ast.Attribute)
    function = call.func.attr
    try:
        texts = [(_evaluate(call.args[0], names), _flags(call, function, names))]
    except NameError:
        if place not in at_run_time:
            raise CannotEvaluate(f"{place}: {ast.unparse(call)}") from None
        texts = at_run_time[place]
    found = _ways_of_compiled(call, ways) if function == "compile" else {WAYS[function]}
    return [
        Pattern(place, _as_text(text), flags, way) for text, flags in texts for way in sorted(found)
    ]


def _flags(call: ast.Call, function: str, names: Mapping[str, Any]) -> int:
    position = {
        "compile": 1,
        "match": 2,
        "fullmatch": 2,
        "search": 2,
        "findall": 2,
        "finditer": 2,
    }.get(function)
    for keyword in call.keywords:
        if keyword.arg == "flags":
            return int(_evaluate(keyword.value, names))
    if position is not None and len(call.args) > position:
        return int(_evaluate(call.args[position], names))
    return 0


def _evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    return eval(ast.unparse(node), dict(names))  # noqa: S307 - our own source


def _as_text(pattern: str | bytes) -> str:
    return pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern


def _ways_of_names(trees: Iterable[ast.Module]) -> dict[str, set[str]]:
    """How the package applies the compiled pattern of each name, in whatever module:
    `NAME.fullmatch(...)`.
    """
    ways: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                owner = node.value
                name = (
                    owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", None)
                )
                if name is not None and name != "re":
                    ways.setdefault(name, set()).add(WAYS[node.attr])
    return ways


def _ways_of_compiled(call: ast.Call, ways: Mapping[str, set[str]]) -> set[str]:
    """By the method that is taken of the call, or of the name that it is given. Otherwise the most
    costly: a search.
    """
    parent = getattr(call, "parent", None)
    if isinstance(parent, ast.Attribute) and parent.attr in METHODS:
        return {WAYS[parent.attr]}
    found: set[str] = set()
    for name in _assigned_names(call):
        found |= ways.get(name, set())
    return found or {"search"}


def _assigned_names(call: ast.Call) -> list[str]:
    """The names in `A = re.compile(...)` and in `A, B = re.compile(...), re.compile(...)`."""
    value: ast.AST = call
    parent = getattr(call, "parent", None)
    if isinstance(parent, ast.Attribute):  # `A = re.compile(...).fullmatch`
        value = parent
        parent = getattr(parent, "parent", None)
    position: int | None = None
    if isinstance(parent, ast.Tuple):
        position = [*map(id, parent.elts)].index(id(value))
        value = parent
        parent = getattr(parent, "parent", None)
    if not isinstance(parent, ast.Assign) or parent.value is not value:
        return []
    targets = [
        target.elts[position] if isinstance(target, ast.Tuple) and position is not None else target
        for target in parent.targets
    ]
    return [str(getattr(target, "id", None) or getattr(target, "attr", "")) for target in targets]
