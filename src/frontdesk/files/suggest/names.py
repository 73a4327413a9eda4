"""What senders call the fields of a member: the words of HR and payroll exports, in English, German, French and Spanish.

A name is compared by its words: without accents and letter case, with the usual abbreviations spelt out.
"""

import re
import unicodedata

from frontdesk.eligibility.fields import FIELDS

FULL_NAME = "full name"  # first and last name in one column
PERSON_NUMBER = "person number"  # a person's number in the family
RELATIONSHIP = "relationship"
OFFICIAL = "official number"  # numbers that must not become identifiers
COVERAGE_LINE = "line of coverage"  # what kind of coverage the row is about: medical, dental, …
HIRE_DATE = "hire date"  # the begin of access only where no column has a better date
LONGEST_NAME = 200  # of a column; what is longer is a text

_SPELT_OUT = {
    "no": "number", "nr": "number", "num": "number", "nbr": "number", "nummer": "number", "numero": "number",
    "emp": "employee", "ee": "employee", "empl": "employee", "associate": "employee", "worker": "employee",
    "staff": "employee", "personnel": "employee", "dt": "date", "eff": "effective", "exp": "expiry",
    "expiration": "expiry", "term": "termination", "postal": "zip", "post": "zip", "zipcode": "zip", "plz": "zip",
    "postleitzahl": "zip", "fname": "first name", "firstname": "first name", "lname": "last name",
    "lastname": "last name", "surname": "last name", "middlename": "middle name", "mname": "middle name",
    "dependant": "dependent", "dep": "dependent", "rel": "relationship", "relation": "relationship",
    "cov": "coverage", "tel": "phone", "telephone": "phone", "telefon": "phone", "telefono": "phone",
    "mobile": "phone", "cell": "phone", "birthdate": "birth date", "birthday": "birth date", "dob": "birth date",
    "mail": "email", "begin": "start", "beginning": "start", "thru": "end", "through": "end", "sub": "subscriber",
    "geburtsdatum": "birth date", "vorname": "first name", "nachname": "last name", "familienname": "last name",
    "prenom": "first name", "apellido": "last name", "apellidos": "last name", "geschlecht": "gender", "sex": "gender",
    "sexe": "gender", "sexo": "gender", "ort": "city", "stadt": "city", "wohnort": "city", "ville": "city",
    "ciudad": "city", "bundesland": "state", "province": "state", "courriel": "email", "personalnummer": "employee number",
    "personalnr": "employee number", "mitarbeiternummer": "employee number", "mitarbeiternr": "employee number",
    "matricule": "employee number",
    "identifier": "id", "identification": "id", "mem": "member", "mbr": "member", "subscr": "subscriber", "nm": "name",
    "cd": "code", "addr": "address", "ph": "phone", "emplid": "employee id", "empid": "employee id", "eid": "employee id",
    "effdt": "effective date", "doh": "hire date", "dateof": "date of", "eec": "", "eep": "",
    "benefits": "benefit", "elig": "eligibility", "eligible": "eligibility", "qb": "member", "from": "start",
}  # fmt: skip

_OTHER_PERSONS = {
    *(
        "emergency",
        "manager",
        "supervisor",
        "beneficiary",
        "spouse",
        "father",
        "mother",
        "physician",
        "doctor",
        "provider",
    ),
    *("employer", "company", "agent", "broker", "bank", "arbeitgeber"),
}

# Words that name an owner or a place, and say nothing about the field.
_NOISE = {
    *(
        "legal",
        "home",
        "primary",
        "address",
        "mailing",
        "residential",
        "residence",
        "personal",
        "patient",
        "current",
    ),
    *(
        "participant",
        "person",
        "permanent",
        "employee",
        "member",
        "subscriber",
        "dependent",
        "demographic",
        "business",
    ),
    *(
        "contact",
        "preferred",
        "de",
        "d",
        "of",
        "the",
        "biological",
        "administrative",
        "private",
        "at",
        "work",
        "worker",
        "adresse",
    ),
}

