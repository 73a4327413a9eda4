"""`frontdesk file settings`: how the files of an account are treated."""

from dataclasses import asdict
from typing import Annotated

import typer

from frontdesk.cli.command_group import CommandContext
from frontdesk.cli.options import AccountId
from frontdesk.cli.output import Output, describe
from frontdesk.files import get_file_settings, set_file_settings


def show_or_change_settings(
    context: CommandContext,
    account: AccountId,
    *,
    reopen_absent: Annotated[
        bool | None,
        typer.Option(
            "--reopen-absent/--no-reopen-absent",
            help="Whether a member that a full file ended by omitting it comes back with a later one. On by default.",
        ),
    ] = None,
    second_approver: Annotated[
        bool | None,
        typer.Option(
            "--second-approver/--no-second-approver",
            help="Whether a held file has to be approved by another client or person than the uploader. Off by default.",
        ),
    ] = None,
) -> Output:
    """Show how the files of an account are treated, or change it. An option that is left out keeps its value.

    Example: frontdesk file settings --account 1 --no-reopen-absent
    """
    given = {"reopen_absent": reopen_absent, "second_approver": second_approver}
    if changes := {name: value for name, value in given.items() if value is not None}:
        set_file_settings(context.tx, account, **changes)
        context.record("file_settings.changed", account_id=account, subject_id=account, **changes)
    return describe(asdict(get_file_settings(context.tx, account)))
