"""Tests with parts that nobody here wrote, as Debian packs them: `make lab`. `make test` does not
collect them.
"""