# The names of a field, the best first; after "~" those that may mean something else.
_NAMES = {
    "external_id": "external id|employee id|employee number|employee code|id|uuid|unique id|person id|person number|record id"
    "|patient id|customer id|user id|personal number|file number|payroll id|position id|participant id"
    "~member id|subscriber id|member number|code|key",
    "member_id": "member id|member number|card number|card id|insurance id|insurance number|certificate number|policy number"
    "|subscriber id|subscriber number|enrollee id|program id|versichertennumber|versicherungsnumber|medical id",
    "first_name": "first name|given name|forename|first|nombre|given names|name first|given|name given",
    "last_name": "last name|family name|last|nom|nom famille|nom de famille|name last|family|name family~maiden name",
    "middle_name": "middle name|name middle|middle|middle initial|mi|second name|zweiter vorname",
    "dob": "birth date|date birth|date of birth|date de naissance|date naissance|fecha nacimiento"
    "|fecha de nacimiento|born|dob|d o b",
    "gender": "gender|gender code|gender at birth|biological gender|gender identity|m f|gender m f",
    "email": "email|e email|email address|work email|e email address|email work|home email|personal email|email personal"
    "|adresse email|correo electronico|correo|adresse e email|email id|email addr",
    "phone": "phone|phone number|home phone|phone phone|cell phone|work phone|phone phone number|handy|mobil|day phone"
    "|primary phone|portable",
    "zipcode": "zip|zip code|zip zip|code zip|codigo zip|zip zip code|zip number|zip 4",
    "city": "city|town|city name|municipality|locality|town or city",
    "county": "county|county name|landkreis",
    "state": "state|state code|state province|state abbreviation|region state|state zip"
    "|st|state territory code|state territory|state code province|state id|home state id|region 2",
    "effective_date": "effective date|coverage effective date|coverage start date|coverage start|benefit effective date"
    "|benefit start date|eligibility start date|eligibility effective date|eligibility date"
    "|effective start date|effective start|medical effective date|medical coverage effective date|medical start date"
    "|medical coverage start date|health effective date|health coverage effective date|period start"
    "|date effective|plan effective date|plan start date|enrollment effective date|valid from|effective from"
    "|gultig ab|gultig von|versicherungsbeginn|beginn|date effet|date d effet|date debut|date de debut|fecha efectiva"
    "|fecha inicio|fecha de inicio|effective"
    "~enrollment date|benefit service date",
    HIRE_DATE: "~start date|start|since|hire date|date of hire|date hire|original hire date|last hire date|rehire date|hired"
    "|date of last hire|date of original hire|most recent hire date|adjusted hire date|employment start date|employment date"
    "|date of joining|joining date|date joined|eintrittsdatum|eintritt|date entree|date d entree|date embauche|date d embauche"
    "|fecha ingreso",
    "expiry_date": "expiry date|coverage end date|coverage end|coverage termination date|coverage expiry date"
    "|benefit end date|benefit termination date|eligibility end date|coverage stop date|coverage thru date|termination date"
    "|end date|date end|valid to|valid until"
    "|valid through|effective to|effective end|plan end date|date of termination|gultig bis|austrittsdatum|austritt"
    "|versicherungsende|date fin|date de fin|date sortie|date de sortie|fecha fin|fecha de fin|fecha termino|ends|until"
    "|effective end date|medical end date|medical coverage end date|medical termination date|period end|terminated on"
    "|date terminated|terminated|separation date|departure date|stop date"
    "|date of leaving|leaving date|exit date|last day of coverage|employment termination date|employment end date"
    "~last day|last day worked|last date worked|last day of work|last working day",
    "medical_eligibility": "medical eligibility|medical eligible|eligible|is eligible|benefit eligible",
    "medical_enrollment": "medical enrollment|medical enrolled|enrolled|is enrolled|covered|medical coverage",
    "medical_plan_description": "medical plan description|medical plan|plan description|benefit plan|coverage plan"
    "|medical plan name",
    "payor_name": "payor name|payer name|payor|payer|carrier|carrier name|insurance carrier|insurer|insurance company"
    "|payor display"
    "|krankenkasse|mutuelle",
    "payor_plan_name": "payor plan name|payer plan name|plan name|carrier plan name|insurance plan",
    RELATIONSHIP: "relationship|relationship code|relationship to subscriber|relationship subscriber|relationship type"
    "|relationship to employee|dependent relationship|dependent type|family relationship|lien parente|verwandtschaft"
    "|parentesco|member type|relationship to member|relationship to insured",
    COVERAGE_LINE: "benefit type|plan type|coverage type|benefit|benefit category|line of coverage|coverage line|product type"
    "|product|insurance type|insurance line|insurance line code|benefit line|type of coverage|coverage category"
    "|line of business|lob|policy type|plan category|benefit plan type",
    FULL_NAME: "dependent name|name|full name|last name first name|last first|last name first name mi"
    "|employee name|member name|patient name|legal name|worker name|participant name|nom complet"
    "|nombre completo|payroll name|vollstandiger name",
    PERSON_NUMBER: "person code|dependent number|dependent id|dependent code|person number|member suffix|suffix number"
    "|dependent sequence|dependent seq|dependent person code|family member number"
    "|person seq|sequence number|family sequence|dependent sequence number",
    OFFICIAL: "ssn|social security number|social security|employee ssn|tax id|tax id number|tin|national id|sin|itin|ssn number"
    "|sozialversicherungsnumber|sv number|number securite sociale|number de securite sociale|nir|passport|passport number"
    "|drivers|drivers license|driver license|drivers license number|steuer id|dni|social",
}  # fmt: skip
_ASIDE = re.compile(r"\([^)]*\)")  # `Birth Date (MM/DD/YYYY)`
_INDEX = re.compile(r"[.\[][0-9]+\]?(?=[.\[]|$)")  # `name.0.given.0`, a path into an object
# Dates of access under a name that is not in the table: each word is one of these, and there is one of the first.
_OF_ACCESS = {
    "eligibility",
    "coverage",
    "benefit",
    "effective",
    "medical",
    "health",
    "insurance",
    "plan",
    "enrollment",
}
_OF_BEGIN, _OF_END = {"start", "date"}, {"end", "termination", "expiry", "stop", "to", "until", "last"}
GOOD_NAME, SHORTENED_NAME, OTHER_MEANING, DEPENDENTS_NAME = 1.0, 0.9, 0.6, 0.5


