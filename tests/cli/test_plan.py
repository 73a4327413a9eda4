from typing import Any

import pytest

from tests.cli.conftest import CommandLine

LARGEST_ID = str(2**63 - 1)


@pytest.fixture
def ids(account: str, group: str) -> tuple[str, str]:
    return account, group


def create(cli: CommandLine, ids: tuple[str, str], external_id: str, *more: str) -> Any:
    return cli.json(
        *("plan", "create", "--account", ids[0], "--provider-group", ids[1]),
        *("--external-id", external_id, "--name", "Gold", *more),
    )


def test_a_created_plan_is_printed_in_the_words_of_the_interface(
    cli: CommandLine, ids: tuple[str, str]
) -> None:
    plan = create(cli, ids, "gold", "--description", "Day and night")
    assert list(plan) == [
        *("id", "type", "account_id", "external_id", "name", "description", "active"),
        *("created_at", "provider_group"),
    ]
    assert (plan["type"], plan["active"], plan["description"]) == ("plans", True, "Day and night")
    assert plan["provider_group"]["id"] == int(ids[1])
    assert cli.json("plan", "list", "--account", ids[0]) == [plan]
    assert "Doctors" in cli.text("plan", "list")


def test_a_plan_may_begin_without_accepting_patients(cli: CommandLine, ids: tuple[str, str]) -> None:
    assert create(cli, ids, "gold", "--not-accepting")["active"] is False


def test_a_shown_plan_has_its_queue_as_it_is_now(cli: CommandLine, ids: tuple[str, str]) -> None:
    plan_id = str(create(cli, ids, "gold")["id"])
    nobody = {"estimated_wait_time": -1, "queue_length": 0, "is_active": False}
    assert cli.json("plan", "show", plan_id)["queue_info"] == nobody
    cli.json("duty", "on", "--provider-group", ids[1], "--doctor", "dr-1")
    cli.json("queue", "join", "--plan", plan_id, "--patient", "visit-1")
    queue = cli.json("plan", "show", plan_id)["queue_info"]
    assert (queue["queue_length"], queue["is_active"]) == (1, True)
    assert "queue_length: 1" in cli.text("plan", "show", plan_id)


def test_setting_changes_what_is_given_and_keeps_the_rest(cli: CommandLine, ids: tuple[str, str]) -> None:
    plan = create(cli, ids, "gold", "--description", "Day and night")
    changed = cli.json("plan", "set", str(plan["id"]), "--name", "Gold 2026", "--not-accepting")
    assert changed == plan | {"name": "Gold 2026", "active": False}
    assert cli.json("plan", "set", str(plan["id"]), "--description", "")["description"] is None
    [*_, entry] = cli.audit_trail()
    assert (entry["action"], entry["detail"]) == ("plan.changed", {"fields": ["description"]})
    cli.json("plan", "set", str(plan["id"]), "--name", "Gold 2026", "--external-id", "gold-2", "--accepting")
    [*_, entry] = cli.audit_trail()
    assert entry["detail"] == {"fields": ["accepting_patients", "external_id"]}


def test_setting_what_is_set_already_leaves_no_audit_entry(cli: CommandLine, ids: tuple[str, str]) -> None:
    plan = create(cli, ids, "gold")
    before = cli.audit_trail()
    assert cli.json("plan", "set", str(plan["id"]), "--name", "Gold", "--accepting") == plan
    assert cli.audit_trail() == before


def test_all_wrong_texts_are_told_at_once(cli: CommandLine, ids: tuple[str, str]) -> None:
    plan_id = str(create(cli, ids, "gold")["id"])
    said = cli.refused("plan", "set", plan_id, "--name", " ", "--external-id", "x" * 256)
    assert "--name must not be null or blank." in said
    assert "--external-id must have at most 255 characters." in said


def test_an_external_id_is_unique_in_the_account(cli: CommandLine, ids: tuple[str, str]) -> None:
    create(cli, ids, "gold")
    second = str(create(cli, ids, "silver")["id"])
    said = cli.refused("plan", "set", second, "--external-id", "gold")
    assert said == "Error: --external-id is already in use.\n"


def test_unknown_ids_are_told_with_the_list_to_look_in(cli: CommandLine, ids: tuple[str, str]) -> None:
    texts = ("--external-id", "gold", "--name", "Gold")
    no_account = cli.refused("plan", "create", "--account", "77", "--provider-group", ids[1], *texts)
    no_group = cli.refused("plan", "create", "--account", ids[0], "--provider-group", "77", *texts)
    assert "frontdesk account list" in no_account
    assert "frontdesk provider-group list" in no_group
    for plan_id in ("77", LARGEST_ID):
        assert "frontdesk plan list" in cli.refused("plan", "show", plan_id)


def test_an_id_that_no_database_holds_is_misuse(cli: CommandLine) -> None:
    for plan_id in ("0", str(2**63), "9" * 5000, "one"):
        assert "PLAN_ID" in cli.refused("plan", "show", plan_id, status=2)
