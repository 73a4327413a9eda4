"""Commands as functions that return what they print. Each gets --json, and the transaction that it asks for."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import typer

from frontdesk.cli.installation import ask, change
from frontdesk.cli.options import Json
from frontdesk.cli.output import MISUSED, Output, fail

Function = Callable[..., Output]


class CommandGroup(typer.Typer):
    """The commands of one subject; `COMMANDS` in app.py has its help. An account that a query or a change names has to exist."""

    def __init__(self) -> None:
        super().__init__(no_args_is_help=True)
        self.callback()(lambda: None)  # a group also of a single command

    def query(self, name: str) -> Callable[[Function], None]:
        """Add a command that reads. Its first parameter is the transaction."""
        return lambda function: self._add(name, printing(function, ask))

    def change(self, name: str, *, wants_option: bool = False) -> Callable[[Function], None]:
        """Add a command that writes. Its first parameter is a CommandContext; a lost race calls it again.

        With `wants_option`, a call without any of the options that may be left out is misuse.
        """
        return lambda function: self._add(name, printing(function, change, wants_option=wants_option))

    def standalone(self, name: str) -> Callable[[Function], None]:
        """Add a command that opens what it needs by itself."""
        return lambda function: self._add(name, printing(function))

    def _add(self, name: str, command: Callable[..., None]) -> None:
        self.command(name)(command)


def printing(
    function: Function, transaction: Callable[..., Output] | None = None, *, wants_option: bool = False
) -> Callable[..., None]:
    """A command that prints what `function` returns; with `transaction`, `ask` or `change`, it is called in there."""
    parameters = list(signature(function, eval_str=True).parameters.values())
    if transaction is not None:
        del parameters[0]

    def command(*, call: typer.Context, as_json: bool, **options: Any) -> None:
        if wants_option and all(
            options[each.name] == each.default for each in parameters if each.default is not Parameter.empty
        ):
            usage = f"{call.command_path} --help"
            fail(f"Nothing to set: give at least one option (see {usage}).", status=MISUSED)
        if transaction is None:
            output = function(**options)
        else:
            output = transaction(lambda first: function(first, **options), account=options.get("account"))
        output.print(as_json=as_json)

    declared = [
        Parameter("call", Parameter.KEYWORD_ONLY, annotation=typer.Context),
        *(each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters),
        Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=Json),
    ]
    command.__doc__ = function.__doc__
    command.__annotations__ = {each.name: each.annotation for each in declared}
    vars(command)["__signature__"] = signature(command).replace(parameters=declared)
    return command
