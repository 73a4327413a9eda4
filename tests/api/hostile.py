"""A corpus of hostile JSON, built from tables: what no reader may take, and values that are wrong
for each field.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from frontdesk.eligibility.fields import FIELDS

HIGH = r"\ud83d"
LOW = r"\ude00"


@dataclass(frozen=True, slots=True)
class Case:
    """A body that is 400 on every route, whatever the route's fields."""

    name: str
    raw: bytes


def nested(depth: int, opening: str, closing: str, *, closed: bool = True) -> str:
    return opening * depth + "1" + (closing * depth if closed else "")


# A value that makes the whole body unreadable, wherever it stands.
_BAD_VALUES = {
    "nan": "NaN",
    "infinity": "Infinity",
    "minus_infinity": "-Infinity",
    "1e400": "1e400",
    "huge_exponent": "1e999999999",
    "digits": "9" * 5_000,
    "leading_zero": "01",
    "plus": "+1",
    "no_integer": ".5",
    "no_fraction": "1.",
    "hex": "0x10",
    "underscore": "1_0",
    "arabic_number": "\u0661",
    "fullwidth_number": "\uff11",
    "minus": "-",
    "true_in_capitals": "True",
    "single_quotes": "'x'",
    "bad_escape": r'"\x41"',
    "short_escape": r'"\u12"',
    "braced_escape": r'"\u{41}"',
    "escape_with_sign": r'"\u+041"',
    "escape_with_space": r'"\u 041"',
    "escaped_newline": '"\\\n"',
    "high_alone": f'"{HIGH}"',
    "low_alone": f'"{LOW}"',
    "swapped": f'"{LOW}{HIGH}"',
    "high_then_text": f'"{HIGH}x{LOW}"',
    "half_in_a_list": f'["x",["{LOW}"]]',
    "half_in_a_key": f'{{"{HIGH}":1}}',
    "half_after_a_backslash": rf'"\\{HIGH}"',
    "twice": '{"b":1,"b":2}',
    "twice_alike": '{"b":1,"b":1}',
    "twice_by_escape": r'{"b":1,"\u0062":2}',
    "twice_in_a_list": '[0,[{"b":{"c":1,"c":2}}]]',
    "twice_empty": '{"":1,"":2}',
    "list_101": nested(100, "[", "]"),
    "list_10000": nested(10_000, "[", "]"),
    "list_open": nested(30_000, "[", "]", closed=False),
    "object_101": nested(100, '{"b":', "}"),
    "object_10000": nested(9_000, '{"b":', "}"),
    "mixed_5000": nested(5_000, '[{"b":', "}]"),
    "escape_before_depth": rf'["\u0041",{nested(960, "[", "]")}]',
    "comma_first": "[,1]",
    "comma_last": "[1,]",
    "no_value": "",
    "no_colon": '{"b" 1}',
    "key_alone": '{"b"}',
    "key_without_quotes": "{b:1}",
    "comment": "1/*x*/",
    "wrong_bracket": "[1}",
    "open_string": '"x',
    "text_after": "1 x",
    "spread": "[...]",
}

_BAD_BODIES: dict[str, bytes] = {
    "empty": b"",
    "spaces": b" \n\t ",
    "null": b"null",
    "true": b"true",
    "number": b"1",
    "text": b'"x"',
    "list": b"[]",
    "list_of_objects": b'[{"external_id":"x"}]',
    "two_objects": b"{}{}",
    "lines": b"{}\n{}",
    "bom": b"\xef\xbb\xbf{}",
    "garbage_after": b"{}x",
    "nul_after": b"{}\0",
    "nul_before": b"\0{}",
    "no_break_space": "\u00a0{}".encode(),
    "form_feed": b"\x0c{}",
    "vertical_tab": b"{}\x0b",
    "guard": b")]}',\n{}",
    "jsonp": b"f({})",
    "form": b"external_id=x",
    "xml": b"<a/>",
    "open": b"{",
    "close": b"}",
    "brackets": b"[" * 60_000,
    "braces": b"{" * 60_000,
    "quotes": b'"' * 60_001,
    "backslashes": b'{"a":"' + b"\\" * 60_001,
    "high_bytes": b"\xff" * 60_000,
    "nuls": b"\0" * 60_000,
    "overlong_nul": b'{"a":"\xc0\x80"}',
    "encoded_half": b'{"a":"\xed\xa0\x80"}',
    "cesu_pair": b'{"a":"\xed\xa0\xbd\xed\xb8\x80"}',
    "beyond_unicode": b'{"a":"\xf4\x90\x80\x80"}',
    "latin_1": '{"a":"é"}'.encode("latin-1"),
    "continuation_only": b'{"a":"\x80"}',
    "ebcdic": "{}".encode("cp037"),
}
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig")


