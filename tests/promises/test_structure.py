"""What CONTRIBUTING promises about the shape of the code: names, imports, sizes."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from grimp import build_graph

SOURCE = Path(__file__).parents[2] / "src"
PROSE_SHARE = (0.08, 0.18)
LONGEST_FILE = 600
FUNCTION_LINES, LONGEST_FUNCTION = 32, 60


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    for path, tree in trees().items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kinds))


def share_within(sizes: list[int], limit: int) -> float:
    return sum(size <= limit for size in sizes) / len(sizes)


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


def test_no_file_is_too_long() -> None:
    lines = {path: path.read_text().count("\n") for path in trees()}
    assert [path.name for path, count in lines.items() if count > LONGEST_FILE] == []


def test_functions_are_short() -> None:
    lines = [
        (node.name, (node.end_lineno or 0) - node.lineno + 1)
        for _, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [name for name, count in lines if count > LONGEST_FUNCTION] == []
    assert share_within([count for _, count in lines], FUNCTION_LINES) >= 0.9


def test_the_code_is_explained_and_not_buried() -> None:
    lines = prose = 0
    for path, tree in trees().items():
        text = path.read_text().splitlines()
        documented: set[int] = set()
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and ast.get_docstring(node) is not None
            ):
                documented.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        lines += len(text)
        prose += sum(
            number in documented or line.lstrip().startswith("#") for number, line in enumerate(text, 1)
        )
    assert PROSE_SHARE[0] <= prose / lines <= PROSE_SHARE[1]
