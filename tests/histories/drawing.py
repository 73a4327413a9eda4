"""A history as plain data: drawn by hypothesis, drawn by a seed, or made smaller (pure)."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from hypothesis import strategies as st

from tests.histories.senders import CHANGE, FULL, TABLE, Habits
from tests.histories.world import KINDS, Event, Family, Round

Choices = Mapping[str, Sequence[Any]]  # the values of each field

# What each part of a history may be: the choices of hypothesis and of a seed.
EVENT: Choices = {
    "kind": KINDS,
    "who": (*range(6),),
    "lag": (0, -1, 1, 12, 45, -20, -60),
    "variant": (*range(8),),
}
FAMILY: Choices = {
    "spouse": (True, False),
    "children": (0, 1, 2),
    "are_twins": (False, True),
    "employer": (0, 0, 0, 0, 1),
    "plan": (0, 1),
    "has_dental": (False, True),
}
HABITS: Choices = {
    "form": (CHANGE, FULL, TABLE),
    "begin_by": ("348", "356", "303"),
    "end_by": ("349", "357", "303"),
    "has_hd": (True, False),
    "is_ahead": (True, False),
    "ends_first": (False, True),
    "is_one_loop": (False, True),
    "end_code": ("024", "001"),
    "cancel_by": ("002", "024"),
    "reinstate_by": ("025", "025 HD", "021", "001"),
    "audit_by": ("001", "030", "021"),
    "has_dental": (True, False),
    "dental_end_by": ("349", "357"),
    "purpose": ("RX", "4"),
    "identify": ("code", "card"),
    "names_plans": (False, False, True),
    "all_homes": (True, False),
    "newborn": ("", "BABY BOY", "Newborn"),
    "is_full": (True, False),
    "has_expiry": (False, True),
    "clears": (False, True),
    "has_names": (True, True, False),
    "lists_left": (False, True),
    "lists": ("today", "next year", "next month"),
    "hired": (False, True),
}


# The habits that only tables show; some others show in both.
OF_TABLES = ("is_full", "has_expiry", "clears", "has_names", "lists_left", "lists", "hired")
GAPS = (1, 7, 30, 14, 61, 3, 330)
STARTS = (10, 240, 310, 325)
MOST_FAMILIES = 3
MOST_ROUNDS = 4
MOST_EVENTS = 3  # of a round
SHRINK_TRIES = 80

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class History:
    """Families, the rounds of what becomes known, and how the employers write files. `start` is the
    day of the first file, counted from BEGIN; held files are approved or cancelled.
    """

    families: tuple[Family, ...]
    rounds: tuple[Round, ...]
    habits: Habits = field(default_factory=Habits)
    start: int = 10
    approves: bool = False


def _built(kind: Callable[..., Part], choices: Choices) -> st.SearchStrategy[Part]:
    return st.builds(kind, **{name: st.sampled_from(of) for name, of in choices.items()})


def _rounds() -> st.SearchStrategy[Round]:
    events = st.lists(_built(Event, EVENT), max_size=MOST_EVENTS).map(tuple)
    return st.builds(Round, gap=st.sampled_from(GAPS), events=events)


histories = st.builds(
    History,
    families=st.lists(_built(Family, FAMILY), min_size=1, max_size=MOST_FAMILIES).map(tuple),
    rounds=st.lists(_rounds(), min_size=1, max_size=MOST_ROUNDS).map(tuple),
    habits=_built(Habits, HABITS),
    start=st.sampled_from(STARTS),
    approves=st.booleans(),
)


def history_of(seed: str) -> History:
    """The history that the seed draws."""
    chance = random.Random(seed)

    def drawn(kind: Callable[..., Part], choices: Choices) -> Part:
        return kind(**{name: chance.choice(of) for name, of in choices.items()})

    drawn_rounds = []
    for _ in range(chance.randint(1, MOST_ROUNDS)):
        events = tuple(drawn(Event, EVENT) for _ in range(chance.randint(1, MOST_EVENTS)))
        drawn_rounds.append(Round(chance.choice(GAPS), events))
    return History(
        families=tuple(drawn(Family, FAMILY) for _ in range(chance.randint(1, MOST_FAMILIES))),
        rounds=tuple(drawn_rounds),
        habits=drawn(Habits, HABITS),
        start=chance.choice(STARTS),
        approves=chance.random() < 0.5,
    )


def size_of(history: History) -> int:
    """How long it takes to read the history."""
    events = [event for round_ in history.rounds for event in round_.events]
    parts: list[Any] = [*history.families, *events, *history.rounds, history.habits, history]
    unusual = sum(len([*_plainer(part)]) for part in parts)
    return 10 * (len(history.rounds) + len(events)) + 5 * len(history.families) + unusual


def shrunk(
    history: History, fails: Callable[[History], bool], *, tries: int = SHRINK_TRIES
) -> History:
    """The smallest history near this one that still fails, found in so many tries."""
    tried = {history}
    while True:
        for smaller in _smaller(history):
            if smaller in tried:
                continue
            if len(tried) > tries:
                return history
            tried.add(smaller)
            if fails(smaller):
                history = smaller
                break
        else:
            return history


def written(part: object) -> str:
    """The history, or a part of it, as Python writes it, without what is as by default."""
    if isinstance(part, tuple):
        return f"({', '.join(map(written, part))}{',' * (len(part) == 1)})"
    if not isinstance(part, History | Habits | Round | Family | Event):
        return repr(part)
    said = {
        each.name: getattr(part, each.name)
        for each in fields(part)
        if getattr(part, each.name) != _default(each)
    }
    return (
        f"{type(part).__name__}({', '.join(f'{name}={written(of)}' for name, of in said.items())})"
    )


def _smaller(history: History) -> Iterator[History]:
    """Histories with one part less, or one part as it is by default."""
    form = history.habits.form
    yield replace(history, habits=Habits(form))
    unused = (name for name in HABITS if name != "form" and (name in OF_TABLES) != (form == TABLE))
    default = Habits()
    plainer = replace(history.habits, **{name: getattr(default, name) for name in unused})
    yield replace(history, habits=plainer)
    for key in ("rounds", "families"):
        parts = getattr(history, key)
        for number in range(len(parts)):
            if len(parts) > 1:
                yield replace(history, **{key: parts[:number] + parts[number + 1 :]})
    for number, round_ in enumerate(history.rounds):
        for events in _shorter(round_.events):
            yield _with_round(history, number, replace(round_, events=events))
    for habits in _plainer(history.habits):
        yield replace(history, habits=habits)
    for start in STARTS[: STARTS.index(history.start)]:
        yield replace(history, start=start)
    if history.approves:
        yield replace(history, approves=False)
    for number, family in enumerate(history.families):
        for plainer in _plainer(family):
            families = (*history.families[:number], plainer, *history.families[number + 1 :])
            yield replace(history, families=families)


def _shorter(events: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    for number, event in enumerate(events):
        yield events[:number] + events[number + 1 :]
        for plainer in _plainer(event):
            yield (*events[:number], plainer, *events[number + 1 :])


def _with_round(history: History, number: int, round_: Round) -> History:
    return replace(
        history, rounds=(*history.rounds[:number], round_, *history.rounds[number + 1 :])
    )


def _plainer(part: Any) -> Iterator[Any]:
    """The part with one of its fields as it is by default."""
    for each in fields(part):
        default = _default(each)
        if default is not MISSING and getattr(part, each.name) != default:
            yield replace(part, **{each.name: default})


def _default(of: Field[Any]) -> Any:
    return of.default if of.default_factory is MISSING else of.default_factory()
