"""The command line, as the tests of the commands have it."""

from tests.cli.conftest import bare_cli, cli

__all__ = ["bare_cli", "cli"]
