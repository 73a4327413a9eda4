"""`frontdesk deliverability`: whether, how fast and in whose name an account's batched invitations go out."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from frontdesk.access import get_account
from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.options import AccountId, Json, read_optional_text
from frontdesk.cli.output import MISUSED, fail, show_one
from frontdesk.db import Tx
from frontdesk.eligibility.values import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import get_deliverability, set_deliverability
from frontdesk.invitations.model import DeliverabilitySettings
from frontdesk.text import ENCODED_WORD, Rejected

LARGEST_NUMBER = 2**31 - 1  # what both databases' integers hold
URL_LENGTH = 2000

commands = typer.Typer(no_args_is_help=True, help="Batched invitations of an account: off until agreed.")


Enabled = Annotated[
    bool | None, typer.Option("--enabled/--disabled", help="Whether batched invitations go out.")
]
BatchSize = Annotated[int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Messages in one batch.")]
BatchInterval = Annotated[
    int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Seconds from one batch to the next.")
]
HourlyLimit = Annotated[
    int | None, typer.Option(min=1, max=LARGEST_NUMBER, help="Most messages in any 60 minutes.")
]
SenderName = Annotated[str | None, typer.Option(help="Name in From; empty text clears it.")]
SenderAddress = Annotated[str | None, typer.Option(help="Address in From; empty text clears it.")]
RegistrationUrl = Annotated[
    str | None, typer.Option(help="Where the invitation leads; empty text clears it.")
]


@commands.command("set")
def set_(  # noqa: PLR0913 - one parameter per option
    account: AccountId,
    *,
    enabled: Enabled = None,
    batch_size: BatchSize = None,
    batch_interval_seconds: BatchInterval = None,
    hourly_limit: HourlyLimit = None,
    sender_name: SenderName = None,
    sender_address: SenderAddress = None,
    registration_url: RegistrationUrl = None,
    as_json: Json = False,
) -> None:
    """Change an account's deliverability settings; what is not given stays.

    Example: frontdesk deliverability set --account 1 --enabled --batch-size 50 --hourly-limit 500
    """
    plain = {
        "enabled": enabled,
        "batch_size": batch_size,
        "batch_interval_seconds": batch_interval_seconds,
        "hourly_limit": hourly_limit,
    }
    texts = {
        "sender_name": sender_name,
        "sender_address": sender_address,
        "registration_url": registration_url,
    }
    show_one(_item(_changed(account, plain, texts)), as_json=as_json)


def _changed(
    account: int, plain: Mapping[str, object], texts: Mapping[str, str | None]
) -> DeliverabilitySettings:
    """The settings with those changed that were given (not None). Ends the command when none was."""
    given = {name: value for name, value in plain.items() if value is not None}
    if not given and all(text is None for text in texts.values()):
        fail(
            "Nothing to set: give at least one option (see frontdesk deliverability set --help).",
            status=MISUSED,
        )

    def work(deed: CommandContext) -> DeliverabilitySettings:
        changes = given | _texts(texts)
        get_account(deed.tx, account)
        settings = set_deliverability(deed.tx, account, **changes)
        deed.record("deliverability.changed", account_id=account, subject_id=account, fields=sorted(changes))
        return settings

    return change(work)


@commands.command("show")
def show(account: AccountId, as_json: Json = False) -> None:
    """Show an account's deliverability settings; the defaults where none were ever set.

    Example: frontdesk deliverability show --account 1
    """

    def question(tx: Tx) -> DeliverabilitySettings:
        get_account(tx, account)
        return get_deliverability(tx, account)

    show_one(_item(ask(question)), as_json=as_json)


def _texts(texts: Mapping[str, str | None]) -> dict[str, str | None]:
    """Those that were given, in their stored form; blank clears. Raises Invalid with every fault."""
    readers = {"sender_name": _name, "sender_address": _address, "registration_url": _url}
    read: dict[str, str | None] = {}
    faults: list[Fault] = []
    for field, text in texts.items():
        if text is not None:
            try:
                read[field] = readers[field](text)
            except Invalid as invalid:
                faults += invalid.faults
    if faults:
        raise Invalid(faults)
    return read


def _name(text: str) -> str | None:
    name = read_optional_text("sender_name", text)
    if name is not None and ENCODED_WORD in name:
        raise Invalid([Fault("sender_name", "not_allowed", f"must not contain {ENCODED_WORD}")])
    return name


def _address(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        return parse_email(text)
    except Rejected as rejected:
        raise Invalid([Fault("sender_address", rejected.code, rejected.message)]) from None


def _url(text: str) -> str | None:
    url = read_optional_text("registration_url", text, limit=URL_LENGTH)
    if url is None or _is_web_address(url):
        return url
    message = "must be an absolute http(s) address, such as https://join.example.com"
    raise Invalid([Fault("registration_url", "malformed_url", message)])


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # such as an unclosed [ around an IPv6 address
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and " " not in url


def _item(settings: DeliverabilitySettings) -> dict[str, Any]:
    return asdict(settings)
