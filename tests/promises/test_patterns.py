"""No text makes a regular expression of the package slow: the time of every match grows as the
length of the text.

Python's `re` tries one possibility after another. Where a text can match in several ways, as in
`(a+)+$` or `a*a*b`, the time grows exponentially or as a power of the length, and one request with
such a text stops the process that matches it.

recheck, a checker for such patterns, judges every pattern of the package by its automaton, and by
trying texts where the automaton is too large. It measures no time, so its verdict is the same on a
busy machine. A pattern that fails has to be written so that there is one way to match: neighbours
that share no character, alternatives that begin differently.
"""

import json
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from frontdesk.eligibility import fields
from frontdesk.events.target import parse_target
from frontdesk.formats.csv_rows import _SEPARATOR
from frontdesk.invitations.reports import _MESSAGE_ID
from frontdesk.mapping.parser import WAY
from frontdesk.mapping.suggest.names import LONGEST_NAME
from frontdesk.mapping.suggest.sample import _VALUE
from frontdesk.mapping.values import parse_format
from frontdesk.text import is_host_name
from tests.clients.node import TOOLS, node, succeeds
from tests.promises.patterns import Pattern, compiled_in_modules, patterns_of_package

HERE = Path(__file__).parent
SNAPSHOT = HERE.parent / "api/snapshots/openapi.json"

# Patterns that read files of the package, such as docstrings and pages, when it starts. No caller's
# text gets there.
READS_OUR_OWN_TEXT = {"api.site._REASONS", "api.site._LINK"}
# Patterns whose time grows with the square of the length, and the length that the callers see to
# before.
LONGEST_TEXT_OF = {"mapping.suggest.names._ASIDE": LONGEST_NAME, "eligibility.fields._look": 101}
MOST_STEPS = 100_000  # a millisecond or less

# What the checker has to find.
PLANTED = {
    "exponential repeat": Pattern("planted", r"(a+)+$", 0, "search"),
    "exponential choice": Pattern("planted", r"(?:a|a)*$", 0, "match"),
    "square of a search": Pattern("planted", r"\s+$", 0, "search"),
    "neighbours that share a letter": Pattern("planted", r"x[a-z]*b?[a-z]*!", 0, "fullmatch"),
    "names of hosts, as they were": Pattern(
        "planted", r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?){1,127}", 0, "fullmatch"
    ),
}


def patterns_at_run_time() -> dict[str, list[tuple[str, int]]]:
    """Those that functions make of their arguments. A customer chooses some of the arguments, but
    writes no pattern.
    """
    looks = [look for of_code in fields._LOOKS.values() for look in of_code]
    dates = [
        parse_format(text)
        for text in ("MM/DD/YYYY", "D.M.YY", "YYYYMMDD", "DD MON YYYY", "M-D/., YYYY")
    ]
    of_mappings = [
        (pattern.pattern, pattern.flags)
        for place, pattern in compiled_in_modules()
        if place.startswith("mapping.parser")
    ]
    document = json.loads(SNAPSHOT.read_text())
    operations = [each for path in document["paths"].values() for each in path.values()]
    parameters = [
        document["components"]["parameters"],
        *(each.get("parameters", []) for each in operations),
    ]
    of_parameters = sorted({*_patterns_of_schemas(parameters)})
    stray = "~(?!(?:INS|REF|DTP|NM1|PER|N3|N4|DMG|HD|SE|LX)\\*)"
    line_end = r"(?<=[^ \t\r\n~])[ \t]*[\r\n][ \t\r\n]*(?=(?:INS|REF|SE)\*)"
    return {
        "eligibility.fields._look": [(look, re.IGNORECASE | re.DOTALL) for look in looks],
        "formats.x12._interchange": [("~(?=INS\\*Y)", 0), (stray, 0)],
        "formats.x12._without_breaks": [(line_end, 0)],
        "formats.x12._check_end": [("0*12", 0)],
        "mapping.parser._text": of_mappings,
        "mapping.values.parse_format": [(str(date and date.pattern), 0) for date in dates],
        "web.request._broken_rule": [(pattern, 0) for pattern in of_parameters],
    }


