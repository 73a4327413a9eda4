"""The fixtures of loads."""

from tests.files.conftest import desk

__all__ = ["desk"]
