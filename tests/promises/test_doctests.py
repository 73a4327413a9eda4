"""The examples in docstrings of the modules that decide by rules: each is run, and each module has
some.
"""

import doctest
import importlib

import pytest

MODULES = [
    "frontdesk.backtest.columns",
    "frontdesk.backtest.verdict",
    "frontdesk.cli.layout",
    "frontdesk.interface.schema",
    "frontdesk.invitations.daily_limit",
    "frontdesk.invitations.enqueue",
    "frontdesk.invitations.hourly_window",
    "frontdesk.invitations.reports",
    "frontdesk.invitations.visible_names",
    "frontdesk.mapping.parser",
    "frontdesk.mapping.values",
    "frontdesk.queues.encounters",
    "frontdesk.queues.estimate.arrivals",
    "frontdesk.queues.estimate.distributions",
    "frontdesk.queues.estimate.late_feed",
    "frontdesk.queues.estimate.record",
    "frontdesk.queues.estimate.waits",
    "frontdesk.queues.events",
    "frontdesk.queues.model",
    "frontdesk.text",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_so(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name))
    assert ran.attempted > 0
    assert ran.failed == 0


def test_every_public_function_of_text_has_an_example() -> None:
    text = importlib.import_module("frontdesk.text")
    functions = [
        each
        for name, each in vars(text).items()
        if not name.startswith("_") and callable(each) and each.__module__ == text.__name__
    ]
    without = [
        each.__name__
        for each in functions
        if not isinstance(each, type) and ">>> " not in (each.__doc__ or "")
    ]
    assert len(functions) > 10
    assert without == []
