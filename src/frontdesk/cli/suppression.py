"""`frontdesk suppression` and `frontdesk bounces`: addresses that must not be mailed, and the reports that tell of them.

`suppression` masks them unless `--full` is given. `bounces` reads what came back to the installation's mail address.
"""

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup, change, change_in, migrated_database
from frontdesk.cli.invitations import masked
from frontdesk.cli.options import limit_option
from frontdesk.cli.output import Output, listing, opened_file, picked, settings
from frontdesk.db import Tx
from frontdesk.eligibility.fields import parse_email
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations import list_suppressions, suppress, unsuppress
from frontdesk.invitations.model import ReportEffect, SuppressionReason
from frontdesk.invitations.reports import parse_report, receive_report, split_mailbox
from frontdesk.text import Rejected

MESSAGES_PER_TRANSACTION = 50

Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The address; - reads addresses from stdin, one a line.")
]

suppression = CommandGroup()
bounces = CommandGroup()


@suppression.standalone("add")
def add(address: Address) -> Output:
    """Suppress an address. Pending invitations to it are cancelled when their turn comes.

    Example: frontdesk suppression add robin@example.com
    """

    def add_one(context: CommandContext, each: str) -> bool:
        return suppress(context.tx, each, SuppressionReason.BY_HAND, now=context.now)

    return _change_each(address, add_one, action="suppression.added", done="put on the list")


@suppression.standalone("remove")
def remove(address: Address) -> Output:
    """Allow an address to be mailed again. Invitations that were cancelled for it stay cancelled.

    Example: frontdesk suppression remove robin@example.com
    """

    def remove_one(context: CommandContext, each: str) -> bool:
        return unsuppress(context.tx, each)

    return _change_each(address, remove_one, action="suppression.removed", done="taken off the list")


@suppression.query("list")
def list_(
    tx: Tx,
    *,
    full: Annotated[bool, typer.Option("--full", help="Show whole addresses, not masked ones.")] = False,
    limit: Annotated[int, limit_option(1_000_000, "Most addresses to list, in their order.")] = 100,
) -> Output:
    """List the suppressed addresses, each with its reason.

    Example: frontdesk suppression list --full --limit 1000
    """
    name, shown = ("address", str) if full else ("address_masked", masked)
    found = list_suppressions(tx, limit=limit)
    items = [{name: shown(each.address)} | picked(each, "reason created_at") for each in found]
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
    sentence = f"The address was {done}." if count else f"The address was not {done}: nothing had to change."
    if len(addresses) != 1:
        sentence = f"{count} of {len(addresses)} addresses were {done}; the others needed no change."
    return Output(outcome, [sentence])


@bounces.standalone("read")
def read(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="An mbox file or a single message; - reads stdin.")
    ],
) -> Output:
    """Read delivery reports: settle unclear deliveries, suppress addresses that don't exist or complain.

    Reading the same file again changes nothing. Mail that is no report of ours is skipped.

    Example: frontdesk bounces read /var/mail/invitations
    """
    found: Counter[str] = Counter()
    with (
        opened_file(path, "rb", "The mailbox can't be read: {}.") as stream,
        migrated_database(settings()) as db,
    ):
        messages = split_mailbox(stream)
        while batch := list(islice(messages, MESSAGES_PER_TRANSACTION)):
            found.update(change_in(db, partial(_receive, messages=batch)))
    counts = {"messages": found.total()} | {
        effect: found[effect] for effect in (*ReportEffect, "not_a_report")
    }
    sentence = (
        "{messages} messages: {applied} reports applied, {known} known already, {no_news} of delays, "
        "{unknown} about mail of others, {not_a_report} no delivery reports."
    )
    return Output(counts, [sentence.format_map(counts)])


def _receive(context: CommandContext, messages: Sequence[bytes]) -> list[str]:
    effects = [
        "not_a_report" if report is None else receive_report(context.tx, report, now=context.now).value
        for report in map(parse_report, messages)
    ]
    applied = effects.count(ReportEffect.APPLIED)
    if applied:
        context.record("bounces.read", count=applied)
    return effects