def unreadable() -> Iterator[Case]:
    for name, value in _BAD_VALUES.items():
        yield Case(f"value_{name}", f'{{"a":{value}}}'.encode())
    for name, raw in _BAD_BODIES.items():
        yield Case(f"body_{name}", raw)
    for encoding in _ENCODINGS:
        yield Case(f"encoding_{encoding}", '{"a":"é"}'.encode(encoding))
    for code in range(0x20):
        yield Case(f"raw_control_{code:02x}", b'{"a":"x%cy"}' % code)


# JSON values of every type, for fields that want another.
_VALUES: dict[str, Any] = {
    "true": True,
    "false": False,
    "zero": 0,
    "minus_one": -1,
    "float": 1.5,
    "two_to_the_53": 2**53 + 1,
    "two_to_the_64": 2**64,
    "large_float": 1e308,
    "list": [],
    "list_of_text": ["x"],
    "object": {},
    "object_of_number": {"k": 1},
}
_TAKES = {name: {"true", "false"} for name in FIELDS if name.startswith(("medical_e", "invite_"))}
_TAKES |= {"relationship_code_hipaa": {"zero"}, "metadata": {"object"}}


def wrong_types() -> Iterator[tuple[str, Any, dict[str, str]]]:
    """(field, value, faults) for each field of the eligible member and each JSON type that it does
    not take.
    """
    for name in FIELDS:
        for kind, value in _VALUES.items():
            if kind not in _TAKES.get(name, ()):
                place = "metadata.k" if (name, kind) == ("metadata", "object_of_number") else name
                of_no_kind = name == "relationship_code_hipaa" and type(value) is int
                yield name, value, {place: "not_allowed" if of_no_kind else "wrong_type"}
        if FIELDS[name].required:
            for blank in (None, "", " \n\u3000"):
                yield name, blank, {name: "required"}


