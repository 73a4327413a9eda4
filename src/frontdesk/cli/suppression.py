"""`frontdesk suppression`: addresses that must not be mailed. They are masked unless `--full` is given."""

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup, change
from frontdesk.cli.invitations import masked
from frontdesk.cli.options import limit_option
from frontdesk.cli.output import Output, listing
from frontdesk.db import Tx
from frontdesk.eligibility.values import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import list_suppressions, suppress, unsuppress
from frontdesk.invitations.model import SuppressionReason
from frontdesk.text import Rejected

Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The address; - reads addresses from stdin, one a line.")
]

commands = CommandGroup()


@commands.standalone("add")
def add(address: Address) -> Output:
    """Suppress an address. Pending invitations to it are cancelled when their turn comes.

    Example: frontdesk suppression add robin@example.com
    """

    def add_one(context: CommandContext, each: str) -> bool:
        return suppress(context.tx, each, SuppressionReason.BY_HAND, now=context.now)

    return _change_each(address, add_one, action="suppression.added", done="put on the list")


@commands.standalone("remove")
def remove(address: Address) -> Output:
    """Allow an address to be mailed again. Invitations that were cancelled for it stay cancelled.

    Example: frontdesk suppression remove robin@example.com
    """

    def remove_one(context: CommandContext, each: str) -> bool:
        return unsuppress(context.tx, each)

    return _change_each(address, remove_one, action="suppression.removed", done="taken off the list")


@commands.query("list")
def list_(
    tx: Tx,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show whole addresses, not masked ones.")] = False,
    limit: Annotated[int, limit_option(1_000_000, "Most addresses to list, in their order.")] = 100,
) -> Output:
    """List the suppressed addresses, each with its reason.

    Example: frontdesk suppression list --full --limit 1000
    """
    name = "address" if full else "address_masked"
    items = [
        {
            name: each.address if full else masked(each.address),
            "reason": each.reason,
            "created_at": each.created_at,
        }
        for each in list_suppressions(tx, limit=limit)
    ]
    return listing(items, f"{name} reason created_at", nothing="No address is suppressed.")


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


def _change_each(
    argument: str, operation: Callable[[CommandContext, str], bool], *, action: str, done: str
) -> Output:
    addresses = _addresses(argument)

    def work(context: CommandContext) -> int:
        count = sum(operation(context, each) for each in addresses)
        if count:
            context.record(action, count=count)
        return count

    count = change(work)
    outcome = {"changed": count, "unchanged": len(addresses) - count}
    if len(addresses) != 1:
        return Output(
            outcome, [f"{count} of {len(addresses)} addresses were {done}; the others needed no change."]
        )
    return Output(
        outcome,
        [f"The address was {done}." if count else f"The address was not {done}: nothing had to change."],
    )
