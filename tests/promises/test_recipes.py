"""The recipes of CONTRIBUTING, followed in a copy of the tree: what they list is enough for the
tests that guard it, and the guard notices what is left out.
"""

import json
from pathlib import Path

import pytest

from tests.tree_copy import TreeCopy

PACKAGE = "src/frontdesk"

# The tests that guard what a recipe lists.
PAGE_OF_FIELDS = "tests/promises/test_interface_page.py::test_the_page_has_every_field_of_a_member"
SNAPSHOT = "tests/api/test_openapi.py::test_a_change_of_the_document_is_made_knowingly"
MEANING_OF_ROWS = (
    "tests/files/test_row_meaning.py::"
    "test_code_that_decides_what_a_row_means_has_not_changed_unnoticed"
)
SETTINGS = (
    "tests/promises/test_documents.py::"
    "test_every_setting_is_documented_with_its_default_and_a_sentence"
)
CODES_ON_THE_PAGE = "tests/promises/test_interface_page.py::test_the_page_has_every_code"
PATHS_ON_THE_PAGE = "tests/promises/test_interface_page.py::test_the_page_has_every_path"
COMMANDS = "tests/cli/test_every_command.py::test_the_command_tree_is_the_documented_one"


def names(*tests: str) -> list[str]:
    return [test.split("::")[1] for test in tests]


@pytest.fixture
def tree(tmp_path: Path) -> TreeCopy:
    return TreeCopy(tmp_path)


def test_a_text_field_is_a_line_and_what_is_renewed_from_it(tree: TreeCopy) -> None:
    tree.insert(
        f"{PACKAGE}/eligibility/fields.py",
        '    Field("nickname", SHORT_TEXT, "Nickname.", example="Robbie"),\n',
        before='    Field(\n        "metadata",',
    )
    tree.insert(
        "docs/interface.md",
        "| `nickname` | optional | Text of at most 255 characters. |\n",
        before="| `metadata` | optional |",
    )
    assert tree.failing(PAGE_OF_FIELDS, SNAPSHOT, MEANING_OF_ROWS) == names(
        SNAPSHOT, MEANING_OF_ROWS
    )
    tree.run("-m", "tests.interface.made")  # make interface
    assert tree.failing(SNAPSHOT, MEANING_OF_ROWS, FRONTDESK_TEST_RENEW="1") == []
    snapshot = json.loads((tree.folder / "tests/api/snapshots/openapi.json").read_text())
    properties = snapshot["components"]["schemas"]["MemberChange"]["properties"]
    assert properties["nickname"]["examples"] == ["Robbie"]
    models = (tree.folder / "clients/python/src/frontdesk_client/models.py").read_text()
    types = (tree.folder / "clients/typescript/src/schema.ts").read_text()
    assert "nickname: " in models
    assert "nickname?: " in types


def test_a_code_is_an_entry(tree: TreeCopy) -> None:
    tree.insert(
        f"{PACKAGE}/codes/faults.py",
        "NOT_A_NAME = _invalid(\n"
        '    "not_a_name",\n'
        '    "The name has no letter.",\n'
        '    example=_member({"city": "02134"}, "city", "must have a letter"),\n'
        ")\n",
        before="MALFORMED_ZIPCODE = _invalid(",
    )
    shown = (
        "from frontdesk.api.codes import sections; "
        "print('not_a_name' in str(sections('https://api.example.com')))"
    )
    assert tree.run("-c", shown) == "True\n"
    assert tree.failing(CODES_ON_THE_PAGE, SNAPSHOT) == names(CODES_ON_THE_PAGE, SNAPSHOT)
    tree.run("-m", "tests.interface.made")
    assert tree.failing(CODES_ON_THE_PAGE, SNAPSHOT) == []


def test_an_endpoint_is_a_declaration_and_its_handler(tree: TreeCopy) -> None:
    tree.insert(
        f"{PACKAGE}/api/paths.py",
        '    MEMBER_COUNT = "/v2/plans/{plan_id}/eligibility/count"\n',
        before="    MEMBER = ",
    )
    tree.insert(
        f"{PACKAGE}/api/members.py",
        "@GROUP.get(\n"
        "    Path.MEMBER_COUNT,\n"
        "    scope=Scope.ELIGIBILITY_READ,\n"
        '    answers={200: Answer("The number.", dict[str, int])},\n'
        ")\n"
        "async def count_eligible_members(app: App, request: Request) -> Response:\n"
        '    """Count the members of a plan."""\n'
        '    return json_response({"count": 0})\n\n\n',
        before="@GROUP.get(\n    Path.MEMBERS_OF_ACCOUNT,",
    )
    arranged = (
        "from frontdesk.api.routes import ENDPOINTS; "
        "print([each.id for each in ENDPOINTS if each.path.endswith('/count')])"
    )
    assert tree.run("-c", arranged) == "['countEligibleMembers']\n"
    assert tree.failing(PATHS_ON_THE_PAGE, SNAPSHOT) == names(PATHS_ON_THE_PAGE, SNAPSHOT)
    tree.insert(
        "docs/interface.md",
        "### Count members\n\n`GET /v2/plans/{plan_id}/eligibility/count`\n\n",
        before="## Eligibility files\n",
    )
    tree.run("-m", "tests.interface.made")
    assert tree.failing(PATHS_ON_THE_PAGE, SNAPSHOT) == []


def test_a_setting_is_a_line_and_a_row(tree: TreeCopy) -> None:
    tree.insert(
        f"{PACKAGE}/config.py",
        '    greeting: str = setting("Hello", str)\n',
        before="    keep_reports_days: int",
    )
    program = "from frontdesk.config import read_config; print(read_config({}).greeting)"
    assert tree.run("-c", program) == "Hello\n"
    assert tree.failing(SETTINGS) == names(SETTINGS)
    tree.insert(
        "docs/configuration.md",
        "| FRONTDESK_GREETING | Hello | The first word of a mail. |\n",
        before="| FRONTDESK_KEEP_REPORTS_DAYS |",
    )
    assert tree.failing(SETTINGS) == []


def test_a_command_is_a_function_that_returns_an_output(tree: TreeCopy) -> None:
    tree.insert(
        f"{PACKAGE}/cli/plans.py",
        '@plan.query("count", "")\n'
        "def count(tx: Tx) -> Output:\n"
        '    """Count the plans of all accounts."""\n'
        '    return describe({"plans": len(plans.list_plans(tx, EVERY))})\n\n\n',
        before='@plan.query("show", "1")\n',
    )
    database = {"FRONTDESK_DATABASE_URL": f"sqlite:///{tree.folder}/plans.db"}
    tree.run("-m", "frontdesk", "migrate", **database)
    assert "Example: frontdesk plan count" in tree.run("-m", "frontdesk", "plan", "count", "--help")
    shown = tree.run("-m", "frontdesk", "plan", "count", "--json", **database)
    assert json.loads(shown) == {"plans": 0}
    assert tree.failing(COMMANDS) == names(COMMANDS), "until the test's own list has its name"
