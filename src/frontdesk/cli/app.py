"""The command line put together: every group and command under `frontdesk`, loaded when it is
called.

Importing them all takes two seconds, which every call and every process that `serve` starts would
pay.
"""

import importlib
import io
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from frontdesk import HAS_SANDBOX, SANDBOX_WHEEL, __version__

# Each command, or group of commands, with its help in the list.
COMMANDS: Mapping[str, str] = {
    "serve": "Serve the interface until Ctrl-C or SIGTERM; requests under way are finished first.",
    "worker": (
        "Deliver invitations and load eligibility files until Ctrl-C or SIGTERM; what has begun "
        "is finished first."
    ),
    "migrate": "Create or update the database's tables; safe to run again.",
    "demo": (
        "Make a demo account with plans, doctors and patients, and print how to try it; "
        "safe to run again."
    ),
    "check": (
        "Check settings, database, files, relay, clock, disk; show each problem with its remedy. "
        "Status 1 if there is one."
    ),
    "sample": (
        "Write a file of invented members: families, twins, names with accents, zip codes with "
        "leading zeros."
    ),
    "account": "Accounts: the customers that own plans and members.",
    "requests": "Which API clients take the service's time.",
    "provider-group": "Provider groups: the doctors that serve the plans.",
    "client": "API clients of accounts and of operators, and their secrets.",
    "user": "Users of the console: invite, roles, reset, end.",
    "plan": "Plans of the accounts.",
    "deliverability": "Batched invitations of an account: off until agreed.",
    "duty": "Doctors on duty, by provider group.",
    "queue": "Patients waiting in the plans' encounter queues.",
    "member": "Eligible members.",
    "file": "Eligibility files: load, show, approve, undo.",
    "invitations": "Invitations of new members.",
    "template": "The templates of invitations.",
    "suppression": "Addresses that must not be mailed.",
    "bounces": "Bounces and complaints that came back.",
    "mailbox": "Mails that the sandbox caught.",
    "audit": "The audit trail: who did what.",
    "retention": "Apply retention now: erase or delete old data. Workers do it every night.",
}
# The modules of those that have none of their own name.
MODULES: Mapping[str, str] = {
    "template": "deliverability",
    **dict.fromkeys(("account", "client"), "access"),
    **dict.fromkeys(("plan", "provider-group", "duty"), "plans"),
    **dict.fromkeys(("suppression", "bounces", "mailbox"), "invitations"),
    **dict.fromkeys(("check", "migrate", "retention"), "installation"),
}
SANDBOX_COMMANDS = frozenset({"demo", "sample", "simulate"})


class Commands(TyperGroup):
    """Runs every command. A refusal of the product ends it with a sentence and a status, never with
    a traceback.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for (
            name,
            sentence,
        ) in COMMANDS.items():  # good for the list of commands and for suggestions only
            self.add_command(TyperCommand(name, help=sentence))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.add_command(load(args[0]), args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, *arguments: Any, **options: Any) -> Any:
        from frontdesk.cli.output import fail, sentence
        from frontdesk.errors import FrontdeskError

        try:
            return super().invoke(*arguments, **options)
        except FrontdeskError as error:
            fail(sentence(error))


def load(name: str) -> Any:
    """The command or group as typer runs it: what has its name in its module, or the `commands` of
    the module.
    """
    if name in SANDBOX_COMMANDS and not HAS_SANDBOX:
        return _refused(name)
    attribute = name.replace("-", "_")
    module = importlib.import_module(f"frontdesk.cli.{MODULES.get(name, attribute)}")
    found = getattr(module, "commands", None) or getattr(module, attribute)
    if not isinstance(found, typer.Typer):
        return _single(name, found)
    group: Any = typer.main.get_command(found)
    group.name = name
    group.help = COMMANDS[name]
    if name == "queue":
        group.add_command(load("simulate"))
    return group


def _single(name: str, function: Callable[..., None]) -> Any:
    single = typer.Typer(add_completion=False)
    single.command(name)(function)
    return typer.main.get_command(single)


def _refused(name: str) -> TyperCommand:
    """In place of a command of the sandbox that is not installed: says what to install, whatever
    the options are.
    """

    def refuse() -> None:
        from frontdesk.cli.output import fail

        fail(
            f"The command {name} is a part of the sandbox, which is not installed. "
            f"Install it beside the program: pip install --no-deps {SANDBOX_WHEEL}"
        )

    takes_anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return TyperCommand(
        name,
        callback=refuse,
        help="Not installed: a part of the sandbox.",
        context_settings=takes_anything,
        add_help_option=False,
    )


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
        typer.Option(
            "--version", help="Print the version and stop.", callback=_show_version, is_eager=True
        ),
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
