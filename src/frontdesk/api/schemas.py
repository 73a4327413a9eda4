"""Every named schema of the OpenAPI document: the JSON bodies (docs/interface.md), the member's from the table of its fields,
and the mapping of eligibility files; and the notation of the interface's tables.

A table has a line for each field, `name?: type {keywords} — text`. A `?` behind the name: the field may be missing; behind the
type: it may be null. `[]` is an array, `"a"|"b"` are the words to choose from. Other types are those of the table's `types`, or
schemas by name. Keywords are JSON Schema. A line that is indented by 8 spaces continues the line above.

What the mapping's schema takes is what the parser takes (`mapping.parser`), but for four rules: a date of `open` is a real one,
no two names of columns, nor two words, are the same once letter case and spaces are taken away, and an open question is taken
with a rule for its column in `end` or `skip`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from frontdesk.api.oauth import OAUTH_ERRORS
from frontdesk.eligibility.fields import FIELDS, GENDERS, REQUIRED, Field
from frontdesk.eligibility.model import ANSWERED, FAULT_CODES
from frontdesk.files.model import COUNTS, FILE_PROBLEMS, FileState, FileStep
from frontdesk.formats.model import DELIMITERS, SEARCHED_ROWS, FileMode, Format
from frontdesk.mapping import parser as mapping
from frontdesk.mapping import values
from frontdesk.mapping.parser import LONGEST_SHEET_NAME
from frontdesk.plans.changes import DESCRIPTION_LENGTH, NAME_LENGTH
from frontdesk.web.problems import EXACT_CODES, PROBLEMS

Schema = dict[str, Any]

# The types that several tables use.
COMMON_TYPES: dict[str, Schema] = {
    **{name: {"type": name} for name in ("string", "integer", "number", "boolean", "object")},
    "count": {"type": "integer", "minimum": 0},
    "time": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "format": {"type": "string", "enum": [*map(str, Format)]},
    "file_state": {"type": "string", "enum": [*map(str, FileState)]},
    "header_row": {"type": "integer", "minimum": 1, "maximum": SEARCHED_ROWS},
    "sheet": {"type": "string", "minLength": 1, "maxLength": LONGEST_SHEET_NAME},
}
_LINE = re.compile(r"(\S+?)(\??): (\S+)(?: (\{.*?\}))?(?: — (.*))?")


class NotedField(NamedTuple):
    """A line of a table. `schema` is without the text."""

    name: str
    is_optional: bool
    schema: Schema
    text: str | None


def read_fields(table: str, types: Mapping[str, Schema]) -> Iterator[NotedField]:
    """The fields of a table."""
    for line in re.sub(r"\n {8,}", " ", table.strip()).splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(line)
        name, optional, type_, keywords, text = match.groups()
        yield NotedField(name, bool(optional), _schema(type_, types) | json.loads(keywords or "{}"), text)


def read_objects(table: str, types: Mapping[str, Schema], *, closed: bool = False) -> dict[str, Schema]:
    """The schemas of a table of objects: `Name: text` is followed by its fields, indented. Only `closed` ones refuse others."""
    schemas: dict[str, Schema] = {}
    for block in re.split(r"\n(?=\S)", re.sub(r"\n {8,}", " ", table.strip())):
        title, _, lines = block.partition("\n")
        name, _, text = title.partition(": ")
        fields = [*read_fields(lines, types)]
        schema: Schema = {
            "type": "object",
            "description": text,
            "properties": {each.name: described(each) for each in fields},
        }
        schema |= {"additionalProperties": False} if closed else {}
        required = [each.name for each in fields if not each.is_optional]
        schemas[name] = schema | ({"required": required} if required else {})
    return schemas


def described(noted: NotedField) -> Schema:
    """The field's schema with its text."""
    return noted.schema | ({"description": noted.text} if noted.text else {})


