"""`frontdesk check`: whether the installation can serve; shows every problem with its remedy."""

import os

from frontdesk.cli.command_group import printing
from frontdesk.cli.installation import opened_database
from frontdesk.cli.output import FAILED, Output
from frontdesk.config import ConfigError, read_config
from frontdesk.db.checks import CheckFailure, problems
from frontdesk.errors import FrontdeskError


@printing
def check() -> Output:
    """Check configuration, database and migrations; show every problem with its remedy. Status 1 if there is one.

    Example: frontdesk check --json
    """
    found = _problems()
    items = [{"what": problem.what, "mend": problem.remedy} for problem in found]
    parts = ["Problem: {what}\nRemedy: {mend}".format_map(item) for item in items]
    well = "All is well: the settings can be used, the database answers and has the tables that this program needs."
    return Output({"ok": not found, "problems": items}, parts or [well], FAILED if found else 0)


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
