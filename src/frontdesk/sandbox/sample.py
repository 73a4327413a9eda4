"""`frontdesk sample`: writes a file of invented members. It needs no database."""

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from frontdesk.cli.layout import say
from frontdesk.cli.options import Json
from frontdesk.cli.output import MISUSED, fail, print_json
from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_files import SAMPLE_MAPPING, write_sample
from frontdesk.sandbox.sample_members import sample_members

_GZIP_LEVEL = 6
LARGEST_SEED = 10**9  # it stands in every identifier


def sample(
    *,
    members: Annotated[int, typer.Option("--members", metavar="N", min=1, help="How many members.")],
    format_: Annotated[
        Literal["csv", "jsonl", "834"],
        typer.Option("--format", help="How the file is written; 834 is X12 005010X220A1."),
    ] = "csv",
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="The same seed gives the same people.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="PATH", help="Where to write; stdout if not given. A name in .gz packs it."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a file of invented members: families, twins, names with accents, zip codes with leading zeros.

    Example: frontdesk sample --members 1000 --format 834 --seed 7 --out members.834
    """
    if as_json and out is None:
        fail(
            "--json describes the file, so it needs --out: without it the members go to stdout.",
            status=MISUSED,
        )
    with _opened(out) as stream, _progress(out is not None) as progress:
        task = progress.add_task("writing members", total=members)
        for written in write_sample(sample_members(members, seed=seed), Format(format_), stream):
            progress.update(task, completed=written)
    if as_json:
        mapping = SAMPLE_MAPPING if Format(format_) is Format.X12 else None
        print_json(
            {"path": str(out), "format": format_, "members": members, "seed": seed, "mapping": mapping}
        )
    elif out is not None:
        say(f"{members:,} invented members are in {out}.")
        if Format(format_) is Format.X12:
            say(f"The mapping that names them, which the demo account has: {json.dumps(SAMPLE_MAPPING)}")


def _progress(is_wanted: bool) -> Progress:
    """A bar on stderr if that is a terminal; the members may go to stdout."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not (is_wanted and console.is_terminal))


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    try:
        with path.open("wb") as file:
            if path.suffix != ".gz":
                yield file
                return
            # Without a time or a name in it, the same seed gives the same bytes.
            packed = gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)
            yield cast("BinaryIO", packed)
            packed.close()
    except OSError as error:
        fail(f"The file can't be written: {error.strerror}. Give another --out.")
