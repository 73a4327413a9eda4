"""Formats of dates by the shapes of a column's values, in which digits are 9 and letters X and x: for a
column that a person calls a date and the suggestion did not (pure).
"""

from collections.abc import Iterable, Iterator
from itertools import product

from frontdesk.mapping.suggest.columns import MONTH_FIRST
from frontdesk.mapping.values import EXCEL_SERIAL

# D is a day or month of one or two digits. Month first where the two may stand in either order. Eight
# digits are a year first if that makes a day: no month is 19 or 20.
_FORMATS = {
    "D/D/9999": ("MM/DD/YYYY",),
    "D-D-9999": ("MM-DD-YYYY",),
    "D/D/99": ("MM/DD/YY",),
    "D-D-99": ("MM-DD-YY",),
    "D.D.9999": ("DD.MM.YYYY",),
    "D.D.99": ("DD.MM.YY",),
    "9999/D/D": ("YYYY/MM/DD",),
    "99999999": ("YYYYMMDD", "MMDDYYYY"),
    "D-XXX-9999": ("DD-MON-YYYY",),
    "D-XXX-99": ("DD-MON-YY",),
    "D XXX 9999": ("DD MON YYYY",),
    "XXX D, 9999": ("MON DD, YYYY",),
    "99999": (EXCEL_SERIAL,),
}


def formats_of(shapes: Iterable[str]) -> list[str]:
    """The formats that such dates may have, those with two orders with the month first.

    >>> formats_of(["99.99.9999", "9/99/99", "X-999", "Xxx 9, 9999"])
    ['DD.MM.YYYY', 'MM/DD/YY', 'MON DD, YYYY']
    """
    found = [name for shape in shapes for name in _BY_SHAPE.get(_day_of(shape), ())]
    return [*dict.fromkeys(found)]


def has_two_orders(shapes: Iterable[str]) -> bool:
    """Whether such dates may have the month or the day first.

    >>> has_two_orders(["9/99/9999 99:99"]), has_two_orders(["99.99.9999"])
    (True, False)
    """
    return not set(MONTH_FIRST).isdisjoint(formats_of(shapes))


def _day_of(shape: str) -> str:
    """The shape without a time, in capital letters."""
    head, colon, _ = shape.upper().partition(":")
    return head.rstrip("9").rstrip(" X") if colon else head


def _written(shape: str) -> Iterator[str]:
    """The shape with each number of digits.

    >>> [*_written("D.D.99")]
    ['9.9.99', '9.99.99', '99.9.99', '99.99.99']
    """
    first, *others = shape.split("D")
    for digits in product(("9", "99"), repeat=len(others)):
        yield first + "".join(map("".join, zip(digits, others, strict=True)))


_BY_SHAPE = {written: of for shape, of in _FORMATS.items() for written in _written(shape)}
