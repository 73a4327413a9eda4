"""An eligibility file as every door shows it: one shape for programs, one summary for people; no value of a member."""

from typing import Any

from frontdesk.clock import wire_time
from frontdesk.files.model import REFUSED, WARNED, EligibilityFile, FileState

COUNTS = ("created", "updated", "moved", "unchanged", "ended", "restored", "withdrawn", REFUSED, WARNED)


def file_body(file: EligibilityFile) -> dict[str, Any]:
    """The file as JSON. `counts` are rows by outcome; `warned` counts rows among the others."""
    return {
        "id": file.id,
        "type": "eligibility_files",
        "plan_id": file.plan_id,
        "undoes_id": file.undoes_id,
        "state": file.state,
        "step": file.step,
        "mode": file.mode,
        "dry_run": file.dry_run,
        "format": file.format,
        "file_date": file.file_date,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
        "rows_total": file.rows_total,
        "rows_done": file.rows_done,
        "counts": {name: file.counts[name] for name in COUNTS if name in file.counts},
        "members_before": file.members_before,
        "members_missing": file.members_missing,
        "ignored_columns": file.ignored,
        "problem": file.problem,
        "created_at": wire_time(file.created_at),
        "started_at": None if file.started_at is None else wire_time(file.started_at),
        "finished_at": None if file.finished_at is None else wire_time(file.finished_at),
    }


def summary(file: EligibilityFile) -> list[str]:
    """What came of the file, in sentences."""
    counted = ", ".join(f"{file.counts[name]:,} {name}" for name in COUNTS if file.counts.get(name))
    what = (
        "Undo"
        if file.undoes_id is not None
        else "Dry run: nothing was written. File"
        if file.dry_run
        else "File"
    )
    if file.state == FileState.FAILED:
        lines = [f"{what} {file.id} has failed: {counted or 'nothing was applied'}."]
    else:
        lines = [f"{what} {file.id} is {file.state}: {counted or 'no rows'}."]
    if file.state == FileState.WAITING:
        lines.append(f"It goes on, where it stopped, with a worker or with: frontdesk file resume {file.id}")
    if file.problem is not None:
        lines.append(str(file.problem["message"]))
    if file.needs_approval and file.dry_run:
        lines.append("The real run would be held before anybody is ended, until it is approved.")
    elif file.needs_approval:
        lines.append(
            f"Nobody was ended. If it is right, say: frontdesk file approve {file.id}; "
            f"if not: frontdesk file cancel {file.id}"
        )
    if file.ignored:
        lines.append("Columns or keys that are no field were left out: " + ", ".join(file.ignored) + ".")
    if file.counts.get(REFUSED) or file.counts.get(WARNED):
        lines.append(f"Row by row: frontdesk file report {file.id}")
    return lines
