"""An eligibility file as JSON, and in words with the commands that come next."""

import hashlib
import json
from typing import Any
from urllib.parse import unquote

import orjson

from frontdesk.clock import wire_time
from frontdesk.files.model import (
    COUNTS,
    REFUSED,
    WARNED,
    WOULD_BE_SIMILAR,
    WOULD_END,
    WOULD_MOVE,
    EligibilityFile,
    FileState,
)


def serialize_file(file: EligibilityFile) -> dict[str, Any]:
    """The file as JSON, the same for HTTP and the command line. It holds no value of a member."""
    return {
        "id": file.id,
        "type": "eligibility_files",
        "plan_id": file.plan_id,
        "undoes_id": file.undoes_id,
        "state": file.state,
        "step": file.step,
        "mode": file.mode,
        "dry_run": file.dry_run,
        "client": file.client,
        "file_name": file.file_name,
        "format": file.format,
        "encoding": file.encoding,
        "delimiter": file.delimiter,
        "sheet": (file.mapping or {}).get("sheet"),
        "mapping": _mapping_used(file),
        "file_date": file.file_date,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "rows_total": file.rows_total,
        "rows_done": file.rows_done,
        "counts": {name: file.counts[name] for name in COUNTS if name in file.counts},
        "codes": dict(sorted(file.codes.items())),
        "members_before": file.members_before,
        "members_missing": file.members_missing,
        "ignored_columns": [*map(unquote, file.ignored)],  # stored as a log may show them
        "problem": file.problem,
        "created_at": wire_time(file.created_at),
        "started_at": None if file.started_at is None else wire_time(file.started_at),
        "finished_at": None if file.finished_at is None else wire_time(file.finished_at),
    }


def _mapping_used(file: EligibilityFile) -> dict[str, Any] | None:
    """The name of the account's mapping that read the file (null: it came with the file), and the digest of its content."""
    if file.mapping is None:
        return None
    content = orjson.dumps(file.mapping, option=orjson.OPT_SORT_KEYS)
    return {"name": file.mapping_name, "version": hashlib.sha256(content).hexdigest()[:12]}


def summary(file: EligibilityFile) -> list[str]:
    """The result of the file in sentences, with the commands that come next."""
    kind = "Undo" if file.undoes_id else "Dry run: nothing was written. File" if file.dry_run else "File"
    counted = ", ".join(f"{file.counts[name]:,} {name}" for name in COUNTS if file.counts.get(name))
    nothing = "nothing was applied" if file.needs_mapping or file.state is FileState.FAILED else "no rows"
    became = f"{'has failed' if file.state is FileState.FAILED else f'is {file.state}'}: {counted or nothing}"
    lines = [f"{kind} {file.id} {became}."]
    if file.state is FileState.WAITING:
        lines.append(f"A worker goes on where it stopped. To go on here: frontdesk file resume {file.id}")
    if file.problem is not None:
        lines.append(str(file.problem["message"]))
    if file.needs_mapping and file.problem is not None:
        lines += _needed_mapping(file, file.problem["suggestion"])
    elif file.needs_approval:
        lines.append(_needed_approval(file))
    lines += [
        f"Which members: frontdesk file report {file.id} --outcome {outcome}"
        for outcome in (WOULD_MOVE, WOULD_BE_SIMILAR, WOULD_END)
        if file.counts.get(outcome)
    ]
    if file.ignored:
        lines.append("Columns or keys that are no field were left out: " + ", ".join(file.ignored) + ".")
    if file.counts.get(REFUSED) or file.counts.get(WARNED):
        lines.append(f"Row by row: frontdesk file report {file.id}")
    return lines


def _needed_mapping(file: EligibilityFile, suggestion: dict[str, Any]) -> list[str]:
    """The suggested mapping with its reasons, and the commands that decide about it."""
    accept = f"To accept it: frontdesk file accept {file.id}; to give another: frontdesk file accept {file.id} --mapping F"
    again = "Load the file with a mapping: frontdesk file load … --mapping F"
    suggested = json.dumps(suggestion["mapping"], ensure_ascii=False)
    return [f"Suggested mapping: {suggested}", *suggestion["reasons"], again if file.dry_run else accept]


def _needed_approval(file: EligibilityFile) -> str:
    """What was not done, and the commands that decide about it."""
    if file.dry_run:
        return "The real run would be held before its first row, until it is approved."
    return (
        f"Nothing was applied. To apply the whole file: frontdesk file approve {file.id}; "
        f"to give the file up: frontdesk file cancel {file.id}"
    )