def ref(name: str) -> Schema:
    """A reference to a named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def explained(codes: Mapping[str, str]) -> str:
    """A list of codes and their meanings, in Markdown."""
    return "\n".join(f"- `{code}`: {text}" for code, text in codes.items())


def _schema(type_: str, types: Mapping[str, Schema]) -> Schema:
    if type_.endswith("?"):
        schema = _schema(type_[:-1], types)
        if "$ref" in schema:
            return {"anyOf": [schema, {"type": "null"}]}
        choices = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return schema | {"type": [schema["type"], "null"]} | choices
    if type_.endswith("[]"):
        return {"type": "array", "items": _schema(type_[:-2], types)}
    if words := re.findall('"([^"]*)"', type_):
        return {"type": "string"} | ({"enum": words} if len(words) > 1 else {"const": words[0]})
    return types[type_] if type_ in types else ref(type_)


_TEXT: Schema = {"type": "string"}
_NOT_BLANK: Schema = {"type": "string", "pattern": r"\S"}
_VALUE: Schema = {"type": "string", "maxLength": mapping.LONGEST_VALUE}
_COLUMN: Schema = {"type": "string", "pattern": values.COLUMN_NAME.pattern}


def _codes(codes: dict[str, str]) -> Schema:
    return {"type": "string", "enum": list(codes), "description": explained(codes)}


def _whole(pattern: re.Pattern[str], *others: str, **keywords: int) -> Schema:
    return {"type": "string", "pattern": f"^(?:{'|'.join((pattern.pattern, *others))})$"} | keywords


def _one_or_several(one: Schema, most: int = mapping.MOST_WORDS, **keywords: Any) -> Schema:
    """A string, or an array of them."""
    several = {"type": "array", "items": one, "minItems": 1, "maxItems": most} | keywords
    return {"anyOf": [one, several]}


_BODY_TYPES = COMMON_TYPES | {
    "plan_name": {"type": "string", "maxLength": NAME_LENGTH, "pattern": r"\S"},
    "plan_description": {"type": "string", "maxLength": DESCRIPTION_LENGTH},
    "file_problem": _codes(FILE_PROBLEMS),
    **{
        name: {"type": "string", "enum": [*map(str, words)]}
        for name, words in (("file_step", FileStep), ("file_mode", FileMode), ("oauth_error", OAUTH_ERRORS))
    },
    "row_counts": {
        "type": "object",
        "properties": dict.fromkeys(COUNTS, COMMON_TYPES["count"]),
        "additionalProperties": False,
    },
    "fault_code": _codes(FAULT_CODES | EXACT_CODES),
    "problem_type": {
        "type": "string",
        "description": f"Its fragment is the kind of problem: {', '.join(PROBLEMS)}.",
    },
}
_BODIES = r"""
ProviderGroup: The group of doctors that serves a plan.
    id: integer — Primary identifier.
    type: "provider_groups"
    name: string
    external_id: string?
    created_at: time
PlanQueueInfoCacheInfo: How long the queue's values are served.
    ttl: count — How long the values are served, in seconds.
    expires_at: time — When the values are read again.
PlanQueueInfo: The plan's queue; all values are of one moment.
    estimated_wait_time: integer {"minimum": -1} — Seconds until a patient joining now reaches a doctor; -1 when no doctor
        is on duty for the plan.
    queue_length: count — Patients waiting in this plan's queue.
    is_active: boolean — Whether a doctor is on duty for the plan now.
    cache_info?: PlanQueueInfoCacheInfo
PlanQueueInterval: The interval of the wait: a share of the patients joining now is expected to wait for so long. The ends
        count.
    share: number — The share of the waits that is expected between the ends: 0.8.
    low: integer? — Seconds; null when no doctor is on duty for the plan.
    high: integer? — Seconds; null when no doctor is on duty for the plan.
Plan: A plan. Only reads have `queue_info`.
    id: integer — Primary identifier of the plan in the service.
    type: "plans"
    external_id: string — Identifier of the plan outside the service.
    name: string
    description: string?
    active: boolean — Whether the plan accepts patients; not the same as `queue_info.is_active`.
    created_at: time
    provider_group: ProviderGroup
    queue_info?: PlanQueueInfo
    queue_interval?: PlanQueueInterval
PageLinks: Addresses of this page and of the next.
    self: string — The request's address.
    next?: string — The next page, if there is one.
Plans: Plans in the order of `id`; one plan is an array of one.
    links: PageLinks
    data: Plan[]
