"""`frontdesk file suggest`: a mapping for a file with names of its own. It needs no database."""

import json
from pathlib import Path
from typing import Annotated

import typer

from frontdesk.cli.output import Output, Part, json_text, opened_file, table
from frontdesk.clock import system_clock
from frontdesk.files import serialize_suggestion, suggest_mapping
from frontdesk.files.model import Format


def suggest(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", exists=True, dir_okay=False, help="The file; gzip is recognised."),
    ],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Its format; by default its first letters decide."),
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The sheet of a workbook; by default the first that is shown."),
    ] = None,
    encoding: Annotated[str, typer.Option(metavar="NAME", help="The encoding of its text.")] = "utf-8",
    out: Annotated[
        str | None,
        typer.Option(metavar="F", help="A file to write the mapping to, for `file load --mapping`."),
    ] = None,
) -> Output:
    """Suggest a mapping for a file: what its columns may hold, how sure that is, and what would still be refused. Nothing is
    loaded, and no value of a member is shown.

    Example: frontdesk file suggest export.csv --out mapping.json
    """
    with path.open("rb") as stream:
        found = suggest_mapping(
            stream, today=system_clock().date().isoformat(), format=format_, encoding=encoding, sheet=sheet
        )
    if out is not None:
        with opened_file(out, "wb", "The mapping can't be written: {}. Give another --out.") as target:
            target.write(json.dumps(found.mapping, ensure_ascii=False, indent=1).encode())
    columns = [
        (each.column, ", ".join(each.fields), each.confidence or None, "  ".join(each.samples))
        for each in found.columns
    ]
    notes = [f"{each.column}: {each.note}" for each in found.columns if each.note]
    refused = [(each.field, each.code, each.rows) for each in found.refused]
    left_out = f", {found.skipped_rows:,} would be left out" if found.skipped_rows else ""
    parts: list[Part] = [
        table(("column", "fields", "confidence", "samples"), columns),
        *notes,
        json_text(found.mapping),
        f"Of {found.rows:,} rows {found.refused_rows:,} would be refused{left_out}.",
    ]
    if refused:
        parts.append(table(("field", "code", "rows"), refused))
    parts += [each.advice for each in found.refused if each.advice]
    for question in found.questions:
        is_open = question.column in found.mapping.get("questions", {})
        lead = "To be answered before the mapping can be used" if is_open else "To be checked"
        parts.append(f"{lead}: {question.column}. {question.question}")
        parts += [
            f"- {choice.does} Put into the mapping: {json.dumps(choice.mapping, ensure_ascii=False)}"
            for choice in question.choices
        ]
    return Output(serialize_suggestion(found), parts)
