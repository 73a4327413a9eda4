"""`frontdesk sample`: writes a file of invented members. It needs no database."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, cast

from rich.progress import MofNCompleteColumn

from frontdesk.cli.layout import progress
from frontdesk.cli.options import Json, option
from frontdesk.cli.output import MISUSED, Output, fail, opened_file
from frontdesk.formats.model import Format
from frontdesk.sandbox import SAMPLE_MAPPING
from frontdesk.sandbox.sample_files import write_sample
from frontdesk.sandbox.sample_members import sample_members

_GZIP_LEVEL = 6
LARGEST_SEED = 10**9  # it stands in every identifier


def sample(
    *,
    members: Annotated[int, option("How many members.", metavar="N", min=1)],
    format_: Annotated[
        Literal["csv", "jsonl", "834"],
        option("How the file is written; 834 is X12 005010X220A1.", "--format"),
    ] = "csv",
    seed: Annotated[
        int, option("The same seed gives the same people.", min=0, max=LARGEST_SEED)
    ] = 1,
    out: Annotated[
        Path | None,
        option("Where to write; stdout if not given. A name in .gz packs it.", metavar="PATH"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a file of invented members: families, twins, names with accents, zip codes with leading
    zeros.

    Example: frontdesk sample --members 1000 --format 834 --seed 7 --out members.834
    """
    if as_json and out is None:
        needs = "--json describes the file, so it needs --out: without it the members go to stdout."
        fail(needs, status=MISUSED)
    bar = progress(MofNCompleteColumn())
    bar.disable = bar.disable or out is None  # the members are on the terminal
    with _opened(out) as stream, bar:
        task = bar.add_task("writing members", total=members)
        for written in write_sample(sample_members(members, seed=seed), Format(format_), stream):
            bar.update(task, completed=written)
    if out is not None:
        mapping = SAMPLE_MAPPING if Format(format_) is Format.X12 else None
        answer = {
            "path": str(out),
            "format": format_,
            "members": members,
            "seed": seed,
            "mapping": mapping,
        }
        parts = [f"{members:,} invented members are in {out}."]
        if mapping is not None:
            parts.append(
                f"The mapping that names them, which the demo account has: {json.dumps(mapping)}"
            )
        Output(answer, parts).print(as_json=as_json)


@contextmanager
def _opened(path: Path | None) -> Iterator[BinaryIO]:
    with opened_file(
        path or "-", "wb", "The file can't be written: {}. Give another --out."
    ) as file:
        if path is None or path.suffix != ".gz":
            yield file
            return
        # Without a time or a name in it, the same seed gives the same bytes.
        with gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0) as packed:
            yield cast("BinaryIO", packed)