PlanPatch: Absent fields keep their values; `{}` changes nothing. The plan's other fields may be sent back, but another `id`,
        `type`, `active` or `created_at` is the fault `read_only`.
    name?: plan_name
    description?: plan_description? — null or blank clears it.
    external_id?: plan_name — Unique among the account's plans.
FileProblem: Why the file failed or is held.
    code: file_problem
    message: string — The reason in words; it never repeats what the file says.
    place: integer? — Row (834: segment) at fault; the first is 1.
    suggestion?: object {"additionalProperties": true} — `needs_mapping`: the suggested `mapping`, its `reasons` and
        figures.
UsedMapping: The mapping that read the file.
    name: string? — Name of the account's mapping; null for one that came with the file.
    version: string {"pattern": "^[0-9a-f]{12}$"} — First digits of the SHA-256 of its JSON, keys in order.
File: An eligibility file and how far it is.
    id: integer — Primary identifier.
    type: "eligibility_files"
    plan_id: integer — Plan of the file's members.
    undoes_id: integer? — The file that this one takes back.
    state: file_state — `held`: a person has to approve it.
    step: file_step — What is done now or was done last: check the file, apply its rows, end the members that
        a full file omits.
    mode: file_mode — What the upload said, else what an 834 says of itself. `compare` reports differences
        and writes nothing.
    dry_run: boolean — Whether nothing is written.
    client: string — Who handed it in: the `client_id`, or `cli:` and the operator.
    file_name: string? {"maxLength": 255} — Its name, if the upload gave one.
    format: format? — null until it is known.
    encoding: string? — Of its text; until the check has ended, the declared one.
    delimiter: string? — Between the columns of a CSV; null until it is known.
    sheet: string? — The sheet that is asked for; null stands for the first one that is shown.
    mapping: UsedMapping?
    file_date: date? — The date that the file states, else the day it came.
    size_bytes: count — Size of the body as it was sent.
    sha256: sha256? — SHA-256 of the body as it was sent.
    rows_total: count? — null until the check has ended.
    rows_done: count
    counts: row_counts — Rows by outcome, where there are any. A row that is `warned` counts twice.
    codes: object {"additionalProperties": {"type": "integer", "minimum": 0}} — Report lines by code.
    members_before: count? — Full file: the plan's members with access before it.
    members_missing: count? — Full file: the members that it omits.
    ignored_columns: string[] — Columns (CSV) and keys (JSON lines) that are no field; 40 characters of each, 20 at most.
    problem: FileProblem?
    created_at: time
    started_at: time? — null until a worker has begun with the rows.
    finished_at: time? — null until the file has ended.
FileLinks: Addresses of the file and of its report.
    self: string
    report: string
EligibilityFile: An eligibility file in its envelope.
    links: FileLinks
    data: File
EligibilityFiles: A page of eligibility files, the newest first.
    links: PageLinks
    data: File[]
StoredMapping: A mapping that the account keeps.
    type: "eligibility_mappings"
    name: string
    is_default: boolean — Whether files that come without a mapping are read by it.
    changed_at: time
    mapping: object — As it was sent.
MappingLinks: The request's address.
    self: string
EligibilityMapping: A mapping in its envelope.
    links: MappingLinks
    data: StoredMapping
EligibilityMappings: Every mapping of the account, by name.
    links: MappingLinks
    data: StoredMapping[]
SuggestedColumn: A column of the file, and what it may hold.
    column: string — Its name in the file.
    fields: string[] — Fields that the mapping makes of it; none if it is not used.
    confidence: number {"minimum": 0, "maximum": 1} — How sure that is: its name and its values count.
    samples: string[] {"maxItems": 5} — The most frequent shapes of its values: letters are X and x, digits 9.
    note: string? — Why it is not used although its name is that of an identifier.
AnswerChoice: An answer that a person may give.
    does: string — What it does.
    mapping: object {"$ref": "#/components/schemas/Mapping"} — What it adds to the mapping.
SuggestionQuestion: A column that a person has to decide about.
    column: string — Its name in the file.
    question: string — What it may be.
    choices: AnswerChoice[] — The answers.
