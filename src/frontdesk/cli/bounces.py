"""`frontdesk bounces`: reads what came back to the installation's mail address, from a mailbox file or a pipe."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from frontdesk.cli.command_group import CommandContext, CommandGroup, change_in
from frontdesk.cli.installation import migrated_database
from frontdesk.cli.output import Output, fail, settings
from frontdesk.invitations.bounces import parse_report, split_mailbox
from frontdesk.invitations.model import ReportEffect
from frontdesk.invitations.reports import receive_report

MESSAGES_PER_TRANSACTION = 50

commands = CommandGroup()


@commands.standalone("read")
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
    with _opened(path) as stream, migrated_database(settings()) as db:
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


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        yield sys.stdin.buffer
        return
    try:
        with Path(path).open("rb") as stream:
            yield stream
    except OSError as error:
        fail(f"The mailbox can't be read: {error.strerror}.")
