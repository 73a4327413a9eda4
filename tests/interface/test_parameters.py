"""Parameters and headers: each constant is named for its component."""

import re

from frontdesk.interface import parameters
from frontdesk.interface.parameters import HEADERS, PARAMETERS, Header, Parameter


def test_a_constant_has_the_name_of_its_component() -> None:
    constants = {
        name: value
        for name, value in vars(parameters).items()
        if isinstance(value, Parameter | Header)
    }
    assert len(constants) == len(PARAMETERS) + len(HEADERS)
    for name, value in constants.items():
        key = value.key if isinstance(value, Parameter) else value.name
        assert name == re.sub(r"\W", "_", key.upper())


def test_only_paths_have_required_parameters() -> None:
    assert {
        (each.component()["in"], each.component()["required"]) for each in PARAMETERS.values()
    } == {("path", True), ("query", False), ("header", False)}