RefusedRows: Rows that one fault would refuse.
    field: string
    code: string
    rows: count
    advice: string? — What to give for a field that no column holds, with an example.
MappingSuggestion: A mapping that would read the file. No value of a member is in it.
    type: "mapping_suggestions"
    format: format
    rows: count — Rows that were looked at: 1,000 at most.
    mapping: object {"additionalProperties": true} — To be stored or sent once `questions` are answered in it.
    columns: SuggestedColumn[]
    questions: SuggestionQuestion[] — What a person has to answer: a mapping that says `open` of a column is refused.
    refused_rows: count — Rows that would be refused, if their members were new.
    skipped_rows: count — Rows that the mapping leaves out, such as totals.
    refused: RefusedRows[] — What would refuse them; a row may have several faults.
    reasons?: string[] — Of an 834: why its members are named so.
    people?: count — Of an 834: the people that it names.
    dependents?: count — Of an 834: how many of them are dependents.
    references?: ReferenceFigures[] — Of an 834: who carries which reference.
ReferenceFigures: A reference of an 834 that members carry.
    reference: string
    people: count — Those who carry it.
    with_others: count — Those who carry a value that somebody else carries, too.
    looks_like_ssn: boolean
EligibilityMappingSuggestion: A suggestion in its envelope.
    links: MappingLinks
    data: MappingSuggestion
TokenRequest: A token request. Leave `client_id` and `client_secret` out with HTTP Basic.
    client_id?: string
    client_secret?: string
    grant_type: "client_credentials"
    scope?: string — Scopes of the client, separated by spaces; without it, all of them.
RevocationRequest: A revocation. Leave `client_id` and `client_secret` out with HTTP Basic.
    client_id?: string
    client_secret?: string
    token: string {"minLength": 1}
    token_type_hint?: string — Changes nothing.
Token: An access token.
    access_token: string — Sent as `Authorization: Bearer …`.
    token_type: "bearer"
    expires_in: integer — Lifetime in seconds.
    scope: string
    created_at: integer — Seconds since 1970.
Fault: One field at fault.
    field: string — The body's member, dotted below it (`metadata.color`), or the query parameter.
    code: fault_code
    message: string — The rule in words; it never repeats the value.
    did_you_mean?: string — The known name near to an unknown field or parameter.
Problem: Problem details (RFC 9457).
    type: problem_type
    title: string
    status: integer
    detail: string
    instance: string — The request's path.
    request_id: string
    errors?: Fault[] {"minItems": 1} — All faults, or what is wrong more exactly.
    did_you_mean?: object {"additionalProperties": {"type": "string"}} — Fields and parameters that were ignored, each
        with the known name that is near to it.
OAuthError: An error of RFC 6749, section 5.2.
    error: oauth_error
    error_description: string
Health: Health of the process.
    status: "ok"|"ready"
    revision?: string — Of the database.
