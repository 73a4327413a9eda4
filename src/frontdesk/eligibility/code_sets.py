"""Code sets: genders, USPS states, HIPAA relationship codes, and the codes of the 834 (docs/834.md)."""

GENDERS = ("male", "female", "other", "unknown")

# Data elements 1068 (DMG03) and 1073 (INS01) of the 834.
X12_GENDERS = {"F": "female", "M": "male", "U": "unknown"}
X12_SUBSCRIBER = {"Y": "Primary", "N": "Dependent"}

_STATES = """AL Alabama|AK Alaska|AZ Arizona|AR Arkansas|CA California|CO Colorado|CT Connecticut|DE Delaware
DC District of Columbia|FL Florida|GA Georgia|HI Hawaii|ID Idaho|IL Illinois|IN Indiana|IA Iowa|KS Kansas|KY Kentucky
LA Louisiana|ME Maine|MD Maryland|MA Massachusetts|MI Michigan|MN Minnesota|MS Mississippi|MO Missouri|MT Montana
NE Nebraska|NV Nevada|NH New Hampshire|NJ New Jersey|NM New Mexico|NY New York|NC North Carolina|ND North Dakota|OH Ohio
OK Oklahoma|OR Oregon|PA Pennsylvania|RI Rhode Island|SC South Carolina|SD South Dakota|TN Tennessee|TX Texas|UT Utah
VT Vermont|VA Virginia|WA Washington|WV West Virginia|WI Wisconsin|WY Wyoming|AS American Samoa|GU Guam
MP Northern Mariana Islands|PR Puerto Rico|VI Virgin Islands|VI U.S. Virgin Islands|FM Federated States of Micronesia
MH Marshall Islands|PW Palau|AA Armed Forces Americas|AE Armed Forces Europe|AP Armed Forces Pacific"""

# The individual relationship codes of the HIPAA 834 implementation guide (data element 1069).
_RELATIONSHIPS = """01 Spouse|03 Father or Mother|04 Grandfather or Grandmother|05 Grandson or Granddaughter|06 Uncle or Aunt
07 Nephew or Niece|08 Cousin|09 Adopted Child|10 Foster Child|11 Son-in-law or Daughter-in-law
12 Brother-in-law or Sister-in-law|13 Mother-in-law or Father-in-law|14 Brother or Sister|15 Ward
16 Stepparent|17 Stepson or Stepdaughter|18 Self|19 Child|23 Sponsored Dependent
24 Dependent of a Minor Dependent|25 Ex-spouse|26 Guardian|31 Court Appointed Guardian
38 Collateral Dependent|48 Stepfather|49 Stepmother|53 Life Partner|60 Annuitant|D2 Trustee
G8 Other Relationship|G9 Other Relative"""


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = (entry.partition(" ") for line in text.splitlines() for entry in line.split("|"))
    return [(code, meaning) for code, _, meaning in pairs]


# Code or full name, lower-cased, to the USPS code.
STATE_CODES = {name.lower(): code for code, meaning in _pairs(_STATES) for name in (meaning, code)}
HIPAA_RELATIONSHIPS = dict(_pairs(_RELATIONSHIPS))
