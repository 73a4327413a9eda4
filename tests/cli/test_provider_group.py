from tests.cli.conftest import CommandLine


def test_a_created_group_is_printed_in_the_words_of_the_interface(cli: CommandLine) -> None:
    group = cli.json("provider-group", "create", "--name", "Doctors", "--external-id", "docs-1")
    assert list(group) == ["id", "type", "name", "external_id", "created_at"]
    assert (group["type"], group["external_id"]) == ("provider_groups", "docs-1")
    assert cli.json("provider-group", "list") == [group]
    assert "docs-1" in cli.text("provider-group", "list")


def test_a_group_without_an_external_id_has_null(cli: CommandLine) -> None:
    assert cli.json("provider-group", "create", "--name", "Doctors")["external_id"] is None


def test_an_external_id_that_is_taken_is_refused_without_a_trace(cli: CommandLine) -> None:
    cli.json("provider-group", "create", "--name", "Doctors", "--external-id", "docs-1")
    said = cli.refused("provider-group", "create", "--name", "Others", "--external-id", "docs-1")
    assert said == "Error: --external-id is already in use.\n"
    assert [entry["action"] for entry in cli.audit_trail()] == ["provider_group.created"]
