"""Plays the line of patients in every run: one after the other takes the first doctor that is free, or has left by then."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heapreplace
from itertools import cycle
from operator import itemgetter

from frontdesk.queues.estimate.abandonment import AbandonmentModel
from frontdesk.queues.estimate.draws import DRAWS, orders, patiences, shuffles
from frontdesk.queues.estimate.late_feed import UnseenJoin

ByRun = tuple[float, ...]
Team = list[float]  # a heap: when each slot of the team's doctors is free
Choice = tuple[int, ...]  # the teams that serve a plan
# The teams that serve the patient, the length of the turn, the seconds waited, the patience that these have spent, and all of it.
_Patient = tuple[Choice, float, float, float, float]
LENGTHS_SEED, PATIENCE_SEED = 20160928, 20160929

_first = itemgetter(0)


class Runs:
    """The runs of a simulation, ready to be played."""

    def __init__(
        self,
        starts: Sequence[Sequence[ByRun]],
        parts: Mapping[int, Sequence[float]],
        teams_of: Mapping[int, Choice],
        abandonment: AbandonmentModel | None,
    ) -> None:
        """`starts`: by run and team, when each slot is free; `parts`: by plan, the equally likely lengths of a turn.

        `abandonment` None: no patient leaves.
        """
        self._starts = starts
        self._runs = len(starts)
        self._parts = parts
        self._teams_of = teams_of
        self._abandonment = abandonment

    def play(
        self, plans: Sequence[int], waited: Sequence[float], unseen: Sequence[Sequence[UnseenJoin]]
    ) -> list[list[float]]:
        """By run, when the first slot of each team is free after the patients in the line, and those `unseen` by run.

        `plans`, `waited`: by place in the line.
        """
        # Backwards, so that the draws of the line differ from those of the visits in progress.
        draws = cycle(reversed(shuffles(self._runs, LENGTHS_SEED)))
        columns = [draw(self._parts[plan_id]) for plan_id, draw in zip(plans, draws, strict=False)]
        lengths = list(zip(*columns, strict=True)) or [()] * self._runs
        choices = [self._teams_of[plan_id] for plan_id in plans]
        spent = list(map(self._abandonment.spent_at, waited)) if self._abandonment else []
        free_at = []
        for run, starts in enumerate(self._starts):
            teams = [list(slots) for slots in starts]
            for team in teams:
                heapify(team)
            if self._abandonment is None:
                _serve_all(teams, choices, lengths[run])
            else:
                patience = cycle(patiences(self._runs, PATIENCE_SEED)[run])
                line = zip(choices, lengths[run], waited, spent, patience, strict=False)
                _serve_until_left(teams, line, self._abandonment)
            if unseen:
                self._serve_unseen(run, teams, unseen[run], ahead=len(plans))
            free_at.append([team[0] for team in teams])
        return free_at

    def _serve_unseen(self, run: int, teams: list[Team], unseen: Iterable[UnseenJoin], *, ahead: int) -> None:
        """The patients that join between the last news and now; their lengths are drawn after those of the line."""
        draws = orders(self._runs, LENGTHS_SEED)
        for place, (joined_at, plan_id) in enumerate(unseen, start=ahead):
            if choice := self._teams_of[plan_id]:
                team = min([teams[i] for i in choice], key=_first)
                length = self._parts[plan_id][draws[-1 - place % DRAWS][run]]
                heapreplace(team, max(team[0], joined_at) + length)


def _serve_all(teams: list[Team], choices: Iterable[Choice], lengths: Iterable[float]) -> None:
    """Each patient takes the first slot that is free."""
    if len(teams) == 1:
        team = teams[0]
        for length in lengths:
            heapreplace(team, team[0] + length)
        return
    for choice, length in zip(choices, lengths, strict=True):
        team = teams[choice[0]] if len(choice) == 1 else min([teams[i] for i in choice], key=_first)
        heapreplace(team, team[0] + length)


def _serve_until_left(teams: list[Team], line: Iterable[_Patient], model: AbandonmentModel) -> None:
    """Each patient takes the first slot that is free, or has left by then."""
    fastest, spent_at = model.fastest, model.spent_at
    for choice, length, waited, spent, patience in line:
        team = teams[choice[0]] if len(choice) == 1 else min([teams[i] for i in choice], key=_first)
        at = team[0]
        # Nearly always the patient stays even at the fastest rate of leaving.
        if at * fastest <= patience or spent_at(waited + at) - spent <= patience:
            heapreplace(team, at + length)