"""

# No constant is an identifier.
_IDENTIFIERS = "|".join(name for name, field in FIELDS.items() if field.unique)
_TARGETS = "|".join(
    [name for name, field in FIELDS.items() if not field.unique]
    + [values.PLAN, values.FAMILY, values.METADATA_FIELD.pattern]
)
_FIELD_NAMES: list[Schema] = [{"type": "string", "enum": list(FIELDS)}, _whole(values.METADATA_FIELD)]
_WAY = _whole(mapping.WAY, maxLength=mapping.LONGEST_WAY)
_DAY = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "format": "date"}

_MAPPING_TYPES = COMMON_TYPES | {
    "columns": {
        "type": "object",
        "propertyNames": {"pattern": values.COLUMN_NAME.pattern},
        "additionalProperties": {"anyOf": [*_FIELD_NAMES, {"type": "null"}]},
    },
    "rules": {
        "type": "object",
        "description": "Field, `metadata.KEY`, `plan` or `family` to the rule that makes its value.",
        "properties": {},
        "additionalProperties": False,
        "patternProperties": {
            f"^(?:{_IDENTIFIERS})$": ref("MappingSteps"),
            f"^(?:{_TARGETS})$": ref("MappingRule"),
        },
        "maxProperties": mapping.MOST_RULES,
    },
    "row_rules": {"type": "array", "items": ref("MappingRowRule"), "maxItems": mapping.MOST_ROW_RULES},
    "answers": {
        "type": "object",
        "propertyNames": {"pattern": values.COLUMN_NAME.pattern},
        "additionalProperties": {"type": "string", "enum": [mapping.UNRELATED]},
    },
    "delimiter": {"type": "string", "enum": list(DELIMITERS)},
    "plans": {"type": "object", "additionalProperties": _NOT_BLANK},
    "column": _COLUMN | {"maxLength": mapping.LONGEST_VALUE},
    "columns_to_join": _one_or_several(_COLUMN, mapping.MOST_JOINED, uniqueItems=True),
    "words": _one_or_several(_TEXT),
    "nonblank_words": _one_or_several(_NOT_BLANK),
    "joint": {"type": "string", "maxLength": mapping.LONGEST_JOIN},
    "name_part": {"type": "string", "enum": list(values.CELL_PARTS)},
    "values": {
        "type": "object",
        "additionalProperties": {"anyOf": [_VALUE, {"type": "boolean"}, {"type": "null"}]},
    },
    "date_formats": _one_or_several(_whole(values.DATE_FORMAT, values.EXCEL_SERIAL), mapping.MOST_FORMATS),
    "days": _one_or_several(_DAY),
    "width": {"type": "integer", "minimum": 1, "maximum": mapping.LONGEST_PAD},
    "constant": {"anyOf": [_NOT_BLANK | {"maxLength": mapping.LONGEST_VALUE}, {"type": "boolean"}]},
    "lines": {
        "anyOf": [
            {"type": "string", "const": mapping.EVERY_LINE},
            {"type": "array", "items": _NOT_BLANK, "minItems": 1},
        ]
    },
    "way": _WAY,
    "member_way": {"anyOf": [_WAY, ref("MemberWays")]},
    "reference": _whole(mapping.REFERENCE),
    "plan_ways": _one_or_several(
        _whole(mapping.SOURCES, maxLength=mapping.LONGEST_WAY), mapping.MOST_ALTERNATIVES
    ),
    "family_word": {"type": "string", "enum": list(mapping.FAMILY_WORDS)},
    "verify_word": {"type": "string", "enum": list(mapping.VERIFY_WORDS)},
    "counts_word": {"type": "string", "enum": list(mapping.COUNTS_WORDS)},
}
_MAPPING = r"""
Mapping: How the files of a sender name things, and how their values are read. Names of fields may also be in another letter
        case.
    columns?: columns — Column to field or `metadata.KEY`; to null if the column is not to be read.
    fields?: rules
    skip?: row_rules — Rows to leave out, also those of `end`.
    end?: row_rules — Rows that end their members, on their `expiry_date`, else on the day of the file.
    questions?: answers — Columns of a suggestion that may say whose access has ended, answered: `unrelated` says nothing
        about access. `open`, as suggestions have it, is refused until `end` or `skip` names it.
    delimiter?: delimiter
    header_row?: header_row — The row with the names of the columns; without it the row is found.
    sheet?: sheet — The sheet of a workbook.
    clear?: nonblank_words — The words that clear a field, instead of `\N`.
    plans?: plans — What the file calls a plan to the plan's `external_id`.
    ssn?: "plain" — Social security numbers may be identifiers, stored and shown as they are.
    834?: MappingOf834
MappingRule: How the value of one field is made.
MappingSteps: The steps that make a value, taken in this order: column, join, part, values, dates, open, pad.
    column?: columns_to_join — The column, or columns to join; without it the one that has the field's name.
    join?: joint — What stands between joined cells; a space by default.
    blank?: joint — What stands for a joined cell, other than the first, that is blank.
    part?: name_part — What to take of the cell.
    values?: values — Word to value, in any letter case; the empty word is a blank cell, null clears the field.
    dates?: date_formats — Formats such as `MM/DD/YYYY`, `DD-MON-YY` or `excel`; the first that fits counts. `YY` needs
        `pivot`.
    pivot?: integer {"minimum": 0, "maximum": 99} — Two-digit years up to this are 20YY, others 19YY.
    open?: days — Dates that mean no end: the field is cleared.
    pad?: width — Zeros are added until there are so many digits.
