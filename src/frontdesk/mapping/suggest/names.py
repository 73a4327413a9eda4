"""Senders' names of the fields, and their words in columns with few values: HR and payroll exports
in English.

A name is compared by its words: without accents and letter case, with the usual abbreviations spelt
out.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping

from frontdesk.eligibility.field_kinds import HIPAA_RELATIONSHIPS
from frontdesk.eligibility.fields import FIELDS
from frontdesk.mapping.values import words_in

FULL_NAME = "full name"  # first and last name in one column
PERSON_NUMBER = "person number"  # a person's number in the family
RELATIONSHIP = "relationship"
COVERAGE_LINE = "line of coverage"  # what kind of coverage the row is about: medical, dental, …
HIRE_DATE = "hire date"  # the begin of access only where no column of the file has a better date
LONGEST_NAME = 200  # of a column; a longer one is a text

_SPELT_OUT = {
    "number": "no nr num nbr numero",
    "employee": "emp ee empl associate assoc worker staff personnel",
    "date": "dt",
    "effective": "eff",
    "expiry": "exp expiration",
    "termination": "term",
    "zip": "postal post zipcode",
    "first name": "fname firstname",
    "last name": "lname lastname surname",
    "middle name": "middlename mname",
    "dependent": "dependant dep",
    "relationship": "rel relation reln relshp relnshp rltn rltnshp",
    "coverage": "cov",
    "email": "mail",
    "state": "province",
    "phone": "tel telephone mobile cell ph",
    "birth date": "birthdate birthday dob bdate bday birthdt dateofbirth",
    "birth": "brth bth",
    "start": "begin beginning from beg bgn strt",
    "end": "thru through",
    "subscriber": "sub subscr",
    "gender": "sex gndr",
    "id": "identifier identification",
    "member": "mem memb mbr qb",
    "recipient": "recip rcpt",
    "name": "nm",
    "code": "cd",
    "address": "addr adr",
    "residential": "res",
    "county": "cnty",
    "first": "fst frst",
    "last": "lst",
    "middle": "midl",
    "initial": "init",
    "person": "pers",
    "sequence": "seq",
    "certificate": "cert",
    "health": "hlth",
    "enrollment": "enroll enrl enr enrol",
    "disenrollment": "disenroll disenrl",
    "employee id": "emplid empid eid eeid",
    "employee number": "empno empnbr empnum eeno",
    "member id": "mbrid memid",
    "effective date": "effdt",
    "hire date": "doh",
    "date of": "dateof",
    "benefit": "benefits",
    "eligibility": "elig eligible",
    "": "eec eep",
}
_MEANT_BY = {short: words for words, texts in _SPELT_OUT.items() for short in words_in(texts)}
_OTHER_PERSONS = words_in(
    "emergency manager supervisor beneficiary spouse father mother physician doctor provider "
    "employer company agent broker bank"
)
# What a template tells its writers: `Last Name - Required`, `DOB MM/DD/YYYY`.
_REMARKS = words_in(
    "required mandatory optional if applicable format xxx xxxx mm dd yy yyyy ccyy mmddyy mmddyyyy "
    "yyyymmdd ccyymmdd"
)
# Words that name an owner or a place, and say nothing about the field.
_NOISE = words_in(
    "legal home primary address mailing residential residence personal patient current "
    "participant person permanent employee member subscriber dependent recipient demographic business "
    "contact preferred of the biological administrative private at work worker"
)

# Numbers of a person in the files of state Medicaid agencies and of Medicare.
_MEDICAID = (
    "medicaid id|medicaid number|medicaid id number|recipient medicaid id|recipient medicaid number|"
    "mcd id|mcd number|ma id|ma number|maid|mid|rid|pmi|pmi number|cin|client index number|"
    "bene id|mbi"
)
# The names of a field, the best first; after "~" those that may mean something else. The order of
# their words does not matter.
_NAMES = {
    "external_id": "external id|employee id|employee number|employee code|id|uuid|unique id|person id|"
    "person number|record id|patient id|customer id|user id|personal number|file number|"
    "payroll id|position id|participant id|individual id|employee id number|payroll number|employee oid"
    "~member id|subscriber id|recipient id|medicaid id|member number|subscriber code|member code|"
    "member key|badge id|badge number|clock number|code|key",
    "member_id": "member id|member number|card number|card id|insurance id|insurance number|"
    "certificate number|policy number"
    "|subscriber id|subscriber number|enrollee id|program id|medical id|member id number|"
    "subscriber id number|member code|subscriber code|enrollee number|recipient id|recipient number|"
    f"{_MEDICAID}",
    "first_name": "first name|given name|forename|first|given names|given|f name|bene first name",
    "last_name": "last name|family name|last|family|l name|bene last name~maiden name",
    "middle_name": "middle name|middle|middle initial|mi|second name|mid initial",
    "dob": "birth date|born|d o b|bene birth date~birth",
    "gender": "gender|gender code|gender at birth|biological gender|gender identity|m f|gender m f",
    "email": "email|e email|email address|work email|e email address|home email|personal email|email id",
    "phone": "phone|phone number|home phone|work phone|day phone|primary phone",
    "zipcode": "zip|zip code|zip number|zip 4|zip 5|mail zip|mail zip code",
    "city": "city|town|city name|municipality|locality|town or city|mail city",
    "county": "county|county name",
    "state": "state|state code|state abbreviation|region state|state zip|st|state territory code|"
    "state territory|state id"
    "|home state id|region 2|st code|mail state",
    "effective_date": "effective date|coverage start|effective start|period start|valid start|effective"
    "~benefit service date",
    HIRE_DATE: "~start date|start|since|hire date|original hire date|last hire date|rehire date|hired"
    "|most recent hire date|adjusted hire date|employment start date|employment date|joining date|"
    "date joined",
    "expiry_date": "expiry date|coverage end|termination date|end date|valid to|valid until|valid end|"
    "period end|terminated on|date terminated|terminated|separation date|departure date|"
    "stop date|leaving date|exit date|last day of coverage|employment termination date|"
    "disenrollment date|"
    "employment end date|ends|until~last day|last day worked|last date worked|"
    "last day of work|last working day|death date",
    "medical_eligibility": "medical eligibility|is eligibility|benefit eligibility|eligibility",
    "medical_enrollment": "medical enrollment|medical enrolled|enrolled|is enrolled|covered|medical coverage",
    "medical_plan_description": "medical plan description|medical plan|plan description|benefit plan|"
    "coverage plan|medical plan name",
    "payor_name": "payor name|payer name|payor|payer|carrier|carrier name|insurance carrier|insurer|"
    "insurance company"
    "|payor display",
    "payor_plan_name": "payor plan name|payer plan name|plan name|carrier plan name|insurance plan",
    RELATIONSHIP: "relationship|relationship code|relationship type|dependent type|family relationship|"
    "member type|relationship to subscriber|relationship to employee|relationship to member|"
    "relationship to insured|dependent relationship",
    COVERAGE_LINE: "benefit type|plan type|coverage type|benefit|benefit category|coverage line|product type|"
    "product|insurance type|insurance line|insurance line code|benefit line|coverage category|"
    "line of business|lob|policy type|plan category|benefit plan type",
    FULL_NAME: "dependent name|name|full name|last name first name|last first|last name first name mi|"
    "employee name"
    "|member name|patient name|legal name|participant name|payroll name"
    "~employee",
    PERSON_NUMBER: "person code|dependent number|dependent id|dependent code|person number|member suffix|"
    "suffix|suffix number|dependent sequence|dependent seq|dependent person code|"
    "family member number|person seq|sequence number|family sequence|"
    "dependent sequence number|employee dependent number",
}
# `Birth Date (MM/DD/YYYY)`, `Last Name [Required]`, `name.0.given[0]`
_ASIDE = re.compile(r"\([^)]*\)|\[[^]]*\]|\{[^}]*\}|<[^>]*>|[.][0-9]+(?=[.\[]|$)")
# Dates of access under a name that is not in the table: each word is one of these, and there is one
# of the first.
_OF_ACCESS = words_in(
    "eligibility coverage benefit effective medical health insurance plan enrollment cobra "
    "medicaid span"
)
_OF_BEGIN = words_in("start date first day")
_OF_END = words_in("end termination expiry stop to until last disenrollment")
_OF_LEAVING = words_in(
    "termination terminated separation departure leaving exit employment worked working"
)
_ALONE = {"external_id", FULL_NAME}  # never meant by a shortened name
GOOD_NAME = 1.0
_SHORTENED_NAME = 0.9
_OTHER_MEANING = 0.6
_DEPENDENTS_NAME = 0.5


def words_of(name: str) -> list[str]:
    """The words that are compared."""
    text = re.sub(
        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name.replace("#", " number ")
    )
    plain = unicodedata.normalize("NFKD", text).casefold()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    found = (word for word in re.findall("[a-z]+|[0-9]+", plain) if word not in _REMARKS)
    spelt = (_MEANT_BY.get(word, word) for word in found)
    return " ".join(spelt).replace("qualified beneficiary", "member").split()


def _key(words: Iterable[str]) -> str:
    """Equal for `Date of Birth` and `Birth Date`, and for `Employee_EmployeeNumber` and `Employee
    Number`.
    """
    return " ".join(sorted({*words} - {"of", "the"}))


# Phrase to the fields that it may mean, each with a score: earlier names of a field are better.
_KNOWN: dict[str, dict[str, float]] = {}
_RUN_TOGETHER: dict[str, str] = {}  # `employeeid` to its phrase
for _field, _text in _NAMES.items():
    for _names, _score in zip(_text.split("~"), (GOOD_NAME, _OTHER_MEANING), strict=False):
        for _place, _name in enumerate(filter(None, _names.split("|"))):
            _phrase = _key(words_of(_name))
            _RUN_TOGETHER.setdefault(_name.replace(" ", ""), _phrase)
            _KNOWN.setdefault(_phrase, {}).setdefault(_field, round(_score - _place * 0.002, 3))
for _field in FIELDS:
    _KNOWN.setdefault(_key(words_of(_field)), {})[_field] = GOOD_NAME


def meanings(name: str) -> dict[str, float]:
    """What a column of this name may hold: fields, FULL_NAME, PERSON_NUMBER, RELATIONSHIP, with
    scores up to 1.
    """
    if len(name) > LONGEST_NAME or not _OTHER_PERSONS.isdisjoint(words := words_of(name)):
        return {}
    phrase = _key(words)
    if (found := _KNOWN.get(_RUN_TOGETHER.get(phrase, phrase))) is not None:
        return dict(found)
    if (plain := _ASIDE.sub("", name)) != name:
        return meanings(plain)
    score = _SHORTENED_NAME if {"dependent", "preferred"}.isdisjoint(words) else _DEPENDENTS_NAME
    # `Home Address - Zip`, `Legal Name: First Name`: the last part decides.
    for text in (name, re.split(r" - |[:/.|]", name)[-1]):
        known = _KNOWN.get(_key(word for word in words_of(text) if word not in _NOISE), {})
        if found := {
            field: round(sure * score, 3) for field, sure in known.items() if field not in _ALONE
        }:
            return found
    return _date_of_access(set(words) - _NOISE)


def _date_of_access(words: set[str]) -> dict[str, float]:
    """`ELIG_FROM_DT`, `Benefits Eligibility Date`, `Health Plan Thru`."""
    if not words <= _OF_ACCESS | _OF_BEGIN | _OF_END or words.isdisjoint(_OF_ACCESS):
        return {}
    if not words.isdisjoint(_OF_END):
        return {"expiry_date": _SHORTENED_NAME}
    return {} if words.isdisjoint(_OF_BEGIN) else {"effective_date": _SHORTENED_NAME}


def ends_employment(name: str) -> bool:
    """True if a date of this name is not about a coverage."""
    return not _OF_LEAVING.isdisjoint(words := words_of(name)) and _OF_ACCESS.isdisjoint(words)


def likely_field(name: str) -> str | None:
    """The field that an unknown name certainly means, or None."""
    meant = meanings(name)
    if {*words_of(name)} == {"start", "date"}:
        return "effective_date"
    sure = {
        field: score
        for field, score in meant.items()
        if field in FIELDS and score >= _SHORTENED_NAME
    }
    return max(sure, key=lambda field: sure[field], default=None)


def _by_word(values: Mapping[str, str]) -> dict[str, str]:
    return {word: value for value, words in values.items() for word in words.split("|")}


GENDER_OF = _by_word(
    {
        "male": "m|male|man|boy|1",  # numbers by ISO 5218
        "female": "f|female|woman|girl|2",
        "other": (
            "x|nonbinary|non-binary|non binary|nb|other|o|transgender|gender nonconforming|"
            "another gender"
        ),
        "unknown": "u|unknown|0|9|n/a|na|unspecified|undisclosed|undeclared|declined|missing|?|-|"
        "not specified|not disclosed|not declared|not provided|not applicable|not known|"
        "prefer not to say|prefer not to answer|prefer not to disclose|i prefer not to say|"
        "i prefer not to answer|decline to answer|decline to state|declined to answer|"
        "declined to state|choose not to disclose",
    }
)
BOOLEAN_OF = dict.fromkeys(
    words_in("y yes true t 1 x enrolled eligible active"), True
) | dict.fromkeys(words_in("n no false f 0 non waived ineligible"), False)
RELATIONSHIP_OF = _by_word(
    {
        "18": "self|employee|subscriber|ee|emp|e|policyholder|primary|insured|member|s",
        "01": "spouse|wife|husband|sp|sps|w|h",
        "53": "domestic partner|life partner|dp|partner|civil union partner",
        "19": "child|son|daughter|ch|c|dependent child|d|biological child|natural child",
        "17": "stepchild|step child|stepson|stepdaughter|sc",
        "09": "adopted child|adopted son|adopted daughter",
        "10": "foster child",
        "15": "ward|legal ward|court ordered child",
        "05": "grandchild|grandson|granddaughter",
        "25": "ex-spouse|ex spouse|former spouse",
        "03": "parent|father|mother",
        "14": "sibling|brother|sister",
        "G8": "other|other relationship|other dependent|disabled dependent",
    }
) | {
    word.casefold(): code
    for code, meaning in HIPAA_RELATIONSHIPS.items()
    for word in (code, meaning)
}

# Words of a status: access has ended or never began, that depends on the plan, it goes on.
ENDED_WORDS = words_in(
    "terminated term termed termination inactive deceased death dead resigned resignation "
    "separated separation cancelled canceled withdrawn withdrew dropped ended expired discharged "
    "dismissed fired quit former lapsed closed discontinued not non t i d x te declined decline "
    "waived waive waiver ineligible opt out"
)
UNSURE_WORDS = words_in(
    "cobra loa leave fmla retired retiree ret suspended furlough furloughed pending disability "
    "disabled ltd std sabbatical layoff laid absence co l p q r s w c u"
)
ACTIVE_WORDS = words_in(
    "active act enrolled eligible covered current employed hired full time part ft pt regular "
    "seasonal temporary temp on off of with without paid unpaid pay voluntary involuntary "
    "employee a ac"
)
STATUS_WORDS = ENDED_WORDS | UNSURE_WORDS | ACTIVE_WORDS
# `Marital Status`, `FLSA Status`, `Status Date`
OTHER_STATUS = words_in(
    "marital civil family tobacco smoker smoking flsa exempt exemption tax filing student "
    "disability veteran military citizenship immigration visa residency medicare vaccination date "
    "reason i9 handicap race ethnicity"
)
