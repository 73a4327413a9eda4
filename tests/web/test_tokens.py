"""The colours that every page shares have the contrast that WCAG 2.2 asks for."""

import re
from itertools import product

import pytest

from frontdesk.web.page import TOKENS

AA_TEXT = 4.5
AA_SIGN = 3.0
TEXTS = ("ink", "soft", "accent", "good", "warn", "bad")
GROUNDS = ("paper", "ground", "good-ground", "warn-ground", "bad-ground")


def colours(text: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]+);", text))


LIGHT_TEXT, _, DARK_TEXT = TOKENS.partition("@media (prefers-color-scheme: dark)")
MODES = {"light": colours(LIGHT_TEXT), "dark": colours(DARK_TEXT)}


def luminance(colour: str) -> float:
    """Relative luminance of #rgb or #rrggbb, as WCAG 2.2 defines it."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("mode", MODES)
def test_text_can_be_read_on_each_ground_in_light_and_dark(mode: str) -> None:
    tones = MODES[mode]
    pairs = [*product(TEXTS, GROUNDS), ("on-accent", "accent")]
    low = {pair: contrast(*(tones[name] for name in pair)) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < AA_TEXT} == {}


@pytest.mark.parametrize("mode", MODES)
def test_the_focus_ring_and_the_borders_of_fields_are_seen(mode: str) -> None:
    tones = MODES[mode]
    low = {
        (name, ground): contrast(tones[name], tones[ground])
        for name, ground in product(("focus", "soft"), GROUNDS)
    }
    assert {pair: ratio for pair, ratio in low.items() if ratio < AA_SIGN} == {}


def test_light_and_dark_name_the_same_colours() -> None:
    assert MODES["light"].keys() == MODES["dark"].keys()
    assert contrast("#000", "#ffffff") == pytest.approx(21)
