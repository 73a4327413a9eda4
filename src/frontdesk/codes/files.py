"""Problems of a whole file: what makes it unreadable, what holds it, what ends it early."""

from functools import partial

from frontdesk.codes.model import Code, Kind, Remedy, Where

_file = partial(Code.declared, Where.FILE)
_unreadable = partial(_file, kind=Kind.MALFORMED)

EMPTY = _unreadable("empty", "There is nothing in the file.")
NO_ROWS = _unreadable("no_rows", "There is no member in the file.")
NO_HEADER = _unreadable(
    "no_header",
    "None of the first rows names a field of a member: name the columns in a mapping, or say "
    "which row is the header.",
    remedy=Remedy.SAY_HEADER,
)
NO_KEY_COLUMN = _unreadable(
    "no_key_column",
    "No column of a CSV holds the external_id: name the column in a mapping.",
    remedy=Remedy.GIVE_MAPPING,
)
REPEATED_COLUMN = _unreadable(
    "repeated_column",
    "Two columns hold the same field: give one of them null in the mapping, of two with one name "
    "by NAME#2.",
    remedy=Remedy.GIVE_MAPPING,
)
MISSING_COLUMN = _unreadable(
    "missing_column",
    "The mapping names a column that the file does not have: correct the name in the mapping "
    "or in the file.",
    remedy=Remedy.GIVE_MAPPING,
)
UNKNOWN_ENCODING = _unreadable(
    "unknown_encoding",
    "The declared encoding is not supported: declare another.",
    remedy=Remedy.DECLARE_ENCODING,
)
WRONG_ENCODING = _unreadable(
    "wrong_encoding",
    "The bytes are not in the declared encoding: declare the encoding of the file.",
    remedy=Remedy.DECLARE_ENCODING,
)
NOT_TEXT = _unreadable(
    "not_text", "The file is an image or other binary data, not a text: send it as CSV or .xlsx."
)
NOT_WORKBOOK = _unreadable(
    "not_workbook",
    "The file is a ZIP archive, or another kind of file, and no workbook (.xlsx): save it as "
    "one, or as CSV.",
)
BAD_WORKBOOK = _unreadable(
    "bad_workbook", "The workbook is damaged or cut off, or declares entities: save it again."
)
OLD_WORKBOOK = _unreadable(
    "old_workbook",
    "The file is a workbook of an older kind (.xls), or has a password: save it as .xlsx, "
    "without one.",
)
ENCRYPTED_WORKBOOK = _unreadable(
    "encrypted_workbook", "The workbook has a password: save it without one."
)
NO_SHEET = _unreadable(
    "no_sheet",
    "The workbook has no sheet, or none of the given name: name one of its sheets.",
    remedy=Remedy.NAME_SHEET,
)
SHEET_TOO_LARGE = _unreadable(
    "sheet_too_large",
    "The sheet is too large to be read in bounded memory: delete cells far below or beside "
    "the table, or save it as CSV.",
)
BAD_JSON_ARRAY = _unreadable(
    "bad_json_array",
    "The JSON array has, or is followed by, something other than JSON values with commas "
    "between them, or over 64 KiB of spaces in a row.",
)
LINE_TOO_LONG = _unreadable(
    "line_too_long", "A line, row or segment is longer than any member can be."
)
ROWS_RUN_TOGETHER = _unreadable(
    "rows_run_together", "A quotation mark is not closed, so the ends of the rows are unknown."
)
CUT_OFF = _unreadable("cut_off", "The file ends in the middle: send the whole file again.")
NOT_GZIP = _unreadable("not_gzip", "The compressed data is damaged: pack the file again.")
TOO_LARGE = _unreadable("too_large", "The content exceeds the largest size.")
ZIP_BOMB = _unreadable(
    "zip_bomb", "The compressed data unpacks to far more than a list of members needs."
)
LOOKS_LIKE_SSN = _unreadable(
    "looks_like_ssn",
    "Most values of an identifier look like social security numbers: use another column, or "
    'set "ssn": "plain" in a mapping.',
    remedy=Remedy.GIVE_MAPPING,
)
NOT_X12 = _unreadable(
    "not_x12",
    "The file does not begin with an ISA segment, or the segment is damaged: send the file as "
    "it was written.",
)
WRONG_VERSION = _unreadable(
    "wrong_version", "The file is not an 834 of version 005010X220A1, or of 004010X095A1."
)
WRONG_ORDER = _unreadable("wrong_order", "A segment is out of order.")
WRONG_COUNT = _unreadable(
    "wrong_count",
    "A count or control number of SE, GE or IEA does not agree with the file. Wrong counts, and "
    'another SE02, pass with "counts": "lenient" in the mapping.',
    remedy=Remedy.GIVE_MAPPING,
)
UNKNOWN_PURPOSE = _unreadable(
    "unknown_purpose",
    "BGN08 is neither blank nor 2, 4 or RX: say the mode of the file.",
    remedy=Remedy.SAY_MODE,
)
WRONG_DATE = _unreadable("wrong_date", "BGN03, the date of the file, is not a real date.")
MIXED_PURPOSES = _unreadable(
    "mixed_purposes",
    "The transactions of the file have different BGN08, or its interchanges different ISA15: send "
    "them as separate files, or say the mode of the file.",
    remedy=Remedy.SAY_MODE,
)