MappingConstant: The same value in every row.
    constant: constant — The value of every row.
MappingRowRule: Rows by a cell.
    column: column — The column whose cell is looked at.
    equals?: words — The whole cell, in any letter case; the empty text is a blank cell.
    starts_with?: nonblank_words — What the cell begins with, in any letter case.
MappingOf834: What an account says of its 834s.
    coverages?: lines — The insurance lines whose coverages count.
    identify?: member_way — What the `external_id` is made from: one way, or one each for subscribers and dependents.
    member_id?: member_way — What the `member_id` is made from; without it, what the `external_id` is.
    person_code?: reference — The reference with a person's number in the family; `REF*17` by default.
    plan?: plan_ways — What names the plan.
    family_coverage?: family_word — Whether a subscriber's coverage for the family (HD05) covers dependents without their own.
    verify?: verify_word — The meaning of BGN08 = 4.
    counts?: counts_word — Whether wrong counts are refused.
MemberWays: What identifiers are made from: one way each for subscribers and dependents.
    subscriber: way
    dependent: way
"""


def schemas() -> dict[str, Schema]:
    """Every named schema. Bodies stay open to unknown fields, because the service ignores them."""
    return read_objects(_BODIES, _BODY_TYPES) | _member_schemas() | _mapping_schemas()


def _mapping_schemas() -> dict[str, Schema]:
    found = read_objects(_MAPPING, _MAPPING_TYPES, closed=True)
    text = found["MappingRule"]["description"]
    found["MappingRule"] = {"anyOf": [ref("MappingSteps"), ref("MappingConstant")], "description": text}
    long_years = _one_or_several({"type": "string", "pattern": "^(?:[^Y]*YYYY[^Y]*|[^Y]*)$"})
    found["MappingSteps"]["anyOf"] = [{"required": ["pivot"]}, {"properties": {"dates": long_years}}]
    found["MappingRowRule"]["anyOf"] = [{"required": ["equals"]}, {"required": ["starts_with"]}]
    return found


def _member_schemas() -> dict[str, Schema]:
    properties = {field.name: _member_property(field) for field in FIELDS.values()}
    answered: dict[str, Schema] = dict.fromkeys(ANSWERED, _TEXT) | {
        "id": {"type": "integer", "description": "Identifier of the member record."},
        "dob": COMMON_TYPES["date"],
        "gender": _TEXT | {"enum": sorted(GENDERS)},
        "metadata": {"type": "object", "additionalProperties": _TEXT},
    }
    return {
        # Two whole objects: generators of clients lose what an `allOf` requires beyond the object that it extends.
        "EligibleMember": {
            "description": "A new member, or a change of a stored one: the `external_id` decides.",
            "anyOf": [ref("NewMember"), ref("MemberChange")],
        },
        "NewMember": {
            "type": "object",
            "description": "A member that may be new. Text is trimmed and must not hold control characters.",
            "properties": properties,
            "required": list(REQUIRED),
        },
        "MemberChange": {
            "type": "object",
            "description": "A change of a stored member: absent fields keep their values, and null or blank clears an optional "
            "one. Text is trimmed and must not hold control characters.",
            "properties": properties,
            "required": ["external_id"],
        },
        "Eligibility": {
            "type": "object",
            "description": "These nine fields, and no others.",
            "properties": answered,
            "required": list(ANSWERED),
        },
    }


def _member_property(field: Field) -> Schema:
    """The field's schema, widened by what every field allows: spaces around text, and null or blank to clear it."""
    schema = dict(field.kind.schema)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "pattern" in schema:
        again = "" if field.required else "?"
        schema["pattern"] = rf"^\s*(?:{schema['pattern'][1:-1]}){again}\s*$"
    elif field.required:
        schema["pattern"] = r"\S"  # not blank
    elif "string" not in types:
        schema["pattern"] = r"^\s*$"  # blank
    if not field.required:
        schema["type"] = [*types, "null"] if "string" in types else [*types, "string", "null"]
    note = "Required for a new member; never null or blank." if field.required else "null or blank clears it."
    return schema | {"description": f"{field.description} {note}", "examples": [field.example]}
