"""`frontdesk deliverability`: whether, how fast and from which sender an account's batched invitations go out."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup
from frontdesk.cli.options import TEXT_LENGTH, AccountId
from frontdesk.cli.output import Output, describe
from frontdesk.db import Tx
from frontdesk.eligibility.fields import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import get_deliverability, set_deliverability
from frontdesk.text import ENCODED_WORD, Rejected, parse_text

LARGEST_NUMBER = 2**31 - 1  # what both databases' integers hold
URL_LENGTH = 2000

commands = CommandGroup()


def _number(sentence: str) -> Any:
    return typer.Option(min=1, max=LARGEST_NUMBER, help=sentence)


@commands.change("set", wants_option=True)
def set_(  # noqa: PLR0913 - one parameter per option
    context: CommandContext,
    account: AccountId,
    *,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Whether batched invitations go out.")
    ] = None,
    batch_size: Annotated[int | None, _number("Messages in one batch.")] = None,
    batch_interval_seconds: Annotated[int | None, _number("Seconds from one batch to the next.")] = None,
    hourly_limit: Annotated[int | None, _number("Most messages in any 60 minutes.")] = None,
    sender_name: Annotated[str | None, typer.Option(help="Name in From; empty text clears it.")] = None,
    sender_address: Annotated[str | None, typer.Option(help="Address in From; empty text clears it.")] = None,
    registration_url: Annotated[
        str | None, typer.Option(help="Where the invitation leads; empty text clears it.")
    ] = None,
) -> Output:
    """Change an account's deliverability settings. An option that is left out keeps its value.

    Example: frontdesk deliverability set --account 1 --enabled --batch-size 50 --hourly-limit 500
    """
    options = {
        "enabled": enabled,
        "batch_size": batch_size,
        "batch_interval_seconds": batch_interval_seconds,
        "hourly_limit": hourly_limit,
        "sender_name": sender_name,
        "sender_address": sender_address,
        "registration_url": registration_url,
    }
    changes = _checked({name: value for name, value in options.items() if value is not None})
    changed = set_deliverability(context.tx, account, **changes)
    context.record("deliverability.changed", account_id=account, subject_id=account, fields=sorted(changes))
    return describe(asdict(changed))


@commands.query("show")
def show(tx: Tx, account: AccountId) -> Output:
    """Show an account's deliverability settings; the defaults where none were ever set.

    Example: frontdesk deliverability show --account 1
    """
    return describe(asdict(get_deliverability(tx, account)))


def _checked(given: Mapping[str, object]) -> dict[str, object]:
    """The values with each text in its stored form; blank clears it. Raises Invalid with every fault."""
    parsers = {"sender_name": _name, "sender_address": _address, "registration_url": _url}
    checked, faults = dict(given), []
    for field, value in given.items():
        if isinstance(value, str):
            try:
                checked[field] = parsers[field](value)
            except Rejected as rejected:
                faults.append(Fault(field, rejected.code, rejected.message))
    if faults:
        raise Invalid(faults)
    return checked


def _name(text: str) -> str | None:
    name = parse_text(text, limit=TEXT_LENGTH)
    if ENCODED_WORD in name:
        raise Rejected("not_allowed", f"must not contain {ENCODED_WORD}")
    return name or None


def _address(text: str) -> str | None:
    return parse_email(text) if text.strip() else None


def _url(text: str) -> str | None:
    url = parse_text(text, limit=URL_LENGTH)
    try:
        parts = urlsplit(url)
        is_web_address = (
            parts.scheme == "https" and bool(parts.hostname) and " " not in url and "@" not in parts.netloc
        )
    except ValueError:  # such as an unclosed [ around an IPv6 address
        is_web_address = False
    if url and not is_web_address:
        message = "must be an absolute https address without a user, such as https://join.example.com"
        raise Rejected("malformed_url", message)
    return url or None
