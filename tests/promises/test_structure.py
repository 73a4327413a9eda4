"""What CONTRIBUTING promises about the shape of the code: names, imports, sizes; and that a start
compiles nothing.
"""

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grimp import build_graph

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
LONGEST_FILE = 600
LONGEST_FUNCTION = 60
TYPES_ONLY = {"_csv", "_typeshed"}  # imported for annotations only


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in trees().items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kinds))


def test_a_class_name_stands_for_one_class() -> None:
    names = Counter(node.name for _, node in nodes(ast.ClassDef) if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1] == []


def test_no_module_imports_itself_round_a_circle() -> None:
    graph = build_graph("frontdesk", include_external_packages=False)
    circles = [
        (importer, imported)
        for importer in sorted(graph.modules)
        for imported in graph.find_modules_directly_imported_by(importer)
        if graph.chain_exists(importer=imported, imported=importer)
    ]
    assert circles == []


def test_files_and_functions_are_short() -> None:
    assert [path for path in trees() if path.read_text().count("\n") > LONGEST_FILE] == []
    lines = [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for _, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [name for name, count in lines if count > LONGEST_FUNCTION] == []


def names_in(node: ast.AST) -> set[str]:
    return {ast.unparse(part) for part in ast.walk(node) if isinstance(part, ast.Name)}


def packs_unrelated_values(node: ast.AST) -> bool:
    """Whether the node is `a, b = x, y` where no value mentions a target, as those of a swap do."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    if not any(isinstance(target, ast.Tuple) for target in node.targets):
        return False
    targets = set[str]().union(*map(names_in, node.targets))
    return not targets & names_in(node.value)


def test_a_statement_assigns_one_value() -> None:
    refused = ["a, b = 1, 2", "a, b = f(), g()", "(a, b), c = f(), g()", "self.a, self.b = x, y"]
    allowed = [
        "a, b = b, a",
        "a, b = b, a + b",
        "a, b = f()",
        "x[0], x[1] = x[1], x[0]",
        "a = 1, 2",
    ]
    assert [
        text
        for text in refused + allowed
        if any(map(packs_unrelated_values, ast.walk(ast.parse(text))))
    ] == refused
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("src", "tests", "bench", "clients")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign) and packs_unrelated_values(node)
    ]
    assert found == []


def imported_tests(tree: ast.Module) -> list[str]:
    """The modules of tests that are imported: by their own names, or as names of their folder."""
    names = [part for module, name in imported(tree) for part in (*module.split("."), name)]
    return [name for name in names if name.startswith("test_")]


def test_no_module_imports_a_module_of_tests() -> None:
    """What tests share stands in a helper module, so that a test can be moved, split or deleted."""
    refused = [
        "import tests.db.test_sets",
        "from tests.db.test_sets import x",
        "from a import test_b",
    ]
    allowed = ["from tests.db.explained import x", "import pytest"]
    assert [text for text in refused + allowed if imported_tests(ast.parse(text))] == refused
    found = {
        str(path.relative_to(ROOT)): names
        for folder in ("src", "tests", "bench", "clients")
        for path in (ROOT / folder).rglob("*.py")
        if (names := imported_tests(ast.parse(path.read_text())))
    }
    assert found == {}


def hides_a_meaning(node: ast.AST) -> bool:
    """Whether the node makes an object with a boolean or an empty tuple that has no name."""
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func).rpartition(".")[2].lstrip("_")
    return name[:1].isupper() and any(
        (isinstance(argument, ast.Constant) and isinstance(argument.value, bool))
        or (isinstance(argument, ast.Tuple) and not argument.elts)
        for argument in node.args
    )


def test_booleans_and_empty_tuples_of_an_object_are_keywords() -> None:
    refused = ["Doctor(None, 1, ())", "model.Field('a', True)", "_Work(None, ())"]
    allowed = ["Doctor(None, 1, visits=())", "names.get('a', ())", "Field('a', required=True)"]
    texts = [
        text for text in refused + allowed if hides_a_meaning(ast.parse(text, mode="eval").body)
    ]
    assert texts == refused
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("src", "tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and hides_a_meaning(node)
    ]
    assert [place for place in found if not place.startswith("src/frontdesk/server.py")] == []


def test_a_model_imports_no_store_no_table_and_no_database() -> None:
    models = {path: imported(tree) for path, tree in trees().items() if path.name == "model.py"}
    assert len(models) >= 12
    refused = [
        (path, module)
        for path, modules in models.items()
        for module, _ in modules
        if module.startswith("frontdesk.") and {"db", "store", "tables"} & set(module.split("."))
    ]
    assert refused == []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def imported(tree: ast.Module) -> list[tuple[str, str]]:
    """(module, name) of every import; the name is empty where the module itself is imported."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found += [(node.module, alias.name) for alias in node.names]
    return found


def private_names(tree: ast.Module) -> list[str]:
    """The private names of libraries that are imported, and the private methods of their classes
    that are replaced.
    """
    of_libraries = [
        (module, name) for module, name in imported(tree) if not module.startswith("frontdesk")
    ]
    found = [
        f"{module}.{name}"
        for module, name in of_libraries
        if module.partition(".")[0] not in TYPES_ONLY
        and any(map(is_private, (*module.split("."), name)))
    ]
    origins = {name: module for module, name in of_libraries}
    for node in ast.walk(tree):
        for base in node.bases if isinstance(node, ast.ClassDef) else ():
            if isinstance(node, ast.ClassDef) and isinstance(base, ast.Name) and base.id in origins:
                replaced = getattr(importlib.import_module(origins[base.id]), base.id)
                methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
                found += [
                    f"{node.name}.{name}"
                    for name in methods
                    if is_private(name) and hasattr(replaced, name)
                ]
    return found


def test_libraries_are_used_by_their_public_names() -> None:
    """A private name may change with any release."""
    assert {path: names for path, tree in trees().items() if (names := private_names(tree))} == {}
    example = (
        "from functools import _a\nfrom threading import Thread\nclass Own(Thread):\n"
        " def _bootstrap(self): ..."
    )
    assert private_names(ast.parse(example)) == ["functools._a", "Own._bootstrap"]


def test_a_start_compiles_no_module_of_ours() -> None:
    program = "import frontdesk.server, frontdesk.cli.serve, frontdesk.cli.worker"
    command = [sys.executable, "-v", "-c", program]
    started = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = re.findall(r"^# code object from '(.*)'$", started.stderr, re.MULTILINE)
    ours = [Path(name) for name in loaded if Path(name).is_relative_to(SOURCE)]
    assert len(ours) > 100
    assert [path for path in ours if path.suffix == ".py"] == []
