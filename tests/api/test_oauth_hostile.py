"""Whatever is sent to the token endpoints, the answer is the caller's fault (4xx), and both databases agree."""

import base64
import random
from typing import Any

import pytest

from frontdesk.db import Database
from tests.conftest import Api, SetClock
from tests.factories import Customer

URLENCODED = "application/x-www-form-urlencoded"
GOOD = "grant_type=client_credentials&client_secret=x"


def part(name: bytes, value: bytes, head: bytes = b"") -> bytes:
    return (
        b'--X\r\nContent-Disposition: form-data; name="' + name + b'"' + head + b"\r\n\r\n" + value + b"\r\n"
    )


def form_of(value: bytes) -> bytes:
    return part(b"client_id", value) + part(b"client_secret", b"x") + b"--X--\r\n"


BODIES: dict[str, tuple[str, bytes, int]] = {
    "nothing": (URLENCODED, b"", 401),
    "nul": (URLENCODED, GOOD.encode() + b"&client_id=a%00b", 400),
    "raw_nul": (URLENCODED, GOOD.encode() + b"&client_id=a\0b", 400),
    "newline": (URLENCODED, GOOD.encode() + b"&client_id=a%0Ab", 400),
    "not_utf8": (URLENCODED, GOOD.encode() + b"&client_id=%ff%fe", 400),
    "raw_not_utf8": (URLENCODED, GOOD.encode() + b"&client_id=\xff", 400),
    "half_surrogate": (URLENCODED, GOOD.encode() + b"&client_id=%ed%a0%80", 400),
    "bad_percent": (URLENCODED, GOOD.encode() + b"&client_id=%zz%", 401),
    "letters": (URLENCODED, GOOD.encode() + "&client_id=пароль".encode(), 401),
    "many_fields": (URLENCODED, b"a=&" * 20_000, 400),
    "only_signs": (URLENCODED, b"&&&===&&&", 401),
    "utf16": (URLENCODED, GOOD.encode("utf-16"), 400),
    "json_as_form": (URLENCODED, b'{"grant_type": "client_credentials"}', 401),
    "form_as_json": ("application/json", GOOD.encode(), 400),
    "json_array": ("application/json", b"[]", 400),
    "json_null": ("application/json", b"null", 400),
    "json_empty": ("application/json", b"", 400),
    "json_bom": ("application/json", b"\xef\xbb\xbf{}", 400),
    "json_nan": ("application/json", b'{"client_id": NaN}', 400),
    "json_deep": ("application/json", b"[" * 60_000, 400),
    "json_deep_member": ("application/json", b'{"client_id":' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400),
    "json_number": ("application/json", b'{"client_id": 1, "client_secret": "x"}', 400),
    "json_list": ("application/json", b'{"client_id": "a", "client_secret": ["x"]}', 400),
    "json_bool": ("application/json", b'{"client_id": true, "client_secret": "x"}', 400),
    "json_nulls": ("application/json", b'{"client_id": null, "client_secret": null}', 401),
    "json_huge_number": ("application/json", b'{"other": 1e400}', 400),
    "json_surrogate": ("application/json", b'{"client_id": "\\ud800", "client_secret": "x"}', 400),
    "json_nul": ("application/json", b'{"client_id": "a\\u0000", "client_secret": "x"}', 400),
    "json_twice": ("application/json", b'{"client_id": "a", "client_id": "a", "client_secret": "x"}', 400),
    "no_boundary": ("multipart/form-data", form_of(b"a"), 400),
    "empty_boundary": ('multipart/form-data; boundary=""', form_of(b"a"), 400),
    "another_boundary": ("multipart/form-data; boundary=Y", form_of(b"a"), 400),
    "quote_in_boundary": ('multipart/form-data; boundary="X\\""', form_of(b"a"), 400),
    "latin_boundary": ("multipart/form-data; boundary=é", form_of(b"a"), 400),
    "long_boundary": ("multipart/form-data; boundary=" + "X" * 9000, form_of(b"a"), 400),
    "multipart_nul": ("multipart/form-data; boundary=X", form_of(b"a\0b"), 400),
    "multipart_not_utf8": ("multipart/form-data; boundary=X", form_of(b"\xff\xfe"), 400),
    "multipart_escape": ("multipart/form-data; boundary=X; charset=unicode_escape", form_of(rb"\ud800"), 401),
    "multipart_idna": ("multipart/form-data; boundary=X; charset=idna", form_of(b"\xff"), 400),
    "multipart_utf16": ("multipart/form-data; boundary=X; charset=utf-16", form_of(b"abc"), 401),
    "multipart_cut_off": ("multipart/form-data; boundary=X", form_of(b"a")[:-20], 401),
    "multipart_file": (
        "multipart/form-data; boundary=X",
        part(b"client_id", b"a", b'; filename="f"') + b"--X--\r\n",
        400,
    ),
    "multipart_no_name": (
        "multipart/form-data; boundary=X",
        b"--X\r\nContent-Disposition: form-data\r\n\r\na\r\n--X--\r\n",
        400,
    ),
    "multipart_no_disposition": ("multipart/form-data; boundary=X", b"--X\r\nA: b\r\n\r\na\r\n--X--\r\n", 400),
    "multipart_many": ("multipart/form-data; boundary=X", part(b"a", b"") * 900 + b"--X--\r\n", 400),
    "multipart_long_header": (
        "multipart/form-data; boundary=X",
        b"--X\r\nA: " + b"b" * 50_000 + b"\r\n\r\na\r\n--X--\r\n",
        400,
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/revoke"])
def test_a_hostile_body_is_the_callers_fault(api: Api, clock: SetClock, path: str) -> None:
    answered = {}
    for name, (declared, body, _) in BODIES.items():
        headers = {"Content-Type": declared.encode("latin-1")}
        answer = api.as_(None).post(path, content=body, headers=headers)
        answered[name] = (answer.status_code, answer.json().get("error"))
        clock.advance(60)  # the limit on failures is not what is tested here
    errors = {400: "invalid_request", 401: "invalid_client"}
    assert answered == {name: (status, errors[status]) for name, (_, _, status) in BODIES.items()}


BASIC = {
    "nothing": b"",
    "no_colon": base64.b64encode(b"client"),
    "empty_pair": base64.b64encode(b":"),
    "nul": base64.b64encode(b"a\0b:c"),
    "encoded_nul": base64.b64encode(b"a%00b:c%00"),
    "encoded_not_utf8": base64.b64encode(b"a%ff:c"),
    "newline": base64.b64encode(b"a\nb:c"),
    "not_utf8": base64.b64encode(b"\xff\xfe:c"),
    "no_base64": b"!!!",
    "no_padding": b"YTpiYQ",
    "letters": "Ã©".encode(),
    "control_characters": b"\x01\x02",
    "two_words": b"YTpi YTpi",
    "long": base64.b64encode(b"a" * 5_000 + b":b"),
}


def test_hostile_http_basic_is_an_invalid_client(api: Api, clock: SetClock) -> None:
    answered = {}
    for name, encoded in BASIC.items():
        answer = api.as_(None).post(
            "/oauth/token",
            data={"grant_type": "client_credentials"},
            headers={"Authorization": b"Basic " + encoded},
        )
        answered[name] = (
            answer.status_code,
            answer.json().get("error"),
            answer.headers.get("WWW-Authenticate"),
        )
        clock.advance(60)
    assert answered == dict.fromkeys(BASIC, (401, "invalid_client", 'Basic realm="frontdesk"'))


def test_a_good_request_with_bytes_changed_at_random_is_never_our_fault(
    api: Api, customer: Customer, clock: SetClock, db: Database
) -> None:
    chance = random.Random(6749)
    values = {"grant_type": "client_credentials", "client_id": customer.client_id, "client_secret": "wrong"}
    bodies: list[tuple[str, bytes]] = [
        (URLENCODED, "&".join(f"{name}={value}" for name, value in values.items()).encode()),
        (
            "multipart/form-data; boundary=X",
            b"".join(part(n.encode(), v.encode()) for n, v in values.items()) + b"--X--",
        ),
        ("application/json", str(values).replace("'", '"').encode()),
    ]
    for _ in range(300):
        declared, good = chance.choice(bodies)
        body = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(body))
            kind = chance.random()
            if kind < 0.6:
                body[at] = chance.randrange(256)
            elif kind < 0.8:
                del body[at : at + chance.randint(1, 5)]
            else:
                body[at:at] = bytes(chance.choices(b'\0\r\n"%&=;-X\xff{}[]', k=3))
        answer: Any = api.as_(None).post(
            "/oauth/token", content=bytes(body), headers={"Content-Type": declared}
        )
        assert answer.status_code in {400, 401}, bytes(body)
        clock.advance(40)  # so that the limit on failures does not end the test
