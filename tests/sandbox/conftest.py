"""The command line, as the tests of the commands have it."""

from tests.cli.conftest import bare_cli, cli, postgresql, sqlite_template

__all__ = ["bare_cli", "cli", "postgresql", "sqlite_template"]
