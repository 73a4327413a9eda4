"""Values that several bodies and parameters have in common."""

from typing import Annotated, Generic, TypedDict, TypeVar

from frontdesk.formats.model import SEARCHED_ROWS
from frontdesk.interface.schema import Keywords
from frontdesk.mapping.parser import LONGEST_SHEET_NAME
from frontdesk.plans.changes import NAME_LENGTH

LinksOf = TypeVar("LinksOf")
DataOf = TypeVar("DataOf")


class AnswerEnvelope(TypedDict, Generic[LinksOf, DataOf]):
    """What was asked for, beside its addresses."""

    links: LinksOf
    data: DataOf


Count = Annotated[int, Keywords(minimum=0)]
Timestamp = Annotated[str, Keywords(format="date-time")]
# A time in UTC as a query or a body may give it.
Moment = Annotated[
    str, Keywords(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.][0-9]+)?Z$")
]
Date = Annotated[str, Keywords(format="date")]
Day = Annotated[str, Keywords(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", format="date")]
FileContent = Annotated[str, Keywords(format="binary")]
Sha256 = Annotated[str, Keywords(pattern="^[0-9a-f]{64}$")]
PlanText = Annotated[str, Keywords(maxLength=NAME_LENGTH, pattern=r"\S")]
HeaderRow = Annotated[int, Keywords(minimum=1, maximum=SEARCHED_ROWS)]
Sheet = Annotated[str, Keywords(minLength=1, maxLength=LONGEST_SHEET_NAME)]
PageStart = Annotated[int, Keywords(minimum=0, maximum=999999999999999999)]
PageSize = Annotated[int, Keywords(minimum=1, maximum=1000)]
# A value of a unique field of a member, as a search gives it.
Identifier = Annotated[str, Keywords(minLength=1, maxLength=255)]
