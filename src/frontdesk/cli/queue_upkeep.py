"""`frontdesk queue rebuild` and `queue prune`: what follows from the events, made anew; old events, forgotten."""

import re
from datetime import timedelta
from typing import Annotated, Any

import typer

from frontdesk.cli.installation import CommandContext, change, change_in, migrated_database
from frontdesk.cli.options import Json
from frontdesk.cli.output import print_json, say, settings
from frontdesk.queues import prune as prune_page
from frontdesk.queues import rebuild as rebuild_all
from frontdesk.queues.model import PruneReport
from frontdesk.queues.upkeep import DEFAULT_AGE, MIN_AGE

_AGE = re.compile(r"([1-9][0-9]{0,3})d")


def rebuild(as_json: Json = False) -> None:
    """Make who waits and who is on duty anew from the stored events; feeders wait meanwhile.

    Example: frontdesk queue rebuild
    """

    def work(deed: CommandContext) -> dict[str, Any]:
        rebuilt = rebuild_all(deed.tx)
        outcome = {"encounters": rebuilt.encounters, "doctors": rebuilt.doctors, "mended": rebuilt.corrected}
        deed.record("queue.rebuilt", **outcome)
        return outcome

    outcome = change(work)
    if as_json:
        print_json(outcome)
        return
    found = "All was as it should be." if not outcome["mended"] else f"{outcome['mended']} rows were mended."
    say(
        f"{outcome['encounters']} encounters and {outcome['doctors']} doctors follow from the events. {found}"
    )


def prune(
    *,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Age in days, such as 90d; 8d is the least.")
    ] = f"{DEFAULT_AGE.days}d",
    as_json: Json = False,
) -> None:
    """Forget events of encounters that are over and estimates of that age; nothing that still counts goes.

    Workers forget by themselves what is older than 90 days; this is for less.

    Example: frontdesk queue prune --older-than 90d
    """
    age = _age(older_than)
    total = PruneReport()
    with migrated_database(settings()) as db:
        while True:  # a page at a time, so that feeders are held up for a moment only
            page = change_in(db, lambda deed: prune_page(deed.tx, now=deed.now, age=age))
            if not page:
                break
            total += page
        outcome = {"events": total.events, "encounters": total.encounters, "estimates": total.estimates}
        change_in(db, lambda deed: deed.record("queue.pruned", **outcome, days=age.days))
    if as_json:
        print_json(outcome)
    else:
        say("Forgotten: {events} events of {encounters} encounters, {estimates} estimates.".format(**outcome))


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    age = timedelta(days=int(found.group(1))) if found else timedelta(0)
    if age < MIN_AGE:
        raise typer.BadParameter(
            f"must be whole days such as 90d, {MIN_AGE.days}d at least", param_hint="--older-than"
        )
    return age
