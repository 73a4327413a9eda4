"""What one customer may do to the others: each attack stays within the documented limits, and comes
from one client.
"""

import json
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, repeat
from typing import Any
from urllib.parse import urlencode

from tests.factories import member_body

BATCH_BYTES = 8 * 1024 * 1024
RECORDS = 1000
HISTORY = 3000  # changes of the attacked customer's first member
LINES = "application/x-ndjson"
LONGEST_BODY = 64 * 1024


@dataclass(slots=True)
class Target:
    """A customer: its token, first plan, client and first member."""

    token: str
    plan_id: int
    client_id: str
    member_id: int
    number: int

    @property
    def members(self) -> str:
        return f"/v2/plans/{self.plan_id}/eligibility"

    @property
    def batch(self) -> str:
        return f"{self.members}/batch"

    @property
    def files(self) -> str:
        return f"/v2/plans/{self.plan_id}/eligibility-files"

    def long_history(self) -> Iterator[bytes]:
        """Changes of the first member, in batches."""
        for start in range(0, HISTORY, RECORDS):
            changes = [
                {"external_id": f"first {self.number}", "city": f"City {n}"}
                for n in range(start, start + RECORDS)
            ]
            yield request_bytes("POST", self.batch, json.dumps(changes).encode(), token=self.token)


def request_bytes(
    method: str,
    path: str,
    body: bytes = b"",
    *,
    token: str = "",
    kind: str = "application/json",
    more: str = "",
) -> bytes:
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n{authorization}{more}"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


