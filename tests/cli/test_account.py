from tests.cli.conftest import CommandLine


def test_a_created_account_is_printed_with_its_id_and_listed(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "  Éxample Health ")
    assert list(account) == ["id", "name", "created_at", "state"]
    assert account["name"] == "Éxample Health"
    assert cli.json("account", "list") == [account]


def test_people_see_names_as_they_were_typed(cli: CommandLine) -> None:
    assert "[red]Health[/red] :smile:" in cli.text("account", "create", "--name", "[red]Health[/red] :smile:")
    assert "[red]Health[/red] :smile:" in cli.text("account", "list")


def test_a_list_in_a_file_is_not_cut_to_a_terminals_width(cli: CommandLine) -> None:
    cli.json("account", "create", "--name", "n" * 255)
    assert "n" * 255 in cli.text("account", "list")


def test_no_account_yet_is_told_with_the_way_to_make_one(cli: CommandLine) -> None:
    assert "frontdesk account create" in cli.text("account", "list")


def test_the_making_is_audited(cli: CommandLine) -> None:
    account = cli.json("account", "create", "--name", "Example Health")
    [entry] = cli.audit_trail()
    assert (entry["action"], entry["account_id"], entry["subject_id"]) == (
        "account.created",
        account["id"],
        account["id"],
    )
    assert entry["actor"].startswith("cli:")
    assert entry["request_id"].startswith("cli-")


def test_a_name_follows_the_rule_of_every_text(cli: CommandLine) -> None:
    for name, rule in (
        ("  ", "blank"),
        ("n" * 256, "at most 255"),
        ("a\x07b", "control"),
        ("\udcff", "control"),
    ):
        said = cli.refused("account", "create", "--name", name)
        assert said.startswith("Error: --name must ")
        assert rule in said
    assert cli.audit_trail() == []


def test_an_account_is_suspended_resumed_and_closed_and_each_is_audited_once(
    cli: CommandLine, account: str
) -> None:
    states = [
        cli.json("account", *command)["state"]
        for command in (
            *[("suspend", account)] * 2,
            ("resume", account),
            *[("close", account, "--confirm", "Example Health")] * 2,
        )
    ]
    assert states == ["suspended", "suspended", "active", "closed", "closed"]
    actions = [entry["action"] for entry in cli.audit_trail()]
    assert actions == ["account.created", "account.suspended", "account.resumed", "account.closed"]
    assert "closed for good" in cli.refused("account", "resume", account)


def test_closing_asks_for_the_name(cli: CommandLine, account: str) -> None:
    assert "must be the name" in cli.refused("account", "close", account, "--confirm", "example health")
    assert [each["state"] for each in cli.json("account", "list")] == ["active"]
