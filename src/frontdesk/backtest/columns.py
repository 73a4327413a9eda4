"""The encounters of a file in columns: about 60 bytes a row, so that a million rows fit into memory."""

from array import array
from typing import NamedTuple

ABSENT = float("-inf")  # in a column of times: the row has no such time
NO_PRIORITY = -128  # the smallest value of the column; priorities are -100 to 100


class EncounterRow(NamedTuple):
    """Seconds since 1970; None: there is no such time in the row. `joined`: when the patient
    entered the line, so a booked patient not before the booked time.
    """

    joined: float | None
    started: float | None
    ended: float | None
    left: float | None
    doctor: str = ""
    plan: str = ""
    patient_class: str | None = None
    priority: int | None = None


class NumberedNames:
    """Names by number, in the order in which they came.

    >>> names = NumberedNames()
    >>> [names.number_of(name) for name in ("b", "a", "b")], names.in_order(), names.name_of(1)
    ([0, 1, 0], ['b', 'a'], 'a')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def number_of(self, name: str) -> int:
        number = self._numbers.setdefault(name, len(self._names))
        if number == len(self._names):
            self._names.append(name)
        return number

    def name_of(self, number: int) -> str:
        return self._names[number]

    def in_order(self) -> list[str]:
        return list(self._names)


class EncounterColumns:
    """Rows are known by their index. A time is ABSENT where the row has none; `doctor`, `plan` and
    `patient_class` are numbers of names, of which a class "" is none.
    """

    def __init__(self) -> None:
        self.joined = array("d")
        self.started = array("d")
        self.ended = array("d")
        self.left = array("d")
        self.doctor = array("i")
        self.plan = array("i")
        self.patient_class = array("i")
        self.priority = array("b")
        self.line = array("i")  # of the file, the first is 1
        self.doctors = NumberedNames()
        self.plans = NumberedNames()
        self.classes = NumberedNames()

    def __len__(self) -> int:
        return len(self.line)

    def append(self, row: EncounterRow, line: int) -> None:
        self.joined.append(ABSENT if row.joined is None else row.joined)
        self.started.append(ABSENT if row.started is None else row.started)
        self.ended.append(ABSENT if row.ended is None else row.ended)
        self.left.append(ABSENT if row.left is None else row.left)
        self.doctor.append(self.doctors.number_of(row.doctor))
        self.plan.append(self.plans.number_of(row.plan))
        self.patient_class.append(self.classes.number_of(row.patient_class or ""))
        self.priority.append(NO_PRIORITY if row.priority is None else row.priority)
        self.line.append(line)

    def came_at(self, index: int) -> float:
        """When the patient joined, or the visit of a patient that did not wait began."""
        joined = self.joined[index]
        return self.started[index] if joined == ABSENT else joined

    def wait_ended(self, index: int) -> bool:
        """False where the row has neither a visit nor a leaving: nothing can be judged by it."""
        return self.started[index] != ABSENT or self.left[index] != ABSENT
