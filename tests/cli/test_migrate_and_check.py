from typing import Any

from frontdesk.db.checks import HEAD
from tests.cli.conftest import CommandLine
from tests.postgres import SERVICE

GOOD = {"ok": True, "problems": [], "warnings": [], "database_role": None}


def without_notes(cli: CommandLine, **settings: str) -> dict[str, Any]:
    told = cli.json("check", **settings)
    return {name: told[name] for name in told if name != "notes"}


def test_migrate_makes_the_folder_and_the_tables_and_tells_what_ran(bare_cli: CommandLine) -> None:
    first = bare_cli.json("migrate")
    assert first["revision"] == HEAD
    assert first["applied"][-1] == HEAD
    assert bare_cli.json("account", "list") == []
    [entry] = bare_cli.audit_trail()
    assert (entry["action"], entry["detail"]) == ("database.migrated", {"revisions": first["applied"]})


def test_migrating_again_does_nothing(cli: CommandLine) -> None:
    assert cli.json("migrate") == {"applied": [], "revision": HEAD, "notices": []}
    assert "Nothing to do" in cli.text("migrate")
    assert cli.audit_trail() == []


def test_people_are_told_what_ran(bare_cli: CommandLine) -> None:
    assert f"at revision {HEAD}" in bare_cli.text("migrate")


def test_a_good_installation_passes_the_check(cli: CommandLine) -> None:
    is_sqlite = cli.database_url.startswith("sqlite")
    role = None if is_sqlite else {"name": SERVICE, "owns_tables": False}
    assert without_notes(cli) == GOOD | {"database_role": role}
    assert "All is well" in cli.text("check")
    assert (f"as the role {SERVICE}, which owns none" in cli.text("check")) is not is_sqlite


def test_a_check_tells_programs_of_every_setting_that_cant_be_used(bare_cli: CommandLine) -> None:
    result = bare_cli.run("check", "--json", base_url="nowhere", environment="lab")
    assert result.exit_code == 1
    assert "FRONTDESK_BASE_URL" in result.stdout
    assert "FRONTDESK_ENVIRONMENT" in result.stdout


def test_an_installation_for_unrelated_customers_is_checked_against_its_own_setting(
    bare_cli: CommandLine,
) -> None:
    bare_cli.json("migrate", uniqueness="account")
    assert without_notes(bare_cli, uniqueness="account") == GOOD
    assert "FRONTDESK_UNIQUENESS=account" in bare_cli.run("check").stdout
    assert "FRONTDESK_UNIQUENESS=account" in bare_cli.refused("serve", "--port", "20003")
    bare_cli.json("migrate")  # with the default setting: what is written down stays
    assert without_notes(bare_cli, uniqueness="account") == GOOD


def test_sqlite_has_no_service_role(bare_cli: CommandLine) -> None:
    assert "SQLite has no roles" in bare_cli.refused("migrate", "--service-role", "anybody")


def test_a_new_installation_is_told_what_its_uniqueness_tells_customers(bare_cli: CommandLine) -> None:
    [notice] = bare_cli.json("migrate")["notices"]
    assert "a refusal shows a client that another account uses the value" in notice
    assert bare_cli.json("migrate")["notices"] == []
    assert bare_cli.json("check")["notes"] == [notice]
    assert notice in bare_cli.text("check").replace("\n", " ")


def test_unrelated_customers_learn_nothing_and_the_installation_is_told_so(bare_cli: CommandLine) -> None:
    [notice] = bare_cli.json("migrate", uniqueness="account")["notices"]
    assert "answers reveal no other account's" in notice
    assert bare_cli.json("check", uniqueness="account")["notes"] == [notice]