def words_of(name: str) -> list[str]:
    """The words that are compared."""
    text = re.sub(
        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])",
        " ",
        name.replace("#", " number ").replace("\u00b0", " number "),
    )
    plain = unicodedata.normalize("NFKD", text.replace("\u00df", "ss")).casefold()
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    spelt = (_SPELT_OUT.get(word, word) for word in re.findall("[a-z]+|[0-9]+", plain))
    return " ".join(spelt).replace("qualified beneficiary", "member").split()


def _known() -> dict[str, dict[str, float]]:
    """Phrase to the fields that it may mean, each with a score: earlier names of a field are better."""
    known: dict[str, dict[str, float]] = {}
    for field, text in _NAMES.items():
        sure, _, unsure = text.partition("~")
        for names, score in ((sure, GOOD_NAME), (unsure, OTHER_MEANING)):
            for place, name in enumerate(filter(None, names.split("|"))):
                phrase = " ".join(words_of(name))
                known.setdefault(phrase, {}).setdefault(field, round(score - place * 0.002, 3))
    for field in FIELDS:
        known.setdefault(" ".join(words_of(field)), {})[field] = GOOD_NAME
    return known


_KNOWN = _known()


def meanings(name: str) -> dict[str, float]:
    """What a column of this name may hold: fields, FULL_NAME, PERSON_NUMBER, RELATIONSHIP, OFFICIAL, with scores up to 1."""
    if len(name) > LONGEST_NAME:
        return {}
    words = words_of(name)
    # `Employee_EmployeeNumber`
    words = [word for at, word in enumerate(words) if words[at - 1 : at] != [word]]
    if not _OTHER_PERSONS.isdisjoint(words):
        return {}
    if (found := _KNOWN.get(" ".join(words))) is not None:
        return dict(found)
    plain = _INDEX.sub("", _ASIDE.sub("", name))
    if plain != name:
        return meanings(plain)
    score = DEPENDENTS_NAME if "dependent" in words else SHORTENED_NAME
    # `Home Address - Zip`, `Legal Name: First Name`: what stands last says what it is.
    for text in (name, re.split(r" - |[:/.|]", name)[-1]):
        short = " ".join(word for word in words_of(text) if word not in _NOISE)
        found = {
            field: round(known * score, 3)
            for field, known in _KNOWN.get(short, {}).items()
            if field not in ("external_id", FULL_NAME)
        }
        if found:
            return found
    return _date_of_access(set(words) - _NOISE)


def _date_of_access(words: set[str]) -> dict[str, float]:
    """`ELIG_FROM_DT`, `Benefits Eligibility Date`, `Health Plan Thru`."""
    if not words <= _OF_ACCESS | _OF_BEGIN | _OF_END or words.isdisjoint(_OF_ACCESS):
        return {}
    if not words.isdisjoint(_OF_END):
        return {"expiry_date": SHORTENED_NAME}
    return {} if words.isdisjoint(_OF_BEGIN) else {"effective_date": SHORTENED_NAME}
