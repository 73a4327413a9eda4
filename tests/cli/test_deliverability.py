import pytest

from tests.cli.conftest import CommandLine


def test_batched_invitations_are_off_until_agreed(cli: CommandLine, account: str) -> None:
    assert cli.json("deliverability", "show", "--account", account) == {
        "account_id": int(account),
        "enabled": False,
        "batch_size": 100,
        "batch_interval_seconds": 60,
        "hourly_limit": 1000,
        "sender_name": None,
        "sender_address": None,
        "registration_url": None,
    }


def test_setting_changes_what_is_given_and_keeps_the_rest(cli: CommandLine, account: str) -> None:
    cli.json("deliverability", "set", "--account", account, "--enabled", "--batch-size", "50")
    changed = cli.json(
        *("deliverability", "set", "--account", account, "--hourly-limit", "500"),
        *("--batch-interval-seconds", "30"),
        *("--sender-name", "Example Health", "--sender-address", "care@example.com"),
        *("--registration-url", "https://join.example.com/start"),
    )
    assert (changed["enabled"], changed["batch_size"], changed["hourly_limit"]) == (True, 50, 500)
    assert changed["sender_address"] == "care@example.com"
    assert cli.json("deliverability", "show", "--account", account) == changed
    assert "https://join.example.com/start" in cli.text("deliverability", "show", "--account", account)
    cleared = cli.json("deliverability", "set", "--account", account, "--sender-name", "", "--disabled")
    assert (cleared["enabled"], cleared["sender_name"]) == (False, None)
    [*_, entry] = cli.audit_trail()
    assert (entry["action"], entry["detail"]) == (
        "deliverability.changed",
        {"fields": ["enabled", "sender_name"]},
    )


def test_all_faults_are_reported_at_once(cli: CommandLine, account: str) -> None:
    said = cli.refused(
        *("deliverability", "set", "--account", account, "--sender-name", "a\nb"),
        *("--sender-address", "nobody", "--registration-url", "javascript:alert(1)"),
    )
    assert "--sender-name must not contain control characters." in said
    assert "--sender-address must be an e-mail address" in said
    assert "--registration-url must be an absolute https address without a user" in said


@pytest.mark.parametrize("number", ["0", "-1", str(2**31), "many"])
def test_a_number_out_of_range_is_misuse(cli: CommandLine, account: str, number: str) -> None:
    assert "--batch-size" in cli.refused(
        "deliverability", "set", "--account", account, "--batch-size", number, status=2
    )


def test_a_senders_name_can_not_hold_an_encoded_word(cli: CommandLine, account: str) -> None:
    hidden = "=?utf-8?q?Care=0ABcc=3A=20others=40example.com?="
    said = cli.refused("deliverability", "set", "--account", account, "--sender-name", hidden)
    assert "--sender-name must not contain =?." in said


URLS = [
    *("https://", "https://[::1", "join.example.com", "https://a b.example.com", "http://join.example.com"),
    *("https://robin@join.example.com", "https://robin:secret@join.example.com/x"),
]


@pytest.mark.parametrize("url", URLS)
def test_a_registration_link_is_https_without_a_user(cli: CommandLine, account: str, url: str) -> None:
    said = cli.refused("deliverability", "set", "--account", account, "--registration-url", url)
    assert "--registration-url must be an absolute https address without a user" in said
    assert "secret" not in said
