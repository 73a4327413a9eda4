"""Every code of a file, of its rows and of its report, with its one wording (docs/files.md, docs/file-formats.md)."""

from frontdesk.errors import Fault

# Faults of one row that a reader finds. The row is refused, its neighbours are not.
ROW_FAULTS = {
    "wrong_column_count": "The row has more or fewer cells than the header has columns.",
    "bad_quoting": "The quotation marks of the row don't match.",
    "not_json": "The line is not one JSON object as a request body would carry it.",
    "no_match_key": "The 834 carries none of what the mapping makes the identifier from.",
    "unknown_code": "The 834 carries a code that has no meaning here.",
    "unknown_plan": "The plan that the row names is not in the mapping, or not one of the account.",
}

# Faults of the whole file; nothing of it is applied.
FILE_FAULTS = {
    "empty": "There is nothing in the file.",
    "no_rows": "There is no member in the file.",
    "no_header": "The first line of a CSV names no field of a member.",
    "no_key_column": "No column of a CSV holds the external_id.",
    "repeated_column": "Two columns hold the same field.",
    "unknown_encoding": "The declared encoding is not one that is read.",
    "wrong_encoding": "The bytes are not in the declared encoding.",
    "not_text": "The file is a ZIP archive or a workbook (.xlsx), not a text.",
    "json_array": "The file is one JSON array; JSON lines have an object per line.",
    "line_too_long": "A line, row or segment is longer than any member can be.",
    "rows_run_together": "A quotation mark is not closed, so it can't be told where rows end.",
    "cut_off": "The file ends in the middle.",
    "not_gzip": "The compressed data is damaged.",
    "too_large": "The content is larger than what is read.",
    "zip_bomb": "The compressed data unpacks to far more than any list of members would.",
    "not_x12": "The file does not begin with an ISA segment, or the segment is damaged.",
    "wrong_version": "The file is not an 834 of version 005010X220A1.",
    "wrong_order": "A segment stands where it has no place.",
    "wrong_count": "A count or control number of SE, GE or IEA does not agree with the file.",
    "unknown_purpose": "BGN08 is none of 2, 4 and RX.",
    "wrong_date": "BGN03, the date of the file, is not a real date.",
    "mixed_purposes": "The transactions of the file say different things of themselves.",
}

# Every problem of a file: what makes it unreadable, what holds it, what ends it early.
FILE_PROBLEMS = FILE_FAULTS | {
    "brake": "Too many members would be ended, a row without a readable external_id may be one of them, or a newer full "
    "file has come; a person has to approve it.",
    "bad_mapping": "The account's mapping can't be used.",
    "internal": "A fault of the service; what was applied stands, and the report lists it.",
}

# Every code of a report besides those of a POST: of refused rows, of warnings, of members that a full file omits.
REPORT_CODES = ROW_FAULTS | {
    "repeated_differently": "The same external_id stands in the file with other values.",
    "not_found": "The plan is not one of the account.",
    "not_now": "Others keep writing the same record; hand the row in again.",
    "not_stored": "A fault of the service; hand the row in again.",
    "differs": "Only compared: the stored record has another value.",
    "ended_by_absence": "A full file does not name the member.",
    "ends_on_first_day": "The access was to begin after the file's date; it ends on the day it begins.",
    "still_ended": "The access of the member has ended, and the row has no expiry_date, so it stays ended; clear it to go on.",
    "changed_since": "The record was changed again after the file; the undo leaves it as it is.",
}

# The field that each warning is about, where it is not the external_id.
WARNED_FIELDS = {
    "dob_not_midnight": "dob",
    "dob_shifted_one_day": "dob",
    "state_not_recognised": "state",
    "relationship_code_hipaa_unknown": "relationship_code_hipaa",
    "email_dropped": "email",
    "still_ended": "expiry_date",
    "ends_on_first_day": "expiry_date",
}


def _fault(field: str, code: str) -> Fault:
    return Fault(field, code, REPORT_CODES[code])


NOT_NOW = _fault("external_id", "not_now")
NOT_STORED = _fault("external_id", "not_stored")
REPEATED = _fault("external_id", "repeated_differently")
UNKNOWN_PLAN = _fault("plan", "unknown_plan")
NO_PLAN = _fault("plan", "not_found")
