"""Invented members: families, twins, apostrophes, diacritics, zip codes with zeros. The same seed
gives the same members.

None of them exists: names are combined by chance, and e-mail addresses end in example domains.
"""

import random
from collections.abc import Iterator
from itertools import islice

from frontdesk.eligibility.field_kinds import HIPAA_RELATIONSHIPS

COLUMNS = (
    "external_id",
    "member_id",
    "first_name",
    "last_name",
    "middle_name",
    "dob",
    "gender",
    "email",
    "phone",
    "zipcode",
    "city",
    "county",
    "state",
    "effective_date",
    "expiry_date",
    "medical_plan_description",
    "payor_name",
    "relationship_code",
    "relationship_code_hipaa",
    "subscriber_relationship",
)
PAYOR = "Example Mutual"

_FIRST = {
    "female": (
        "Ada", "Zoë", "María", "Siobhán", "Anne-Marie", "Chloé", "Ingrid", "Noor", "Grace", "Mei", "Olivia",
        "Renée", "Søs", "Yuki", "Amara", "Bárbara", "Dagný", "Esther", "Fatima", "Hannah", "Ines", "Jana",
    ),
    "male": (
        "Robin", "José", "Łukasz", "D'Andre", "Björn", "Jean-Luc", "Omar", "Wei", "Noah", "Liam", "Andrés",
        "François", "Tomáš", "Kwame", "Ravi", "Søren", "Paul", "Óscar", "Isaac", "Hugo", "Mateo", "Ben",
    ),
}  # fmt: skip
_LAST = (
    "O'Brien", "Núñez", "Smith", "D'Angelo", "García-López", "Nguyen", "Müller", "Okafor", "St. John", "Kim",
    "Johnson", "van der Berg", "Brown", "Östlund", "Patel", "Lee", "Wójcik", "Jones", "De La Cruz", "Silva",
    "Haddad", "Ivanov", "Sánchez", "Taylor", "Nakamura", "MacDonald", "Çelik", "Davis", "O'Neill", "Novák",
)  # fmt: skip
_MIDDLE = ("", "", "", "Lee", "J", "Ann", "", "M", "Ray", "")
# Zip code, city, county, state.
_PLACES = (
    ("02134", "Boston", "Suffolk", "MA"),
    ("00501", "Holtsville", "Suffolk", "NY"),
    ("07030", "Hoboken", "Hudson", "NJ"),
    ("06103", "Hartford", "Hartford", "CT"),
    ("04101", "Portland", "Cumberland", "ME"),
    ("00901", "San Juan", "San Juan", "PR"),
    ("60614", "Chicago", "Cook", "IL"),
    ("73301", "Austin", "Travis", "TX"),
    ("90012-1234", "Los Angeles", "Los Angeles", "CA"),
    ("98101", "Seattle", "King", "WA"),
    ("30303", "Atlanta", "Fulton", "GA"),
    ("80202", "Denver", "Denver", "CO"),
)
_AREAS = ("212", "312", "415", "512", "617", "206", "303", "404")
_DOMAINS = ("example.com", "example.org", "example.net")
_PLANS = ("PPO 500", "HMO Basic", "Gold 1000", "Silver 2500")
_BEGINS = ("2026-01-01", "2026-01-01", "2025-01-01", "2026-07-01", "2024-04-01")
_SELF = "18"
_SPOUSE = "01"
_CHILD = "19"
_LARGEST_FAMILY = 6


def sample_members(count: int, *, seed: int) -> Iterator[dict[str, str]]:
    """`count` members in families, the subscriber first. The keys are COLUMNS in their order; "" is
    a missing value.

    Another seed gives other members with other identifiers.
    """
    # Not a secret: the same seed must give the same people.
    return islice(_all_families(random.Random(seed), seed), count)  # noqa: S311 - invented people


def _all_families(chance: random.Random, series: int) -> Iterator[dict[str, str]]:
    family = 0
    while True:
        family += 1
        yield from _family(f"{series:03d}{family:08d}", chance)


def _family(number: str, chance: random.Random) -> Iterator[dict[str, str]]:
    """One to six people with one name, place and plan. Now and then the children are twins."""
    bits = chance.getrandbits(64)
    size = 1 + (bits % 97) % _LARGEST_FAMILY
    shared = _shared(bits)
    born = 1950 + (bits >> 20) % 50
    twins = size > 3 and (bits >> 44) % 4 == 0
    birthday = ""
    for person in range(1, size + 1):
        bits = chance.getrandbits(64)
        relationship = _SELF if person == 1 else _SPOUSE if person == 2 else _CHILD
        year = born if person < 3 else min(born + 24 + person * 2, 2025)
        day = f"{year}-{1 + bits % 12:02d}-{1 + (bits >> 4) % 28:02d}"
        # The last child of a family with twins is born on the day of the one before.
        birthday = birthday if twins and person == size else day
        yield (
            _person(f"{number}-{person:02d}", birthday, relationship, bits >> 10)
            | shared[person > 2]
        )


def _shared(bits: int) -> tuple[dict[str, str], dict[str, str]]:
    """The values that a family shares: those of the couple, and those of the children, which have
    no phone.
    """
    zipcode, city, county, state = _PLACES[(bits >> 7) % len(_PLACES)]
    phone = f"{_AREAS[(bits >> 12) % len(_AREAS)]}55501{(bits >> 30) % 100:02d}"
    common = {
        "last_name": _LAST[(bits >> 15) % len(_LAST)],
        "zipcode": zipcode,
        "city": city,
        "county": county,
        "state": state,
        "effective_date": _BEGINS[(bits >> 26) % len(_BEGINS)],
        "expiry_date": "2026-12-31" if (bits >> 34) % 20 == 0 else "",
        "medical_plan_description": _PLANS[(bits >> 40) % len(_PLANS)],
    }
    return common | {"phone": phone}, common


def _person(key: str, birthday: str, relationship: str, bits: int) -> dict[str, str]:
    gender = ("female", "male")[bits & 1]
    names = _FIRST[gender]
    is_child = relationship == _CHILD
    has_mail = not is_child and (bits >> 1) % 8 != 0
    return dict.fromkeys(COLUMNS, "") | {
        "external_id": key,
        "member_id": key,
        "first_name": names[(bits >> 5) % len(names)],
        "middle_name": _MIDDLE[(bits >> 12) % len(_MIDDLE)],
        "dob": birthday,
        "gender": "unknown" if (bits >> 18) % 200 == 0 else gender,
        "email": f"member.{key}@{_DOMAINS[(bits >> 30) % len(_DOMAINS)]}" if has_mail else "",
        "payor_name": PAYOR,
        "relationship_code": HIPAA_RELATIONSHIPS[relationship],
        "relationship_code_hipaa": relationship,
        "subscriber_relationship": "Primary" if relationship == _SELF else "Dependent",
    }
