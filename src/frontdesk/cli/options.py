"""Options that several commands share, and how typed text is read."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from frontdesk import codes
from frontdesk.errors import Fault, Invalid
from frontdesk.reach import EVERY, Reach
from frontdesk.text import Rejected, parse_text

LARGEST_ID = 2**63 - 1  # what both databases can hold
TEXT_LENGTH = 255


def checked_id(value: int | None) -> int | None:
    """An identifier within the range of both databases. A range of typer would fill each help with
    19 digits.
    """
    if value is not None and not 1 <= value <= LARGEST_ID:
        raise typer.BadParameter(f"must be a whole number from 1 to {LARGEST_ID}")
    return value


def option(sentence: str, *names: str, **settings: Any) -> Any:
    """An option of these names, else of its parameter's, with its help, which every option has."""
    return typer.Option(*names, help=sentence, **settings)


def id_option(name: str, sentence: str) -> Any:
    return option(sentence, name, metavar="ID", callback=checked_id)


def argument(noun: str, sentence: str, **settings: Any) -> Any:
    return typer.Argument(metavar=noun, help=sentence, **settings)


def id_argument(noun: str, sentence: str) -> Any:
    return argument(noun, sentence, callback=checked_id)


def start_of(text: str) -> datetime:
    """The first moment of a day (2026-03-15) or of a second (2026-03-15T12:00:00Z), in UTC."""
    return _span(text)[0]


def end_of(text: str) -> datetime:
    """The last moment of the day or of the second: answers give whole seconds, and a change in one
    was known then.
    """
    return _span(text)[1]


def _span(text: str) -> tuple[datetime, datetime]:
    for form, length in (
        ("%Y-%m-%d", timedelta(days=1)),
        ("%Y-%m-%dT%H:%M:%SZ", timedelta(seconds=1)),
    ):
        try:
            start = datetime.strptime(text, form).replace(tzinfo=UTC)
            return start, start + length - timedelta(microseconds=1)
        except (ValueError, OverflowError):
            continue
    raise typer.BadParameter(
        "must be a date or a time in UTC, such as 2026-03-15 or 2026-03-15T12:00:00Z"
    )


WHO_NAMES = "its external_id, member_id, e-mail address or id, tried in this order"
Json = Annotated[bool, option("Print JSON, for programs, instead of text for people.", "--json")]
AccountId = Annotated[int, id_option("--account", "Id of the account (see `account list`).")]
OnlyAccount = Annotated[int | None, id_option("--account", "Only what belongs to this account.")]
PlanId = Annotated[int, id_option("--plan", "Id of the plan (see `plan list`).")]


def read_text(field: str, value: str, *, limit: int = TEXT_LENGTH) -> str:
    """The text in its stored form, 1 to `limit` characters. Raises Invalid naming the field."""
    try:
        text = parse_text(value, limit=limit)
    except Rejected as rejected:
        raise Invalid([Fault(field, rejected.code, rejected.message)]) from None
    if not text:
        raise Invalid([Fault(field, codes.faults.REQUIRED, "must not be blank")])
    return text


def reach_of(account: int | None) -> Reach:
    """What a command reaches: what belongs to the account of `--account`, else everything."""
    return EVERY if account is None else Reach.of(account)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}
