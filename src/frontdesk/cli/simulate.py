"""`frontdesk queue simulate`: moves the queues of a sandbox with the events of invented practices."""

import os
import time
from random import Random
from typing import Annotated

from frontdesk.cli.command_group import migrated_database, printing
from frontdesk.cli.options import OnlyAccount, option, reach_of
from frontdesk.cli.output import Output, fail, settings
from frontdesk.clock import system_clock
from frontdesk.config import Environment
from frontdesk.sandbox.simulate import EventFeeder, open_practices

STEP_SECONDS = 0.5


@printing
def simulate(
    account: OnlyAccount = None,
    *,
    speed: Annotated[
        float, option("10: a visit of 12 minutes takes 72 seconds.", min=0.1, max=1000)
    ] = 10.0,
    seconds: Annotated[
        float | None, option("Stop after so many seconds; else at Ctrl-C.", min=0)
    ] = None,
    seed: Annotated[int | None, option("The same seed makes the same patients.")] = None,
) -> Output:
    """Let patients come and doctors see them in the plans of a sandbox. Not in production.

    Doctors on duty, and patients that wait or are with a doctor, take part from the start.

    Example: frontdesk queue simulate --speed 10
    """
    config = settings()
    if config.environment is Environment.PRODUCTION:
        fail(
            "Nothing is simulated where FRONTDESK_ENVIRONMENT is production. Use a sandbox installation."
        )
    with migrated_database(config) as db:
        chance = Random(seed)  # noqa: S311 - invented patients
        reach = reach_of(account)
        practices = db.ask(lambda tx: open_practices(tx, reach, chance, system_clock()))
        if not practices:
            fail("There is no plan to simulate. Make some: frontdesk demo")
        feeder = EventFeeder(db, practices, speed=speed, clock=system_clock)
        parent = os.getppid()
        end = None if seconds is None else time.monotonic() + seconds
        try:
            feeder.feed()
            while (end is None or time.monotonic() < end) and os.getppid() == parent:
                time.sleep(STEP_SECONDS)
                feeder.feed()
        except KeyboardInterrupt:
            pass
    counts = feeder.counts
    sentence = (
        f"{counts.total()} events: {counts['patient.joined']} patients came, "
        f"{counts['visit.ended']} were seen."
    )
    return Output({"events": counts.total(), "by_type": dict(sorted(counts.items()))}, [sentence])