_TEXTS = [name for name in FIELDS if "maxLength" in FIELDS[name].kind.schema and name != "email"]
_CONTROLS = ("\0", "\x08", "\x1b", "\x7f", "\x85", "\u2028", "a\nb\r")
_DATES = (
    "2026-W01-1",
    "2026W011",
    "20260101",
    "2026-1-1",
    "2026-02-30",
    "0000-01-01",
    "2026-00-10",
    "2026-13-01",
    "26-01-01",
    "12026-01-01",
    "-2026-01-01",
    "2026/01/01",
    "2026-01-01 00:00:00",
    "2026-01-01T",
    "2026-01-01T24:00:00Z",
    "2026-01-01T00:00:60Z",
    "2026-01-01T00:00:00+24:00",
    "2026-01-01T00:00:00 Z",
    "2026-01-01T00:00:00Zz",
    "2026-01-01T1:00",
    "2026-01-01Z",
    "2026-01-01T00:00:00.0000000000Z",
    "\u0662\u0660\u0662\u0666-\u0660\u0661-\u0660\u0661",
    "\uff12\uff10\uff12\uff16-01-01",
    "2026\u201001\u201001",
    "today",
    "1735689600",
    "2026-01-01\0",
    "2026-01-01\n2026-01-02",
    "2026-01-01T00:00:00[Europe/Berlin]",
)
_WRONG: dict[str, tuple[str, tuple[str, ...]]] = {
    "gender": ("not_allowed", ("m", "f", "female\0male", "other;", "\u2640", "\uff4dale", "null")),
    "phone": (
        "not_ten_digits",
        (
            "123456789",
            "21234567890",
            "\u0661" * 10,
            "\uff11" * 10,
            "61755501OO",
            "6175550100x1",
            "617555\n0100",
            "tel:6175550100",
            "6175550100\0",
            "\U0001d7d4175550100",
            "-" * 60_000,
        ),
    ),
    "zipcode": (
        "malformed_zipcode",
        (
            "123456",
            "12345-678",
            "12345-67890",
            "12345 678",
            "A1B 2C3",
            "\u0661" * 5,
            "12345\n6789",
            "12345\0",
            "-12345",
            "0" * 60_000,
        ),
    ),
    "email": (
        "malformed_email",
        (
            "robin",
            "a@",
            "@b.com",
            "a@b",
            "a@@b.com",
            "a b@c.com",
            "a@b..com",
            "a@.com",
            "a@b.com.",
            "a.@b.com",
            "a..b@c.com",
            "a@b.com\nBcc: c@d.com",
            "a@b.com,c@d.com",
            "<a@b.com>",
            "R <a@b.com>",
            "a@[127.0.0.1]",
            "a@b_c.com",
            "a\0@b.com",
            "=?utf-8?q?a?=@b.com",
            "a@b.com?bcc=c",
            "a@" + "b" * 64 + ".com",
            "a@" + "b." * 125 + "com",
            "a" * 60_000,
            "a@b\u202e.com",
            "mailto:a@b.com",
            "a;b@c.com",
            "a@xn--.com",
        ),
    ),
    "medical_eligibility": (
        "not_allowed",
        ("yes", "1", "T", "TRUE FALSE", "true\0", "\uff34\uff32\uff35\uff25"),
    ),
    "medical_enrollment": ("not_allowed", ("no", "0", "F", "TRUEFALSE")),
    "subscriber_relationship": ("not_allowed", ("self", "primary dependent", "Dependents", "18")),
    "invite_immediately": ("wrong_type", ("true", "TRUE", "1", "yes")),
    "metadata": ("wrong_type", ("{}", "x")),
}
_FREE_OF_CONTROL = {"gender", "medical_eligibility"}  # a control character there is told as such


def wrong_texts() -> Iterator[tuple[str, Any, dict[str, str]]]:
    """(field, value, faults): texts that the field's own rule refuses."""
    for name in ("dob", "effective_date", "expiry_date"):
        for text in _DATES:
            yield name, text, {name: "not_a_date"}
    yield "dob", "1899-12-31", {"dob": "before_1900"}
    yield "dob", "2026-11-21", {"dob": "in_the_future"}
    yield "dob", "9999-12-31T23:59:59Z", {"dob": "in_the_future"}
    yield "expiry_date", "2025-12-31", {"expiry_date": "expiry_before_effective"}
    for name, (code, texts) in _WRONG.items():
        for text in texts:
            told_as_such = name in _FREE_OF_CONTROL and "\0" in text
            yield name, text, {name: "control_character" if told_as_such else code}
    for name in _TEXTS:
        for control in _CONTROLS:
            yield name, f"a{control}b", {name: "control_character"}
        limit = FIELDS[name].kind.schema["maxLength"]
        marks = "a" + "\u0301\u0316" * 8_000
        for text in (
            "a" * (limit + 1),
            "é" * (limit + 1),
            "\ufb2c" * limit,
            marks,
            "\U0001f600" * 10_000,
        ):
            yield name, text, {name: "too_long"}


def wrong_metadata() -> Iterator[tuple[str, Any, dict[str, str]]]:
    """(field, value, faults): objects that are no flat objects of strings."""
    for value in (*_VALUES.values(), None):
        yield "metadata", {"k": value}, {"metadata.k": "wrong_type"}
    yield "metadata", {"": "x"}, {"metadata": "empty_key"}
    yield "metadata", {"k" * 41: "x"}, {f"metadata.{'k' * 40}": "too_long"}
    yield "metadata", {"k": "x" * 501}, {"metadata.k": "too_long"}
    yield "metadata", {"k": "a\0b"}, {"metadata.k": "control_character"}
    yield "metadata", {"a\0b": "x"}, {"metadata.a%00b": "control_character"}
    yield "metadata", {str(n): "x" for n in range(51)}, {"metadata": "too_many_keys"}
    yield "metadata", {str(n): "x" for n in range(5_000)}, {"metadata": "too_many_keys"}


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
