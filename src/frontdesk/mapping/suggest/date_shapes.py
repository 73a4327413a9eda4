"""Formats of dates by the shapes of a column's values, in which digits are 9 and letters X and x: for a
column that a person calls a date and the suggestion did not (pure).
"""

import re
from collections.abc import Iterable

from frontdesk.mapping.suggest.columns import MONTH_FIRST
from frontdesk.mapping.values import EXCEL_SERIAL

# Month first where day and month may stand in either order. Eight digits are a year first if that
# makes a day: no month is 19 or 20.
_FORMATS = {
    "9?9/9?9/9999": ("MM/DD/YYYY",),
    "9?9-9?9-9999": ("MM-DD-YYYY",),
    "9?9/9?9/99": ("MM/DD/YY",),
    "9?9-9?9-99": ("MM-DD-YY",),
    "9?9[.]9?9[.]9999": ("DD.MM.YYYY",),
    "9?9[.]9?9[.]99": ("DD.MM.YY",),
    "9999/9?9/9?9": ("YYYY/MM/DD",),
    "99999999": ("YYYYMMDD", "MMDDYYYY"),
    "9?9-Xxx-9999": ("DD-MON-YYYY",),
    "9?9-Xxx-99": ("DD-MON-YY",),
    "9?9 Xxx 9999": ("DD MON YYYY",),
    "Xxx 9?9, 9999": ("MON DD, YYYY",),
    "99999": (EXCEL_SERIAL,),
}
_SHAPES = [
    (re.compile(f"{shape}(?:[ X]9.*)?", re.IGNORECASE), of) for shape, of in _FORMATS.items()
]


def formats_of(shapes: Iterable[str]) -> list[str]:
    """The formats that such dates may have, those with two orders with the month first.

    >>> formats_of(["99.99.9999", "9/99/99", "X-999"])
    ['DD.MM.YYYY', 'MM/DD/YY']
    """
    found = [
        name for each in shapes for shape, of in _SHAPES if shape.fullmatch(each) for name in of
    ]
    return [*dict.fromkeys(found)]


def has_two_orders(shapes: Iterable[str]) -> bool:
    """Whether such dates may have the month or the day first.

    >>> has_two_orders(["9/99/9999 99:99"]), has_two_orders(["99.99.9999"])
    (True, False)
    """
    return not set(MONTH_FIRST).isdisjoint(formats_of(shapes))
