"""The command line put together: every group and command under `frontdesk`."""

import importlib
import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from frontdesk import __version__
from frontdesk.cli import (
    account,
    audit,
    bounces,
    client,
    deliverability,
    duty,
    file,
    invitations,
    mailbox,
    member,
    plan,
    provider_group,
    queue,
    suppression,
    template,
)
from frontdesk.cli.check import check
from frontdesk.cli.migrate import migrate
from frontdesk.cli.output import errors_as_sentences
from frontdesk.cli.serve import serve
from frontdesk.cli.worker import worker


class Commands(TyperGroup):
    """Runs every command. A refusal of the product ends it with a sentence and a status, never with a traceback."""

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        with errors_as_sentences():
            return super().invoke(*arguments, **options)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they may hold health information
)
GROUPS = {
    "account": account,
    "provider-group": provider_group,
    "client": client,
    "plan": plan,
    "deliverability": deliverability,
    "duty": duty,
    "queue": queue,
    "member": member,
    "file": file,
    "invitations": invitations,
    "template": template,
    "suppression": suppression,
    "bounces": bounces,
    "mailbox": mailbox,
    "audit": audit,
}
# Loaded by name: no module of the product imports the sandbox package.
sandbox = importlib.import_module("frontdesk.sandbox")
for command in (serve, worker, migrate, sandbox.demo, check, sandbox.sample):
    app.command()(command)
queue.commands.command()(sandbox.simulate)
for name, module in GROUPS.items():
    app.add_typer(module.commands, name=name)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"frontdesk {__version__}")
        raise typer.Exit


@app.callback()
def frontdesk(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """The front desk of a virtual-care platform: plans, queues, eligible members.

    Settings are FRONTDESK_* environment variables; `frontdesk check` says whether they can be used.

    Example: frontdesk demo --serve
    """


def main() -> None:
    """Run the command line. A terminal that lacks a letter shows its code instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="frontdesk")
