"""Words of columns with few values: what senders write for genders, yes and no, and relationships."""

from frontdesk.eligibility.code_sets import HIPAA_RELATIONSHIPS

_GENDER_WORDS = {
    "male": "m male man boy homme masculin masculino hombre h mannlich m\u00e4nnlich mann herr",
    "female": "f female woman girl femme feminin f\u00e9minin femenino mujer w weiblich frau",
    "other": "x nonbinary non-binary nb other divers d o transgender",
    "unknown": "u unknown n/a na unspecified undisclosed unbekannt inconnu desconocido ? -",
}
_UNDISCLOSED = (
    "not specified|not disclosed|not declared|not provided|not applicable|not known|undeclared|declined|missing"
    "|prefer not to say|prefer not to answer|prefer not to disclose|i prefer not to say|i prefer not to answer"
    "|decline to answer|decline to state|declined to answer|declined to state|choose not to disclose"
)
_GENDER_PHRASES = {
    **dict.fromkeys(_UNDISCLOSED.split("|"), "unknown"),
    "non binary": "other",
    "gender nonconforming": "other",
    "another gender": "other",
}
GENDER_OF = {
    word: gender for gender, words in _GENDER_WORDS.items() for word in words.split()
} | _GENDER_PHRASES
GENDER_NUMBERS = {"0": "unknown", "1": "male", "2": "female", "9": "unknown"}  # ISO 5218
_TRUE, _FALSE = (
    "y yes true t 1 ja j oui o si s\u00ed s x enrolled eligible active",
    "n no false f 0 nein non waived ineligible",
)
BOOLEAN_OF = dict.fromkeys(_TRUE.split(), True) | dict.fromkeys(_FALSE.split(), False)
_RELATIONSHIP_WORDS = {
    "18": "self|employee|subscriber|ee|e|policyholder|primary|insured|member|selbst|s|moi|titular",
    "01": "spouse|wife|husband|sp|ehepartner|ehefrau|ehemann|conjoint|w|h|c\u00f3nyuge",
    "53": "domestic partner|life partner|dp|partner|civil union partner|lebenspartner",
    "19": "child|son|daughter|ch|c|dependent child|kind|sohn|tochter|enfant|d|hijo|hija|biological child|natural child",
    "17": "stepchild|step child|stepson|stepdaughter|sc",
    "09": "adopted child|adopted son|adopted daughter",
    "10": "foster child",
    "15": "ward|legal ward|court ordered child",
    "05": "grandchild|grandson|granddaughter",
    "25": "ex-spouse|ex spouse|former spouse",
    "03": "parent|father|mother",
    "14": "sibling|brother|sister",
    "G8": "other|other relationship|other dependent|disabled dependent",
}  # fmt: skip
RELATIONSHIP_OF = {word: code for code, words in _RELATIONSHIP_WORDS.items() for word in words.split("|")}
RELATIONSHIP_OF |= {meaning.casefold(): code for code, meaning in HIPAA_RELATIONSHIPS.items()}

_STATUS_WORDS = {
    "name": "status statut estatus",
    # `Marital Status`, `FLSA Status`, `Status Date`
    "name of another": "marital civil family tobacco smoker smoking flsa exempt exemption tax filing student disability veteran"
    " military citizenship immigration visa residency medicare vaccination date reason i9 handicap race ethnicity",
    "ended": "terminated term termed termination inactive deceased death dead resigned resignation separated separation"
    " cancelled canceled withdrawn withdrew dropped declined waived waive waiver ineligible ended expired discharged"
    " dismissed fired quit former lapsed closed discontinued not non opt out t i d x u",
    "unsure": "cobra loa leave fmla retired retiree ret suspended furlough furloughed pending disability disabled ltd std"
    " sabbatical layoff laid absence l p q r s w c",
    "active": "active act a enrolled eligible covered current employed hired full time part ft pt regular seasonal temporary"
    " temp on off of with without paid unpaid pay voluntary involuntary employee",
}
STATUS, OTHER_STATUS, STATUS_ENDED, STATUS_UNSURE, STATUS_ACTIVE = (
    frozenset(words.split()) for words in _STATUS_WORDS.values()
)
