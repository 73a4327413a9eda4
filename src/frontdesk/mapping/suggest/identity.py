"""Suggests how an account's 834s identify their members: counts the references of the whole file
(docs/834.md).

The only place that guesses. A person accepts the guess before anything of the file is loaded.
"""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from frontdesk.eligibility.persons import fold_name
from frontdesk.formats.x12_loop import LONGEST_PERSON_CODE, SSN_QUALIFIER, MemberLoop
from frontdesk.text import looks_like_ssn

FEW = 20  # fewer people are too small a sample
MOST_REFERENCES = 12  # each takes 16 bytes for each of its people
FAMILY = "REF*0F"
FAMILY_AND_CODE = "REF*0F+person_code"
# Ways that may be proposed for all members, the best first. Other references are often a category
# or a group.
_STRONGEST = ("REF*23", "NM109", FAMILY, FAMILY_AND_CODE, "ssn")
_BY_FAMILY = {"subscriber": FAMILY, "dependent": "REF*0F+first_name+dob"}
_DEPENDENTS_BY_NAME = (
    "No reference is carried by everybody alone, so a subscriber is named by the number of its "
    "family (REF*0F), and a dependent by that number with a short digest of first name and birth "
    "date. A corrected first name is followed where the sender writes the old one (NM1*70)."
)
_FEW_PEOPLE = (
    "The file has few people ({:,}): look at a larger one of the sender before you accept."
)
_REFUSED = "their rows would be refused."
_SSNS = "The numbers look like social security numbers: a keyed digest of them stands in the identifier."


@dataclass(slots=True)
class ReferenceCount:
    """The use of a reference: hashes of its values and of their people."""

    values: "array[int]" = field(default_factory=lambda: array("q"))
    people: "array[int]" = field(default_factory=lambda: array("q"))
    ssns: int = 0

    def add(self, value: str, person: int) -> None:
        self.values.append(hash(value))
        self.people.append(person)
        self.ssns += looks_like_ssn(value)

    def figures(self) -> tuple[int, int]:
        """How many people carry it, and how many of them carry it together with somebody else."""
        pairs = set(zip(self.values, self.people, strict=True))
        carriers = Counter(value for value, _ in pairs)
        shared = {person for value, person in pairs if carriers[value] > 1}
        return len({person for _, person in pairs}), len(shared)


def suggest_identity(loops: Iterable[MemberLoop]) -> dict[str, Any]:
    """The suggested part `834` of a mapping with its reasons and figures, as JSON. It holds no
    value of a member.
    """
    counts: dict[str, ReferenceCount] = {}
    subscribers = ReferenceCount()  # their family numbers
    people: set[int] = set()
    dependents = 0
    for loop in loops:
        first_name = fold_name(loop.element("NM1", 4))
        dob = loop.dob
        person = hash((loop.family, loop.is_subscriber, first_name, dob))
        dependents += person not in people and not loop.is_subscriber
        people.add(person)
        for name, value in _references(loop):
            if name in counts or len(counts) < MOST_REFERENCES:
                counts.setdefault(name, ReferenceCount()).add(value, person)
        if loop.is_subscriber and loop.family:
            subscribers.add(loop.family, person)
    references = []
    for name, count in counts.items():
        carriers, shared = count.figures()
        is_ssn = name == "ssn" or count.ssns * 2 > len(count.values)
        figures = {
            "reference": name,
            "people": carriers,
            "with_others": shared,
            "looks_like_ssn": is_ssn,
        }
        references.append(figures)
    identify, reasons = _choose(references, len(people), dependents, subscribers)
    return {
        "type": "mapping_suggestions",
        "format": "834",
        "mapping": {"834": {"identify": identify}},
        "reasons": reasons,
        "people": len(people),
        "dependents": dependents,
        "references": references,
    }


def _references(loop: MemberLoop) -> Iterable[tuple[str, str]]:
    """The numbers that the member carries, but those of the whole transaction."""
    of_all = loop.transaction.references
    for qualifier, value in loop.own.references.items():
        if value and of_all.get(qualifier) != value:
            yield f"REF*{qualifier}", value
    if number := loop.element("NM1", 9):
        yield "ssn" if loop.element("NM1", 8) == SSN_QUALIFIER else "NM109", number
    code = loop.own.references.get("17", "")
    if loop.family and code and len(code) <= LONGEST_PERSON_CODE:
        yield FAMILY_AND_CODE, f"{loop.family}-{code}"


def _choose(
    references: list[dict[str, Any]], people: int, dependents: int, subscribers: ReferenceCount
) -> tuple[Any, list[str]]:
    """The way, and the reasons for it."""
    by_name = {each["reference"]: each for each in references}
    own = {
        name
        for name, each in by_name.items()
        if each["people"] == people and not each["with_others"]
    }
    if people < FEW or dependents in (0, people):
        own -= {FAMILY, "ssn"}  # a later file may have the rest of these families
    if strongest := next((name for name in _STRONGEST if name in own), None):
        way: Any = strongest
        reasons = [
            f"Every person has {way} ({people:,} of {people:,}), and no two people share it."
        ]
    else:
        way = dict(_BY_FAMILY)
        reasons = [_DEPENDENTS_BY_NAME]
        if missing := people - by_name.get(FAMILY, {"people": 0})["people"]:
            reasons.append(f"{missing:,} of the {people:,} people carry no REF*0F: {_REFUSED}")
        carriers, shared = subscribers.figures()
        if shared:
            reasons.append(f"{shared:,} of {carriers:,} subscribers share a REF*0F: {_REFUSED}")
    if people < FEW:
        reasons.append(_FEW_PEOPLE.format(people))
    if (used := by_name.get(strongest or FAMILY)) and used["looks_like_ssn"]:
        reasons.append(_SSNS)
    return way, reasons