# Why a file is held until a person decides about it.
TOO_MANY_MOVES = _file(
    "too_many_moves",
    "Too many members would move here from other plans; a person has to approve the file.",
    remedy=Remedy.APPROVE_FILE,
)
TOO_MANY_OTHER_PEOPLE = _file(
    "too_many_other_people",
    "Too many rows describe other people than the stored members with their identifiers: the rows "
    "have shifted against the identifiers, or two senders use the same numbers. Correct the file, or "
    "approve it.",
    remedy=Remedy.APPROVE_FILE,
)
TOO_MANY_SIMILAR = _file(
    "too_many_similar",
    "Too many new members look like stored ones that the file omits, as if the sender had "
    "renumbered them; rename those first, or approve the file.",
    remedy=Remedy.RENAME_MEMBERS,
)
TOO_MANY_LOSE_ACCESS = _file(
    "too_many_lose_access",
    "Too many members would lose access on some day from today on, whatever the cause; a person has "
    "to approve the file.",
    remedy=Remedy.APPROVE_FILE,
)
BEGINS_LATER = _file(
    "begins_later",
    "The access of too many members would begin after today: the full file may be the list of a "
    "later day. Load it with the mode change, or approve it.",
    remedy=Remedy.APPROVE_FILE,
)
TOO_MANY_ENDS = _file(
    "too_many_ends",
    "A full file would end members, and it is much smaller than the last one, or a refused row that "
    "names nobody may be one of them; a person has to approve the file.",
    remedy=Remedy.APPROVE_FILE,
)
TOO_MANY_PLACEHOLDERS = _file(
    "too_many_placeholders",
    "Most values of a column stand for none, such as none@none.com, and would be left out; name "
    "another column, or approve the file.",
    remedy=Remedy.APPROVE_FILE,
)
OLDER_THAN_APPLIED = _file(
    "older_than_applied",
    "The 834 is dated before one that was applied to the plan from the same sender: cancel it, or "
    "approve it if it is meant.",
    remedy=Remedy.APPROVE_FILE,
)
OVERTAKEN = _file(
    "overtaken",
    "A newer file of the plan was applied. A full file can only be cancelled; of a change file that "
    "is approved, the rows of members that were changed since are refused.",
    remedy=Remedy.CANCEL_FILE,
)

# Why a file is held for a mapping, or ended early.
NEEDS_MAPPING = _file(
    "needs_mapping",
    "The mapping does not say how the 834 names its members (identify). A person has to "
    "accept the suggested mapping or give another.",
    remedy=Remedy.ACCEPT_MAPPING,
)
ONLY_COMPARED = _file(
    "only_compared",
    "BGN08 is 4 (for comparison). Nothing was written; the report lists the differences. If "
    'the sender means a full file, set this in the mapping: {"834": {"verify": "full"}}',
    remedy=Remedy.GIVE_MAPPING,
)
ONLY_TESTED = _file(
    "only_tested",
    "ISA15 is T (a test), so the file was a dry run and nothing was written. If the sender means it, "
    'ISA15 has to be P, or set this in the mapping: {"834": {"tests": "apply"}}',
    remedy=Remedy.GIVE_MAPPING,
)
ALL_REFUSED = _file(
    "all_refused", "The first 10,000 rows were all refused, so the rest was not read."
)
TOO_MANY_ROWS = _file(
    "too_many_rows",
    "The file could store more than the account may in a day, so nothing of it was applied: "
    "send it in parts on several days, or ask the operator for a larger quota.",
)
BAD_MAPPING = _file(
    "bad_mapping",
    "The mapping can't be used: correct the part that the message names.",
    remedy=Remedy.GIVE_MAPPING,
)
INTERNAL = _file(
    "internal", "A fault of the service; applied rows stay applied, and the report lists them."
)

BRAKES = (
    TOO_MANY_MOVES,
    TOO_MANY_OTHER_PEOPLE,
    TOO_MANY_SIMILAR,
    TOO_MANY_PLACEHOLDERS,
    TOO_MANY_LOSE_ACCESS,
    BEGINS_LATER,
    TOO_MANY_ENDS,
    OLDER_THAN_APPLIED,
    OVERTAKEN,
)
