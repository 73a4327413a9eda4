"""More codes of a file's report, besides the faults and warnings of a POST: of refused rows, of
warnings, and of members that a full file omits.
"""

from functools import partial

from frontdesk.codes.model import Code, Remedy, Where

_row = partial(Code.declared, Where.ROW)

BAD_QUOTING = _row(
    "bad_quoting", "The quotation marks of the row don't match: double those inside a cell."
)
NOT_JSON = _row("not_json", "The line is not one JSON object like a request body.")
CELL_ERROR = _row("cell_error", "A cell of the workbook holds an error of Excel, such as #N/A.")
SPREADSHEET_VALUE = _row(
    "spreadsheet_value",
    "A spreadsheet has rounded the identifier (1.23457E+11), or written a word for a missing value "
    "(#N/A, N/A, null): format the column as text, fill it, and export it again.",
)
WRONG_COLUMN_COUNT = _row(
    "wrong_column_count",
    "The row has more or fewer cells than the header has columns: quote a cell that holds the "
    "delimiter.",
)
VALUES_TOO_LONG = _row(
    "values_too_long",
    "The cells that the mapping makes values of have more than 65,536 characters, each "
    "counted for each rule.",
)
NO_IDENTIFIER = _row(
    "no_identifier",
    "The member lacks a value from which the mapping makes the identifier (identify): ask the "
    "sender for it, or name members in another way.",
)
IDENTIFIER_SHARED = _row(
    "identifier_shared",
    "Two people of the 834 have the same identifier, so both are refused: the mapping has to "
    "name members in another way (identify).",
    field="external_id",
)
NESTED_DEPENDENT = _row(
    "nested_dependent",
    "A dependent is inside LS and LE: the sender has to give each member an INS loop.",
    field="INS",
)
UNKNOWN_CODE = _row(
    "unknown_code", "The 834 has an unknown code; the message lists the known codes."
)
UNKNOWN_PLAN = _row(
    "unknown_plan",
    "The row's name of its plan is not among the `plans` of the mapping: add it there.",
    field="plan",
)
REPEATED_DIFFERENTLY = _row(
    "repeated_differently",
    "Another row has the same external_id and other values: keep one row, or make the "
    "identifier from more columns.",
    field="external_id",
)
NO_MEDICAL_COVERAGE = _row(
    "no_medical_coverage",
    "The 834 has no coverage that counts: a stored member keeps its access, a new member is "
    "refused. If one of its coverages gives access, add its code (HD03) to `coverages` in the "
    "mapping.",
    field="effective_date",
)
ADDRESS_OF_SUBSCRIBER = _row(
    "address_of_subscriber",
    "The dependent has no address; its subscriber's was used.",
    field="zipcode",
)
IDENTITY_CONFLICT = _row(
    "identity_conflict",
    "The stored member with this external_id is another person, by name, birth date, sex, role or "
    "family: correct the record, rename the stored member if its number was given to somebody "
    "new, or name members in another way.",
    remedy=Remedy.RENAME_MEMBER,
)
DOB_CHANGED = _row(
    "dob_changed",
    "The row has another birth date than the stored member. Everything else agrees, so it counts "
    "as the same person.",
    field="dob",
)
FIRST_NAME_CHANGED = _row(
    "first_name_changed",
    "The row has another first name than the stored member. Everything else agrees, so it counts "
    "as the same person.",
    field="first_name",
)
LAST_NAME_CHANGED = _row(
    "last_name_changed",
    "The row has another last name than the stored member. It counts as the same person, but so many "
    "such rows may have shifted against the identifiers.",
    field="last_name",
)
BEGINS_AFTER_TODAY = _row(
    "begins_after_today",
    "The row begins after today, and the member has access today, which does not end the day before.",
    field="effective_date",
)
GENDER_UNKNOWN = _row(
    "gender_unknown",
    "DMG03 is none of F, M and U: a new member is stored as unknown, a stored one keeps its gender.",
    field="gender",
)
ADDED_AND_ENDED = _row(
    "added_and_ended",
    "The 834 adds the member (INS03 = 021), and ends every coverage that counts.",
    field="external_id",
)
UNTIDY_FILE = _row(
    "untidy_file",
    "The file has small faults with a clear meaning, which the hint names: an 834 wrong counts, a "
    "table its header again between the rows, which is skipped, …",
    field="external_id",
)
NOT_FOUND = _row("not_found", "The account has no such plan.", field="plan")
TOO_MANY_TAKEN = _row(
    "too_many_taken",
    "The row has a value of another account's record, and too many records of the account had "
    "one today; send the row again tomorrow (UTC).",
)
NOT_NOW = _row("not_now", "Other requests keep changing the same record; send the row again.")
NOT_STORED = _row("not_stored", "A fault of the service; send the row again.")
DIFFERS = _row("differs", "Only compared: the stored record has another value.")
ENDED_BY_ABSENCE = _row("ended_by_absence", "A full file omits the member.")
KEPT_BECAUSE_OF = _row(
    "kept_because_of",
    "A full file omits the member, whose access goes on, because a refused row has the same "
    "family, or the same names and birth date. Correct that row; if its number was given to "
    "somebody new, rename the stored member with the number first.",
    field="external_id",
    remedy=Remedy.RENAME_MEMBER,
)
LOSES_ACCESS = _row("loses_access", "The member would lose access on some day from today on.")
LEAVES_PLAN = _row("leaves_plan", "The member would leave another plan of the account.")
ENDS_ON_FIRST_DAY = _row(
    "ends_on_first_day",
    "The access would end before it begins, so it ends on its first day.",
    field="expiry_date",
)
STAYS_UNTIL_THEN = _row(
    "stays_until_then",
    "The dates of the row begin later: the access that is in force stays until the day before.",
    field="effective_date",
)
BEGIN_POSTPONED = _row(
    "begin_postponed",
    "The access was to begin on an earlier day that is yet to come, and begins on the day of the row "
    "now. If the days before are right too, send them again: a table with the earlier "
    "effective_date, an 834 with a coverage that ends before the later one begins.",
    field="effective_date",
)
END_STAYS = _row(
    "end_stays",
    "The row has no expiry_date, and the stored one, which is still to come, stays: to clear it, send "
    r"the column with \N (JSON: null).",
    field="expiry_date",
)
TOO_MANY_COVERAGES = _row(
    "too_many_coverages",
    "With the row the member would have more than 40 coverages that are not over: the sender has to "
    "end those that the member has no more.",
    field="effective_date",
)
OTHER_COVERAGE_OPEN = _row(
    "other_coverage_open",
    "The row ends or removes a coverage, and the access goes on by another one. If that has ended "
    "too, the sender has to end it.",
    field="expiry_date",
)
DEPENDENTS_STAY = _row(
    "dependents_stay",
    "The 834 ends a subscriber, and dependents of the family keep their access: the sender has to "
    "end them too, if it has to end.",
    field="expiry_date",
)
DEATH_REPORTED = _row(
    "death_reported",
    "The 834 has a date of death (INS12), and does not end the member: the sender has to end it.",
    field="expiry_date",
)
EMPLOYMENT_ENDED = _row(
    "employment_ended",
    "The 834 says that the employment has ended (INS08 = TE), and does not end the member "
    "(INS03 = 001): the sender has to end its coverages, if they end.",
    field="expiry_date",
)
NOTHING_TO_END = _row(
    "nothing_to_end", "The row ends a member that the plan does not have.", field="external_id"
)
CHANGED_SINCE = _row(
    "changed_since",
    "The record was changed after the file came (an undo: after the file was applied), so it is left "
    "as it is.",
)


def dropped(field: str) -> Code:
    """The warning that a row was applied without its value of the field."""
    sentence = (
        f"The {field} of the row can't be used; the row was applied without it, and a stored value "
        "stays."
    )
    return _row(f"{field}_dropped", sentence, field=field)
