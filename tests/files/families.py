"""Families of an 834 and the file that has them."""

from frontdesk.files.model import EligibilityFile
from tests.files.loading import Desk
from tests.formats.reading import interchange, person, transaction


def relative(family: int, number: int, **said: str) -> str:
    """The loop of a subscriber (number 1) or a dependent."""
    first = f"P{'abcdefghij'[family % 10]}{'abcdefghij'[number % 10]}"
    keys = {"family": f"F{family}", "number": f"REF*17*{number:02}~", "last": f"Sample{family}"}
    relation = "18" if number == 1 else "19"
    return person(
        said.pop("first", first), f"19{70 + number}0101", relation=relation, **keys, **said
    )


def load_all(
    desk: Desk, people: list[str], *, day: str = "20261120", purpose: str = "2"
) -> EligibilityFile:
    return desk.load(interchange(transaction(*people, day=day, purpose=purpose)).encode())
