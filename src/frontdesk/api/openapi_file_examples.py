"""The examples of eligibility files in the OpenAPI document; tests send every one of them, and load it."""

from hashlib import sha256
from typing import Any

Json = dict[str, Any]

CSV = """\
external_id,member_id,first_name,last_name,dob,gender,zipcode,effective_date
E-1,M-1,Robin,Sample,1977-01-11,female,02134,2026-01-01
E-2,M-2,Noor,Sample,1977-02-30,female,02134,2026-01-01
"""

JSON_LINES = """\
{"external_id": "E-1", "member_id": "M-1", "first_name": "Robin", "last_name": "Sample", "dob": "1977-01-11", \
"gender": "female", "zipcode": "02134", "effective_date": "2026-01-01"}
{"external_id": "E-2", "last_name": "Sample-Lee"}
"""

X12 = """\
ISA*00*          *00*          *ZZ*SENDER         *ZZ*RECEIVER       *261120*0800*^*00501*000000001*0*T*:~
GS*BE*SENDER*RECEIVER*20261120*0800*1*X*005010X220A1~
ST*834*0001*005010X220A1~
BGN*00*REF1*20261120*0800****2~
N1*P5*Example Employer*FI*999999999~
N1*IN*Example Mutual*FI*888888888~
INS*Y*18*021*28*A***FT~
REF*0F*FAMILY1~
REF*17*01~
NM1*IL*1*Sample*Robin~
N3*1 Example Street~
N4*Boston*MA*02134~
DMG*D8*19770111*F~
HD*021**HLT*PPO 500~
DTP*348*D8*20260101~
SE*14*0001~
GE*1*1~
IEA*1*000000001~
"""

REPORT_JSON_LINES = """\
{"row":2,"external_id":"E-1","outcome":"created","code":"","field":"","hint":""}
{"row":3,"external_id":"E-2","outcome":"refused","code":"not_a_date","field":"dob",\
"hint":"must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"}
"""
REPORT_CSV = """\
row,external_id,outcome,code,field,hint
2,E-1,created,,,
3,E-2,refused,not_a_date,dob,"must be a real date, YYYY-MM-DD, or an ISO 8601 timestamp"
""".replace("\n", "\r\n")

# Its header names nothing that the service knows.
UNREADABLE = """\
Name,Born on
Robin Sample,1977-01-11
"""

# How many members a plan has whom `CSV`, as a full file, does not name; it names one that is there.
MEMBERS_MISSING = 39

_NOW = "2026-11-20T12:00:00Z"


def _size(content: str) -> Json:
    return {"size_bytes": len(content.encode()), "sha256": sha256(content.encode()).hexdigest()}


_WAITING: Json = {
    "id": 7,
    "type": "eligibility_files",
    "plan_id": 1,
    "undoes_id": None,
    "state": "waiting",
    "step": "check",
    "mode": "change",
    "dry_run": False,
    "format": "csv",
    "file_date": None,
    **_size(CSV),
    "rows_total": None,
    "rows_done": 0,
    "counts": {},
    "members_before": None,
    "members_missing": None,
    "ignored_columns": [],
    "problem": None,
    "created_at": _NOW,
    "started_at": None,
    "finished_at": None,
}
_DONE: Json = _WAITING | {
    "state": "done",
    "step": "end",
    "file_date": "2026-11-20",
    "rows_total": 2,
    "rows_done": 2,
    "counts": {"created": 1, "refused": 1},
    "started_at": _NOW,
    "finished_at": _NOW,
}
_HELD: Json = _DONE | {
    "state": "held",
    "mode": "full",
    "counts": {"unchanged": 1, "refused": 1},
    "members_before": MEMBERS_MISSING + 1,
    "members_missing": MEMBERS_MISSING,
    "finished_at": None,
    "problem": {
        "code": "brake",
        "message": f"{MEMBERS_MISSING} of the plan's {MEMBERS_MISSING + 1} members would be ended, more than 25.",
        "place": None,
    },
}
_FAILED: Json = (
    _WAITING
    | _size(UNREADABLE)
    | {
        "state": "failed",
        "problem": {
            "code": "no_header",
            "message": "Row 1: the first row names no field of a member; a header such as external_id,member_id,… is needed",
            "place": 1,
        },
        "finished_at": _NOW,
    }
)


def received(base_url: str) -> Json:
    """What the upload of `CSV` is answered with."""
    return {"waiting": _named("It waits for a worker", _answer(base_url, _WAITING))}


def progress(base_url: str) -> Json:
    """A file on its way, and the ways in which it ends."""
    return {
        "waiting": _named("It waits for a worker", _answer(base_url, _WAITING)),
        "done": _named("Each row was applied or refused", _answer(base_url, _DONE)),
        "held": _named("A full file that would end many members", _answer(base_url, _HELD)),
        "failed": _named("It can't be read: nothing of it was applied", _answer(base_url, _FAILED)),
    }


def approved(base_url: str) -> Json:
    """A held file that may go on."""
    file = _HELD | {"state": "waiting", "problem": None}
    return {"approved": _named("It waits for a worker", _answer(base_url, file))}


def cancelled(base_url: str) -> Json:
    """A held file that goes no further."""
    file = _HELD | {"state": "cancelled", "finished_at": _NOW}
    return {"cancelled": _named("Nobody was ended", _answer(base_url, file))}


def undone(base_url: str) -> Json:
    """The undo of file 6."""
    own = {"undoes_id": 6, "step": "apply", "format": None, "size_bytes": 0, "sha256": None}
    return {"waiting": _named("It waits for a worker", _answer(base_url, _WAITING | own))}


def uploads() -> Json:
    """The bodies of an upload, by media type; what is compressed can't be shown."""
    return {
        "text/csv": {"csv": _named("Two rows, the second with a date that is none", CSV)},
        "application/x-ndjson": {"jsonl": _named("A new member, and an update of another", JSON_LINES)},
        "application/edi-x12": {"834": _named("An 834 (005010X220A1) with one subscriber", X12)},
        "application/octet-stream": {},
    }


def reports() -> Json:
    """The report on `CSV`, by media type."""
    return {
        "application/x-ndjson": {"jsonl": _named("As JSON lines", REPORT_JSON_LINES)},
        "text/csv": {"csv": _named("Asked for with `format=csv`", REPORT_CSV)},
    }


def file_address(base_url: str) -> str:
    """Where the file of the examples is."""
    return f"{base_url}/v2/plans/{_WAITING['plan_id']}/eligibility-files/{_WAITING['id']}"


def _answer(base_url: str, file: Json) -> Json:
    here = file_address(base_url)
    return {"links": {"self": here, "report": f"{here}/report"}, "data": file}


def _named(summary: str, value: Json | str) -> Json:
    return {"summary": summary, "value": value}