def _patterns_of_schemas(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for each in schema:
            yield from _patterns_of_schemas(each)
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        for each in schema.values():
            yield from _patterns_of_schemas(each)


def patterns_for_callers() -> list[Pattern]:
    """Every pattern that is given a caller's text, once."""
    found = [
        each
        for each in patterns_of_package(patterns_at_run_time())
        if each.where not in READS_OUR_OWN_TEXT
    ]
    return [*dict.fromkeys(found)]


def verdicts_of_recheck(patterns: list[Pattern], folder: Path) -> list[str]:
    """`safe`, or how fast the time of each pattern grows."""
    asked = [
        {"source": _as_javascript(each), "flags": _flags_of_javascript(each)} for each in patterns
    ]
    (folder / "patterns.json").write_text(json.dumps(asked))
    done = node(HERE / "patterns.mjs", TOOLS, folder / "patterns.json", folder=folder)
    verdicts = json.loads(succeeds(done))
    return [
        "safe" if each["status"] == "safe" else f"{each['status']}: {each['growth']}"
        for each in verdicts
    ]


def _as_javascript(pattern: Pattern) -> str:
    """Letter case counts for nothing where a part of the pattern says so: more characters are alike
    then, never fewer.
    """
    source = pattern.text.replace("(?P<", "(?<").replace("(?i:", "(?:")
    return {"search": source, "match": f"^(?:{source})", "fullmatch": f"^(?:{source})$"}[
        pattern.way
    ]


def _flags_of_javascript(pattern: Pattern) -> str:
    flags = {re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s"}
    found = "".join(letter for flag, letter in flags.items() if pattern.flags & flag)
    return found + "i" if "(?i:" in pattern.text and "i" not in found else found


class TakesTooLong(Exception):
    pass


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Ends what would take hours, in the middle of a match too, after so much processor time."""

    def stop(*_: object) -> None:
        raise TakesTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def test_no_text_of_a_caller_makes_a_pattern_slow(tmp_path: Path) -> None:
    patterns = patterns_for_callers()
    verdicts = verdicts_of_recheck(patterns, tmp_path)
    slow = {
        f"{each.where}: {each.way} {each.text}: {verdict}"
        for each, verdict in zip(patterns, verdicts, strict=True)
        if verdict != "safe" and LONGEST_TEXT_OF.get(each.where, MOST_STEPS) ** 2 > MOST_STEPS
    }
    assert slow == set()


def test_the_checker_finds_every_kind_of_slow_pattern(tmp_path: Path) -> None:
    verdicts = verdicts_of_recheck([*PLANTED.values()], tmp_path)
    assert [verdict for verdict in verdicts if not verdict.startswith("vulnerable")] == []


def test_no_compiled_pattern_is_overlooked() -> None:
    """What the modules hold when they are imported is among what was read in their source."""
    seen = {each.text for each in patterns_of_package(patterns_at_run_time())}
    held = {}
    for place, pattern in compiled_in_modules():
        text = (
            pattern.pattern
            if isinstance(pattern.pattern, str)
            else pattern.pattern.decode("latin-1")
        )
        if text not in seen:
            held[place] = text
    assert held == {}


def test_the_lists_of_exceptions_name_patterns_that_exist() -> None:
    places = {each.where for each in patterns_of_package(patterns_at_run_time())}
    assert (READS_OUR_OWN_TEXT | LONGEST_TEXT_OF.keys()) - places == set()


# Texts that took minutes to years, one for each pattern that was mended.
@pytest.mark.parametrize(
    "url",
    [
        "https://" + "a" * 40 + "!/",
        "https://benefits-webhook-receiver-prod.example.com;/",
        "https://" + "a." * 900,
    ],
)
def test_a_mistyped_address_of_an_endpoint_is_refused_at_once(url: str) -> None:
    with at_most(20), pytest.raises(ValueError, match="must be an absolute https address"):
        parse_target(url, allows_loopback=False)


@pytest.mark.parametrize(
    "host", ["a" * 63 + ".example", "a-b._dmarc.example.", "x" * 63 + "." + "y" * 63]
)
def test_a_name_of_the_dns_is_a_host(host: str) -> None:
    assert is_host_name(host)


@pytest.mark.parametrize(
    "host", ["", ".", "a..b", "-a.example", "a-.example", "a" * 64, "a\n", "ä.example", "a." * 127]
)
def test_other_texts_are_no_hosts(host: str) -> None:
    assert not is_host_name(host)


def test_a_first_line_of_a_million_tabs_holds_up_no_file() -> None:
    with at_most(20):
        assert not _SEPARATOR.fullmatch("sep=," + "\t" * 1_000_000 + "=")
    assert _SEPARATOR.fullmatch('"sep=;";;\t \t\n')


def test_a_name_of_a_column_that_is_nearly_an_address_holds_up_no_suggestion() -> None:
    with at_most(20):
        assert not _VALUE.fullmatch("x@x" + ".." * 500_000 + " @")
    assert _VALUE.fullmatch("robin@mail.example.com")


def test_a_way_of_an_834_is_read_once() -> None:
    with at_most(20):
        assert not WAY.fullmatch("NM109+" * 100_000)
    assert WAY.fullmatch("REF*1L + REF*38+person_code + REF*0F + REF*1L")
    assert not WAY.fullmatch("REF*1L+person_code")


def test_a_message_id_has_one_way_to_match() -> None:
    with at_most(20):
        assert not _MESSAGE_ID.fullmatch("<" + "@" * 100_000)
    assert _MESSAGE_ID.fullmatch(" <@a@b@c> ")
