"""The command line door: `frontdesk` and its commands, one file per group."""

from frontdesk.cli.app import main

__all__ = ["main"]
