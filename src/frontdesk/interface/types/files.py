"""Eligibility files and how far they are."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from frontdesk.codes import Where, sentences
from frontdesk.files.model import COUNTS, FileState, FileStep
from frontdesk.formats.model import FileMode, Format
from frontdesk.interface.schema import Keywords, Named, explained, one_of, schema_of
from frontdesk.interface.types.plans import PageLinks
from frontdesk.interface.words import AnswerEnvelope, Count, Date, Sha256, Timestamp

FILE_PROBLEMS = sentences(Where.FILE)
_COUNTED = {name: schema_of(Count) for name in COUNTS}


class FileProblem(TypedDict):
    """Why the file failed or is held."""

    code: Annotated[str, one_of(FILE_PROBLEMS), explained(FILE_PROBLEMS).strip()]
    message: Annotated[str, "The reason in words; it never repeats what the file says."]
    place: Annotated[int | None, "Row (834: segment) at fault; the first is 1."]
    suggestion: NotRequired[
        Annotated[
            dict[str, Any],
            Keywords(additionalProperties=True),
            "`needs_mapping`: the suggested `mapping`, its reasons, figures.",
        ]
    ]


class UsedMapping(TypedDict):
    """The mapping that read the file."""

    name: Annotated[
        str | None, "Name of the account's mapping; null for one that came with the file."
    ]
    version: Annotated[
        str,
        Keywords(pattern="^[0-9a-f]{12}$"),
        "First digits of the SHA-256 of its JSON, keys in order.",
    ]


class File(TypedDict):
    """An eligibility file and how far it is."""

    id: Annotated[int, "Primary identifier."]
    type: Literal["eligibility_files"]
    plan_id: Annotated[int, "Plan of the file's members."]
    undoes_id: Annotated[int | None, "The file that this one takes back."]
    state: Annotated[FileState, "`held`: a person has to approve it."]
    step: Annotated[
        FileStep,
        "Done now or done last: check the file, apply its rows, end the members that a full "
        "file omits.",
    ]
    mode: Annotated[
        FileMode,
        "What the upload or the 834 says. `compare` reports differences and writes nothing.",
    ]
    dry_run: Annotated[bool, "Whether nothing is written."]
    client: Annotated[
        str,
        "Who handed it in: the `client_id`, `user:` and the id of a user, or `cli:` and the operator.",
    ]
    file_name: Annotated[str | None, Keywords(maxLength=255), "Its name, if the upload gave one."]
    format: Annotated[Format | None, "null until the service knows it."]
    encoding: Annotated[str | None, "Of its text; until the check has ended, the declared one."]
    delimiter: Annotated[
        str | None, "Between the columns of a CSV; null until the service knows it."
    ]
    sheet: Annotated[str | None, "The requested sheet; null stands for the first visible one."]
    mapping: UsedMapping | None
    file_date: Annotated[Date | None, "The date that the file states, else the day it came."]
    size_bytes: Annotated[Count, "Size of the body as it was sent."]
    sha256: Annotated[Sha256 | None, "SHA-256 of the body as it was sent."]
    rows_total: Annotated[Count | None, "null until the check has ended."]
    rows_done: Count
    counts: Annotated[
        dict[str, int],
        Keywords(additionalProperties=False, properties=_COUNTED),
        "Rows by outcome, where there are any. A row that is `warned` counts twice.",
    ]
    codes: Annotated[dict[str, Count], "Report lines by code."]
    members_before: Annotated[Count | None, "Full file: the plan's members with access before it."]
    members_missing: Annotated[Count | None, "Full file: the members that it omits."]
    ignored_columns: Annotated[
        list[str],
        "Columns (CSV) and keys (JSON lines) that are no field; 40 characters of each, 20 at most.",
    ]
    problem: FileProblem | None
    created_at: Timestamp
    started_at: Annotated[Timestamp | None, "null until a worker has begun with the rows."]
    finished_at: Annotated[Timestamp | None, "null until the file has ended."]


class FileLinks(TypedDict):
    """Addresses of the file and of its report."""

    self: str
    report: str


EligibilityFile = Annotated[
    AnswerEnvelope[FileLinks, File],
    Named("EligibilityFile", "An eligibility file in its envelope."),
]


EligibilityFiles = Annotated[
    AnswerEnvelope[PageLinks, list[File]],
    Named("EligibilityFiles", "A page of eligibility files, the newest first."),
]
