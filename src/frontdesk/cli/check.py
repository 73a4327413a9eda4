"""`frontdesk check`: whether the installation can serve; shows every problem with its remedy."""

import os

import typer

from frontdesk.cli.installation import opened_database
from frontdesk.cli.options import Json
from frontdesk.cli.output import FAILED, print_json, say
from frontdesk.config import ConfigError, read_config
from frontdesk.db.checks import CheckFailure, problems
from frontdesk.errors import FrontdeskError


def check(as_json: Json = False) -> None:
    """Check configuration, database and migrations; show every problem with its remedy. Status 1 if there is one.

    Example: frontdesk check --json
    """
    found = _problems()
    if as_json:
        print_json(
            {
                "ok": not found,
                "problems": [{"what": problem.what, "mend": problem.remedy} for problem in found],
            }
        )
    elif not found:
        say(
            "All is well: the settings can be used, the database answers and has the tables that this program needs."
        )
    for problem in [] if as_json else found:
        say(f"Problem: {problem.what}\nRemedy: {problem.remedy}")
    if found:
        raise typer.Exit(FAILED)


def _problems() -> list[CheckFailure]:
    try:
        config = read_config(os.environ)
    except ConfigError as error:
        remedy = "Correct or remove this variable in the environment."
        return [CheckFailure(problem, remedy) for problem in error.problems]
    try:
        with opened_database(config) as db:
            return problems(db, config)
    except FrontdeskError as error:
        return [CheckFailure(error.detail, "Correct FRONTDESK_DATABASE_URL, or make the database reachable.")]
