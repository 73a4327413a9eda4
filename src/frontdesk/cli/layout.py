"""The layout of output: tables, fields under each other, JSON, progress bars.

Text is never read as markup, because names may look like markup.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import reduce
from operator import getitem
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from frontdesk.text import wire_time

# Output that goes to a file or another program is never wrapped or cut to a terminal's width.
UNWRAPPED_COLUMNS = 10_000

Item = Mapping[str, Any]
Part = str | Text | Table  # of what people read: a sentence, a heading, a table

# Columns that keep to one line on a narrow terminal, so that they can be read and copied: text
# gives way first.
_COPIED = {"id", "client_id", "state", "delivery"}


def picked(thing: object, names: str) -> dict[str, Any]:
    """Some fields of an object, by their names."""
    return {name: getattr(thing, name) for name in names.split()}


def json_text(value: object) -> str:
    # all but times are plain
    return json.dumps(value, ensure_ascii=False, indent=2, default=wire_time)


def table(items: Sequence[Item], columns: str) -> Table:
    """A row for each item. `group.name` looks inside; what ends in `_seconds` reads as minutes, in
    `_share` as a percentage.
    """
    rows = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 1, 0, 0))
    names = columns.split()
    for name in names:
        head = (
            name.removesuffix("_seconds").removesuffix("_share").replace(".", " ").replace("_", " ")
        )
        rows.add_column(head, overflow="fold", no_wrap=name in _COPIED or name.endswith("_at"))
    for item in items:
        rows.add_row(*(_cell(reduce(getitem, name.split("."), item), name) for name in names))
    return rows


def field_table(item: Item) -> Table:
    """The names and values of an object."""
    fields = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    fields.add_column(style="cyan", no_wrap=True)
    fields.add_column(overflow="fold")
    for name, value in item.items():
        fields.add_row(name, _cell(value or None if isinstance(value, Mapping) else value))
    return fields


def _cell(value: Any, column: str = "") -> Text:
    """A value for people; its unit is derived from the `column`."""
    if value is None:
        return Text("-", style="dim")
    if column.endswith("_seconds"):
        return Text(minutes_text(value))
    if column.endswith("_share"):
        return Text(f"{value:.0%}")
    if isinstance(value, datetime):
        return Text(wire_time(value))
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, Mapping):
        return Text("\n").join(
            Text.assemble(f"{name}: ", _cell(inner)) for name, inner in value.items()
        )
    if isinstance(value, list | tuple):
        return Text(", ").join(map(_cell, value))
    return Text(str(value))


def minutes_text(seconds: float) -> str:
    """Minutes and seconds for people.

    >>> minutes_text(-65.2), minutes_text(-0.4)
    ('-1:05 min', '0:00 min')
    """
    whole = round(seconds)
    minutes, rest = divmod(abs(whole), 60)
    return f"{'-' if whole < 0 else ''}{minutes}:{rest:02d} min"


def heading(text: str) -> Text:
    return Text(text, style="bold")


def say(part: Part) -> None:
    """Print a sentence, a heading or a table for people. Only a table is fitted to the terminal's
    width.
    """
    console().print(
        Text(part) if isinstance(part, str) else part, soft_wrap=not isinstance(part, Table)
    )


def console(*, stderr: bool = False) -> Console:
    """The console that people read."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else UNWRAPPED_COLUMNS
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False)


def progress(*more: ProgressColumn) -> Progress:
    """A bar on stderr that shows how far a command is; on a terminal only. `more` columns stand
    before the time left.
    """
    screen = console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeRemainingColumn())
    return Progress(*columns, console=screen, transient=True, disable=not screen.is_terminal)
