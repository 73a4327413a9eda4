"""Members and files of a sandbox that always fail in a told way, by their external_id or name
(docs/sandbox.md).
"""

import re
from collections.abc import Sequence

from frontdesk import codes
from frontdesk.codes import Kind, Where
from frontdesk.eligibility.decide import Result
from frontdesk.eligibility.enrolments import Write
from frontdesk.eligibility.model import Enrolled, Outcome, Submission
from frontdesk.errors import Conflict, Fault, FrontdeskError, Invalid, RateLimited, Unavailable
from frontdesk.files.brakes import ApprovalNeeded, Reason
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.model import Unreadable

RETRY_AFTER_SECONDS = 1
SAID = "The sandbox answers so, because of the external_id of the record."
FAULT = "is refused by the sandbox, because of its value"
LOST = "sandbox-loses-answer"

# A `+` and what follows it keep an identifier or a name unique.
_MEMBER = re.compile(r"sandbox-fails-(409|422|429|500|503)(?:-(\w+))?(?:\+.*)?", re.DOTALL)
_FILE = re.compile(r"sandbox-(fails|held)-(\w+?)(?:[.+].*)?", re.DOTALL)

# A full file that is overtaken can't be approved, so it is not played.
HELD_CODES = tuple(code for code in codes.files.BRAKES if code != codes.files.OVERTAKEN)


def enrol(submissions: Sequence[Submission], write: Write) -> list[Result]:
    """The results of a chunk: `write` gets the records that don't fail. The first answer about a
    record whose answer is to be lost is an error although the record is written.
    """
    refused = [_refusal(submission.record.external_id or "") for submission in submissions]
    written = [each for each, refusal in zip(submissions, refused, strict=True) if refusal is None]
    results = iter(write(written) if written else ())
    return [
        refusal or _answer(each, next(results))
        for each, refusal in zip(submissions, refused, strict=True)
    ]


def _refusal(external_id: str) -> FrontdeskError | None:
    found = _MEMBER.fullmatch(external_id)
    if found is None:
        return None
    status, code = found.groups()
    if status == "422":
        fault = codes.find(Where.FAULT, code or codes.faults.NOT_UNIQUE)
        is_of_field = fault is not None and fault.kind is Kind.INVALID
        return Invalid([Fault("external_id", fault, FAULT)]) if fault and is_of_field else None
    errors: dict[str, FrontdeskError] = {
        "409": Conflict(SAID),
        "429": RateLimited(SAID, retry_after_seconds=RETRY_AFTER_SECONDS),
        "500": FrontdeskError(SAID),
        "503": Unavailable(SAID),
    }
    return None if code else errors[status]


def _answer(submission: Submission, result: Result) -> Result:
    is_lost = (submission.record.external_id or "").partition("+")[0] == LOST
    if is_lost and isinstance(result, Enrolled) and result.outcome is Outcome.CREATED:
        return Unavailable(SAID, outcome_unknown=True)
    return result


def check_file(file: EligibilityFile) -> None:
    """Before the first row of a file is applied. An approved file goes on. Raises Unreadable,
    ApprovalNeeded.
    """
    found = _FILE.fullmatch(file.file_name or "")
    if found is None or file.approved:
        return
    verb, word = found.groups()
    code = codes.find(Where.FILE, word)
    if code is None:
        return
    if verb == "fails" and code.kind is Kind.MALFORMED:
        raise Unreadable(code)
    if verb == "held" and code in HELD_CODES:
        raise ApprovalNeeded([Reason(code, code.sentence)])
