"""Libraries are used by their public names: none that begins with an underscore is imported, and no private method of a base
class is replaced. A private name may change with any release.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import frontdesk

PACKAGE = Path(frontdesk.__file__).parent
TYPES_ONLY = {"_csv", "_typeshed"}  # imported for annotations only


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(module, name) of every import from a library; the name is empty where the module itself is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)


def private_imports(tree: ast.Module) -> list[str]:
    return [
        f"{module}.{name}"
        for module, name in imported(tree)
        if module.partition(".")[0] not in TYPES_ONLY | {"frontdesk"}
        and any(map(is_private, (*module.split("."), name)))
    ]


def replaced_private_methods(tree: ast.Module) -> list[str]:
    origins = {name: module for module, name in imported(tree) if not module.startswith("frontdesk")}
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in origins:
                library_class = getattr(importlib.import_module(origins[base.id]), base.id)
                methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
                found += [
                    f"{node.name}.{name}"
                    for name in methods
                    if is_private(name) and hasattr(library_class, name)
                ]
    return found


def test_no_private_name_of_a_library_is_imported() -> None:
    found = {path: names for path, tree in modules() if (names := private_imports(tree))}
    assert found == {}


def test_no_private_method_of_a_library_is_replaced() -> None:
    found = {path: names for path, tree in modules() if (names := replaced_private_methods(tree))}
    assert found == {}


def test_both_kinds_are_found() -> None:
    tree = ast.parse(
        "from functools import _lru_cache_wrapper\n"
        "from threading import Thread\n"
        "class Own(Thread):\n"
        "    def _bootstrap(self): ...\n"
    )
    assert private_imports(tree) == ["functools._lru_cache_wrapper"]
    assert replaced_private_methods(tree) == ["Own._bootstrap"]
