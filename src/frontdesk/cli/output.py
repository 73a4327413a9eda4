"""The output of every command: text for people, JSON for programs, errors as sentences, exit
statuses.

Status 0: done; 1: not done, with the reason and the remedy on stderr; 2: wrong usage.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal, NoReturn, cast

import typer
from rich.text import Text

from frontdesk.cli.layout import Item, Part, console, field_table, json_text, say, table
from frontdesk.cli.remedies import command_for
from frontdesk.config import Config, ConfigError, read_config
from frontdesk.errors import Conflict, FrontdeskError, Invalid, Unavailable

FAILED = 1
MISUSED = 2


def settings(variables: Mapping[str, str] | None = None) -> Config:
    """The settings from the environment. Ends the command when one of them can't be used."""
    try:
        return read_config(os.environ if variables is None else variables)
    except ConfigError as error:
        fail(f"The settings can't be used; correct the environment.\n{error}")


def fail(message: str, *, status: int = FAILED) -> NoReturn:
    """Write the message to stderr and end the command."""
    console(stderr=True).print(Text.assemble(("Error: ", "bold red"), message), soft_wrap=True)
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a command: `value` as JSON for programs, or `parts` under each other for
    people; and its status.
    """

    value: object
    parts: Iterable[Part]
    status: int = 0

    def print(self, *, as_json: bool) -> None:
        """Print it and end the command when its status is not 0."""
        if as_json:
            typer.echo(json_text(self.value))
        else:
            for part in self.parts:
                say(part)
        if self.status:
            raise typer.Exit(self.status)


def describe(item: Item, *notes: str) -> Output:
    """One object: its fields under each other. The notes are for people only."""
    return Output(item, [field_table(item), *notes])


def listing(items: Sequence[Item], columns: str, *notes: str, nothing: str) -> Output:
    """Objects as a table of the columns (`group.name` looks inside), or the sentence `nothing`; for
    people then the notes.
    """

    def parts() -> Iterator[Part]:  # made for people only: --json may print a million objects
        yield table(items, columns) if items else nothing
        yield from notes

    return Output(items, parts())


@contextmanager
def opened_file(
    path: str | Path, mode: Literal["rb", "wb", "ab"], failure: str
) -> Iterator[BinaryIO]:
    """The file; stdin or stdout for `-`. Ends the command with `failure`, its {} filled with the
    reason, on an OSError.

    A file that is made is its user's alone, whatever the umask: reports and mails name members.
    """
    standard = sys.stdin if mode == "rb" else sys.stdout
    private = partial(os.open, mode=0o600)
    try:
        with (
            nullcontext(standard.buffer)
            if path == "-"
            else open(path, mode, opener=private) as stream
        ):
            yield cast(BinaryIO, stream)
            stream.flush()
    except BrokenPipeError:  # the reader has enough
        raise
    except OSError as error:
        fail(failure.format(error.strerror))


def sentence(error: FrontdeskError) -> str:
    """A refusal of the product, or a database that can't be used, as people read it."""
    if isinstance(error, Invalid):
        return "\n".join(f"{_option(fault.field)} {fault.message}." for fault in error.faults)
    if isinstance(error, Unavailable):
        remedy = "`frontdesk check` says what is wrong with the installation."
        return f"{error.detail} {'' if error.outcome_unknown else 'Nothing was changed. '}{remedy}"
    if isinstance(error, Conflict):
        return f"{error.detail} Run the command again."
    return f"{error.detail} {command_for(error.remedy, error.ids)}".strip()


def _option(field: str) -> str:
    """The option that gives a field its value; a field in capitals is an argument."""
    return field if field.isupper() else "--" + field.replace("_", "-")