Requests = Callable[[Target], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Attack:
    """Requests of one client on some connections. A pause, if any, follows each answer."""

    name: str
    connections: int
    requests: Requests
    pause_seconds: float = 0.0


def _batch(
    content: Callable[[Target], bytes], *, kind: str = "application/json", more: str = ""
) -> Requests:
    """The same batch again and again."""

    def requests(target: Target) -> Iterator[bytes]:
        return repeat(
            request_bytes(
                "POST", target.batch, content(target), token=target.token, kind=kind, more=more
            )
        )

    return requests


def _records(make: Callable[[int], Any]) -> Callable[[Target], bytes]:
    return lambda _target: json.dumps(
        [make(n) for n in range(RECORDS)], ensure_ascii=False
    ).encode()[:BATCH_BYTES]


def _get(path: Callable[[Target], str]) -> Requests:
    return lambda target: repeat(request_bytes("GET", path(target), token=target.token))


def _wrong(number: int, **more: Any) -> dict[str, Any]:
    """A record with a fault in each field."""
    names = [
        "member_id",
        "first_name",
        "last_name",
        "middle_name",
        "dob",
        "gender",
        "email",
        "phone",
        "zipcode",
        "city",
        "county",
        "state",
        "effective_date",
        "expiry_date",
        "invite_immediately",
        "medical_eligibility",
        "medical_enrollment",
        "medical_plan_description",
        "payor_name",
        "payor_plan_name",
        "relationship_code",
        "relationship_code_hipaa",
        "subscriber_relationship",
    ]
    return {"external_id": number, **{name: [number] for name in names}} | more


def _large_wrong(number: int) -> dict[str, Any]:
    return _wrong(number, metadata={f"{'k' * 41}{n}": "v" * 100 for n in range(50)})


def _foreign_address(number: int) -> dict[str, Any]:
    return member_body(number, email=f"a@{'é' * 200}{number}.example")


def _punycode_address(number: int) -> dict[str, Any]:
    domain = ".".join(["xn--" + "a" * 40 + f"{number:06d}"] * 4)
    return member_body(number, email=f"a@{domain}.com")


def _nested(number: int) -> dict[str, Any]:
    deep: Any = []
    for _ in range(80):
        deep = [deep, []]
    return member_body(number, metadata={"a": deep, "b": [[]] * 1500})


def _unknown(number: int) -> dict[str, Any]:
    return {"external_id": f"u{number}"} | {f"expiration_dat{number}x{n}": 1 for n in range(300)}


def _fresh_batches(target: Target) -> Iterator[bytes]:
    """Batches of members that are new each time."""
    while True:
        mark = secrets.token_hex(5)
        records = [
            member_body(
                n,
                external_id=f"{mark} {n}",
                member_id=f"{mark}-{n}",
                email=f"{mark}.{n}@example.com",
            )
            for n in range(RECORDS)
        ]
        yield request_bytes("POST", target.batch, json.dumps(records).encode(), token=target.token)


def _same_member(target: Target) -> Iterator[bytes]:
    """Batches that change one member a thousand times."""
    while True:
        mark = secrets.token_hex(5)
        records = [
            {"external_id": f"first {target.number}", "city": f"{mark} {n}"} for n in range(RECORDS)
        ]
        yield request_bytes("POST", target.batch, json.dumps(records).encode(), token=target.token)


def _keyed(target: Target) -> Iterator[bytes]:
    """One batch with an Idempotency-Key, then its repetitions."""
    records = [member_body(target.number * 20_000_000 + n) for n in range(RECORDS)]
    content = json.dumps(records).encode()
    key = f"Idempotency-Key: {secrets.token_hex(8)}\r\n"
    return repeat(request_bytes("POST", target.batch, content, token=target.token, more=key))


def _new_keys(target: Target) -> Iterator[bytes]:
    """The same records, unchanged, each time with another Idempotency-Key."""
    content = json.dumps(
        [member_body(target.number * 20_000_000 + n) for n in range(RECORDS)]
    ).encode()
    while True:
        key = f"Idempotency-Key: {secrets.token_hex(8)}\r\n"
        yield request_bytes("POST", target.batch, content, token=target.token, more=key)


def _single_posts(target: Target) -> Iterator[bytes]:
    """Bodies of 64 KiB: wrong values, and as many unknown fields as there is room for."""
    body = _wrong(1, metadata={f"{'k' * 41}{n}": "" for n in range(400)})
    body |= {f"u{n}": 1 for n in range(2600)}
    content = json.dumps(body).encode()[:LONGEST_BODY]
    return repeat(request_bytes("POST", target.members, content, token=target.token))


def _many_faults(target: Target) -> Iterator[bytes]:
    """Single POSTs whose texts are the slowest to trim and to compose."""
    body = member_body(
        1, last_name="\u200b" * 5000 + "a" + "\u200b" * 5000, city="a" + "\u0301" * 400
    )
    content = json.dumps(body, ensure_ascii=False).encode()
    return repeat(request_bytes("POST", target.members, content, token=target.token))


def _wrong_secrets(target: Target) -> Iterator[bytes]:
    while True:
        form = {
            "grant_type": "client_credentials",
            "client_id": target.client_id,
            "client_secret": secrets.token_hex(20),
        }
        yield request_bytes(
            "POST",
            "/oauth/token",
            urlencode(form).encode(),
            kind="application/x-www-form-urlencoded",
        )


def _wrong_tokens(_target: Target) -> Iterator[bytes]:
    while True:
        yield request_bytes("GET", "/v2/plans", token=secrets.token_urlsafe(32))


def _wide_file(rows: int) -> bytes:
    """A table with 300 columns that nobody knows."""
    head = ",".join(f"Column Nr {n} of the export" for n in range(300))
    line = ",".join(f"value{n}" for n in range(300))
    return "\n".join([head, *[line] * rows]).encode()


def _suggestions(target: Target) -> Iterator[bytes]:
    path = f"{target.files}?suggest_mapping=true"
    return repeat(
        request_bytes("POST", path, _wide_file(1000), token=target.token, kind="text/csv")
    )


def _uploads(target: Target) -> Iterator[bytes]:
    """Files of which no row can be used, each with other content."""
    while True:
        content = _wide_file(200) + secrets.token_hex(8).encode()
        yield request_bytes("POST", target.files, content, token=target.token, kind="text/csv")


def _mappings(target: Target) -> Iterator[bytes]:
    """Mappings of 60 KiB, all of whose columns lead nowhere."""
    columns = {f"Column {n}": f"expiration_dat{n}" for n in range(1500)}
    content = json.dumps({"columns": columns}).encode()[:LONGEST_BODY]
    return repeat(
        request_bytes("PUT", "/v2/eligibility-mappings/wide", content, token=target.token)
    )


def _webhook_addresses(target: Target) -> Iterator[bytes]:
    addresses = (
        "https://" + "a" * 40 + "!/",
        "https://webhook.example.com;/",
        "https://" + "xn--" + "9" * 59 + ".com/" + "x" * 1900,
        "https://" + "ä." * 120 + "com/",
    )
    bodies = [json.dumps({"url": address}).encode() for address in addresses]
    return cycle(
        [
            request_bytes("POST", "/v2/webhook-endpoints", body, token=target.token)
            for body in bodies
        ]
    )


def _queries(target: Target) -> Iterator[bytes]:
    """Addresses with hundreds of unknown parameters."""
    query = "&".join(f"externalidx{n}=1" for n in range(600))
    return repeat(request_bytes("GET", f"/v2/plans?{query}", token=target.token))


def _plan_changes(target: Target) -> Iterator[bytes]:
    while True:
        content = json.dumps({"description": secrets.token_hex(20)}).encode()
        yield request_bytes("PATCH", f"/v2/plans/{target.plan_id}", content, token=target.token)


def _good_posts(target: Target) -> Iterator[bytes]:
    """New members, one at a time."""
    while True:
        mark = secrets.token_hex(6)
        body = member_body(
            1, external_id=mark, member_id=mark, email=f"{mark}@example.com", last_name=mark
        )
        yield request_bytes("POST", target.members, json.dumps(body).encode(), token=target.token)


def _spaces(_target: Target) -> bytes:
    return b"[" + b" " * (BATCH_BYTES - 1)


def _letters(_target: Target) -> bytes:
    """8 MiB of letters outside ASCII, in lines that are no record, whose last byte is no UTF-8."""
    line = '"' + "é" * 30_000 + '"\n'
    return (line * 130).encode() + b"\xff"


def _half_megabyte_keys(number: int) -> dict[str, Any]:
    return {"external_id": f"m{number}"} | {f"{number}_{n}": 1 for n in range(600)}


_NOTHING = "updated_since=2099-01-01T00:00:00Z"

ATTACKS = (
    Attack("batch: 8 MB of line feeds", 1, _batch(lambda _: b"\n" * BATCH_BYTES, kind=LINES)),
    Attack("batch: 8 MB of spaces", 1, _batch(_spaces)),
    Attack("batch: 8 MB that is no UTF-8 at its end", 1, _batch(_letters, kind=LINES)),
    Attack("batch: 1,000 records, 24 faults each", 1, _batch(_records(_wrong))),
    Attack("batch: 1,000 records of 8 KB, 75 faults each", 1, _batch(_records(_large_wrong))),
    Attack("batch: 1,000 addresses that can't be converted", 1, _batch(_records(_foreign_address))),
    Attack("batch: 1,000 addresses in Punycode", 1, _batch(_records(_punycode_address))),
    Attack("batch: 1,000 records with deep metadata", 1, _batch(_records(_nested))),
    Attack("batch: 300,000 unknown fields", 1, _batch(_records(_unknown))),
    Attack("batch: 600,000 unknown fields", 1, _batch(_records(_half_megabyte_keys))),
    Attack("batch: 1,000 new members", 1, _fresh_batches),
    Attack("batch: 1,000 new members, 4 connections", 4, _fresh_batches),
    Attack("batch: one member 1,000 times", 1, _same_member),
    Attack("batch: repeated with its key", 4, _keyed),
    Attack("batch: unchanged, each with a new key", 4, _new_keys),
    Attack("batch: 24 faults each, 10 connections", 10, _batch(_records(_wrong))),
    Attack("POST: 64 KB with faults and unknown fields", 8, _single_posts),
    Attack("POST: texts that are slow to normalise", 8, _many_faults),
    Attack("POST: new members", 8, _good_posts),
    Attack("list: page[size]=1000", 8, _get(lambda target: f"{target.members}?page[size]=1000")),
    Attack("list: a filter that finds nothing", 8, _get(lambda target: f"{target.members}?{_NOTHING}")),
    Attack("history: page[size]=1000", 8,
           _get(lambda target: f"{target.members}/{target.member_id}/history?page[size]=1000")),
    Attack("events: page[size]=1000", 8, _get(lambda _: "/v2/events?page[size]=1000")),
    Attack("files: page[size]=1000", 8, _get(lambda _: "/v2/eligibility-files?page[size]=1000")),
    Attack("query: 600 unknown parameters", 8, _queries),
    Attack("plan: changes", 8, _plan_changes),
    Attack("tokens: wrong secrets", 8, _wrong_secrets),
    Attack("tokens: unknown tokens", 8, _wrong_tokens),
    Attack("mapping: 1,500 wrong columns", 4, _mappings),
    Attack("file: a suggestion for 300 columns", 4, _suggestions),
    Attack("file: uploads without a usable row", 4, _uploads),
    Attack("webhook: addresses of every kind", 4, _webhook_addresses),
)  # fmt: skip
