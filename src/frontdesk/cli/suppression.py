"""`frontdesk suppression`: addresses that must not be mailed. They are masked unless `--full` is given."""

import sys
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, ask, change
from frontdesk.cli.invitations import masked
from frontdesk.cli.options import Json
from frontdesk.cli.output import print_json, say, show_list
from frontdesk.clock import wire_time
from frontdesk.eligibility.values import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import list_suppressions, suppress, unsuppress
from frontdesk.invitations.model import Suppression, SuppressionReason
from frontdesk.text import Rejected

LARGEST_LIMIT = 1_000_000

Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The address; - reads addresses from stdin, one a line.")
]

commands = typer.Typer(no_args_is_help=True, help="Addresses that must not be mailed.")


@commands.command("add")
def add(address: Address, as_json: Json = False) -> None:
    """Suppress an address. Pending invitations to it are cancelled when their turn comes.

    Example: frontdesk suppression add robin@example.com
    """
    addresses = _addresses(address)

    def work(context: CommandContext) -> int:
        reason = SuppressionReason.BY_HAND
        added = sum(suppress(context.tx, each, reason, now=context.now) for each in addresses)
        if added:
            context.record("suppression.added", count=added)
        return added

    _show_result(change(work), of=len(addresses), done="put on the list", as_json=as_json)


@commands.command("remove")
def remove(address: Address, as_json: Json = False) -> None:
    """Allow an address to be mailed again. Invitations that were cancelled for it stay cancelled.

    Example: frontdesk suppression remove robin@example.com
    """
    addresses = _addresses(address)

    def work(context: CommandContext) -> int:
        removed = sum(unsuppress(context.tx, each) for each in addresses)
        if removed:
            context.record("suppression.removed", count=removed)
        return removed

    _show_result(change(work), of=len(addresses), done="taken off the list", as_json=as_json)


@commands.command("list")
def list_(
    *,
    full: Annotated[bool, typer.Option("--full", help="Show whole addresses, not masked ones.")] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST_LIMIT, help="Most addresses to list, in their order.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """List the suppressed addresses, each with its reason.

    Example: frontdesk suppression list --full --limit 1000
    """
    found = ask(lambda tx: list_suppressions(tx, limit=limit))
    show_list(
        [_item(each, full=full) for each in found],
        columns=("address" if full else "address_masked", "reason", "created_at"),
        as_json=as_json,
        nothing="No address is suppressed.",
    )


def _item(suppression: Suppression, *, full: bool) -> dict[str, Any]:
    address = {"address": suppression.address} if full else {"address_masked": masked(suppression.address)}
    return address | {"reason": suppression.reason, "created_at": wire_time(suppression.created_at)}


def _addresses(argument: str) -> list[str]:
    """The addresses of the argument or of stdin. Raises Invalid, with the number of the line that is no address."""
    if argument != "-":
        return [_address(argument, "must be an e-mail address")]
    lines = enumerate(sys.stdin.read().splitlines(), 1)
    return [_address(line, f"must be an e-mail address in line {n}") for n, line in lines if line.strip()]


def _address(text: str, rule: str) -> str:
    try:
        return parse_email(text)
    except Rejected as rejected:
        raise Invalid([Fault("ADDRESS", rejected.code, rule)]) from None


def _show_result(count: int, *, of: int, done: str, as_json: bool) -> None:
    if as_json:
        print_json({"changed": count, "unchanged": of - count})
    elif of == 1:
        say(f"The address was {'' if count else 'not '}{done}{'' if count else ': nothing had to change'}.")
    else:
        say(f"{count} of {of} addresses were {done}; the others needed no change.")
