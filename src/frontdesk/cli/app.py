"""The command line put together: every group and command under `frontdesk`, loaded when it is called.

Importing them all takes two seconds, which every call and every process that `serve` starts would pay.
"""

import importlib
import io
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from frontdesk import __version__

# Where each command is, and its help in the list. The sandbox is loaded by name: no module of the product imports it.
COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "serve": (
            "frontdesk.cli.serve:serve",
            "Serve the interface until Ctrl-C or SIGTERM; requests under way are finished first.",
        ),
        "worker": (
            "frontdesk.cli.worker:worker",
            "Deliver invitations and load eligibility files until Ctrl-C or SIGTERM; what has begun is finished first.",
        ),
        "migrate": (
            "frontdesk.cli.migrate:migrate",
            "Create or update the database's tables; safe to run again.",
        ),
        "demo": (
            "frontdesk.sandbox.demo:demo",
            "Make a demo account with plans, doctors and patients, and print how to try it; safe to run again.",
        ),
        "check": (
            "frontdesk.cli.check:check",
            "Check configuration, database and migrations; show every problem with its remedy. Status 1 if there is one.",
        ),
        "sample": (
            "frontdesk.sandbox.sample:sample",
            "Write a file of invented members: families, twins, names with accents, zip codes with leading zeros.",
        ),
        "account": ("frontdesk.cli.account:commands", "Accounts: the customers that own plans and members."),
        "provider-group": (
            "frontdesk.cli.provider_group:commands",
            "Provider groups: the doctors that serve the plans.",
        ),
        "client": ("frontdesk.cli.client:commands", "API clients of an account and their secrets."),
        "plan": ("frontdesk.cli.plan:commands", "Plans of the accounts."),
        "deliverability": (
            "frontdesk.cli.deliverability:commands",
            "Batched invitations of an account: off until agreed.",
        ),
        "duty": ("frontdesk.cli.duty:commands", "Doctors on duty, by provider group."),
        "queue": ("frontdesk.cli.queue:commands", "Patients waiting in the plans' encounter queues."),
        "member": ("frontdesk.cli.member:commands", "Eligible members."),
        "file": ("frontdesk.cli.file:commands", "Eligibility files: load, show, approve, undo."),
        "invitations": ("frontdesk.cli.invitations:commands", "Invitations of new members."),
        "template": ("frontdesk.cli.template:commands", "The templates of invitations."),
        "suppression": ("frontdesk.cli.suppression:commands", "Addresses that must not be mailed."),
        "bounces": ("frontdesk.cli.bounces:commands", "Bounces and complaints that came back."),
        "mailbox": ("frontdesk.cli.mailbox:commands", "Mails that the sandbox caught."),
        "audit": ("frontdesk.cli.audit:commands", "The audit trail: who did what."),
    }
)
# Commands that stand in another package than their group.
GUESTS = MappingProxyType({"queue": "frontdesk.sandbox.simulate:simulate"})


class Commands(TyperGroup):
    """Runs every command. A refusal of the product ends it with a sentence and a status, never with a traceback."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, sentence) in COMMANDS.items():  # good for the list of commands and for suggestions only
            self.add_command(TyperCommand(name, help=sentence))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.add_command(load(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        from frontdesk.cli.output import errors_as_sentences

        with errors_as_sentences():
            return super().invoke(*arguments, **options)


def load(name: str) -> Any:
    """The command or group of this name, as typer runs it."""
    found = _import(COMMANDS[name][0])
    if not isinstance(found, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(found)
        return typer.main.get_command(single)
    group = typer.main.get_command(found)
    if name in GUESTS and isinstance(group, TyperGroup):
        guest = typer.Typer(add_completion=False)
        guest.command()(_import(GUESTS[name]))
        group.add_command(typer.main.get_command(guest))
    group.name = name
    return group


def _import(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they may hold health information
)


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
