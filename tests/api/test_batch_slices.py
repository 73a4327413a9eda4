"""A batch is computed in slices, and each step between two of them is bounded, whatever the body
holds.
"""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from frontdesk.api import eligibility_batch
from frontdesk.app import App
from frontdesk.eligibility import field_kinds
from frontdesk.errors import Malformed
from frontdesk.formats.source import Source
from frontdesk.text import Rejected
from frontdesk.time_slices import SliceScheduler
from frontdesk.web import request as web_request
from tests.api.batches import LINES, kind, lines_of, statuses
from tests.api.conftest import codes
from tests.conftest import Api
from tests.factories import Customer, member_body

PAUSE = "pause"
BATCH_BYTES = 8 * 1024 * 1024


@pytest.fixture
def path(customer: Customer) -> str:
    return f"/v2/plans/{customer.plan_ids[0]}/eligibility/batch"


@pytest.fixture
def steps(app: App, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps of computations in their order, and the pauses between them: each slice is over at
    its first step.
    """
    taken: list[str] = []
    time = itertools.count()
    scheduler = SliceScheduler(lambda: float(next(time)))
    pause = scheduler.pause

    async def noted_pause() -> None:
        taken.append(PAUSE)
        await pause()

    def note(owner: Any, name: str) -> None:
        function: Callable[..., Any] = getattr(owner, name)

        def noted(*given: Any, **named: Any) -> Any:
            taken.append(name)
            return function(*given, **named)

        monkeypatch.setattr(owner, name, noted)

    monkeypatch.setattr(scheduler, "pause", noted_pause)
    monkeypatch.setattr(app, "slices", scheduler)
    for name in ("parse_row", "parse_member", "_shown", "likely_field"):
        note(eligibility_batch, name)
    note(Source, "block")
    note(web_request, "sha256")
    return taken


def between_pauses(steps: list[str], name: str) -> int:
    """The most steps of this name without a pause."""
    groups = itertools.groupby(steps, lambda step: step == PAUSE)
    return max(list(group).count(name) for _, group in groups)


@pytest.mark.parametrize("is_lines", [False, True])
@pytest.mark.parametrize("is_good", [False, True])
def test_a_batch_pauses_after_each_record_that_it_reads_parses_and_shows(
    api: Api, path: str, steps: list[str], is_lines: bool, is_good: bool
) -> None:
    good = [member_body(n) for n in range(100)]
    wrong = [{name: [n] for name in member_body()} for n in range(100)]
    records = good if is_good else wrong
    content = lines_of(records) if is_lines else json.dumps(records).encode()
    answer = api.post(path, content=content, headers=LINES if is_lines else {})
    assert statuses(answer) == [201 if is_good else 422] * 100
    for name in ("parse_row", "parse_member", "_shown"):
        assert steps.count(name) == 100
        assert between_pauses(steps, name) == 1, name
    assert steps.count(PAUSE) >= 300  # reading, parsing, showing


def test_lines_that_are_no_record_pause_as_records_do(
    api: Api, path: str, steps: list[str]
) -> None:
    answer = api.post(path, content=b"7\n" * 900, headers=LINES)
    assert statuses(answer) == [400] * 900
    assert (between_pauses(steps, "parse_row"), between_pauses(steps, "_shown")) == (1, 1)


@pytest.mark.parametrize(("content", "headers"), [
    (b"\n" * BATCH_BYTES, LINES), (b" \r\n" * (BATCH_BYTES // 3), LINES),
    (b"[" + b" " * (BATCH_BYTES - 1), {}),
    (b"[{}," + b"\n" * (BATCH_BYTES - 4), {}), (b"[{}]" + b"\t" * (BATCH_BYTES - 4), {}),
], ids=["line feeds", "blank lines", "spaces", "spaces between items", "spaces at the end"])  # fmt: skip
def test_megabytes_that_say_nothing_are_refused_by_their_first_blocks(
    api: Api, path: str, steps: list[str], content: bytes, headers: dict[str, str]
) -> None:
    """A block is 64 KiB, of lines 8 KiB."""
    answer = api.post(path, content=content, headers=headers)
    assert answer.status_code == (422 if headers else 400)
    assert 0 < steps.count("block") <= (1 if headers else 3)


def test_a_thousand_blank_lines_are_taken_and_one_more_is_refused(api: Api, path: str) -> None:
    records = (
        lines_of([member_body(1)])
        + b"\n"
        + b"\n" * 400
        + lines_of([member_body(2)])
        + b"\n"
        + b" \n" * 600
    )
    assert statuses(api.post(path, content=records, headers=LINES)) == [201, 201]
    new = lines_of([member_body(3)]) + b"\n"
    answer = api.post(path, content=new + b"\n" * 1001, headers=LINES)
    assert (kind(answer), codes(answer)) == ((422, "invalid"), {"records": "too_many_blank_lines"})
    alone = api.post(path.removesuffix("/batch"), {"external_id": "AB 000003"})
    assert codes(alone)["dob"] == "required"  # nothing of the batch was written


def test_spaces_between_the_items_of_an_indented_array_are_taken(api: Api, path: str) -> None:
    records = json.dumps([member_body(n) for n in range(3)], indent=8).encode()
    assert (
        statuses(api.post(path, content=records.replace(b"},", b"}," + b" " * 60_000))) == [201] * 3
    )


def test_unknown_fields_without_number_are_compared_twenty_times(
    api: Api, path: str, steps: list[str]
) -> None:
    records = [member_body(n) | {f"field{n}x{k}": 1 for k in range(100)} for n in range(100)]
    answer = api.post(path, records)
    assert statuses(answer) == [201] * 100
    assert steps.count("likely_field") == 20
    # at least: a thousand of them are counted
    assert answer.headers["Ignored-Fields"].endswith(",+980")


def test_a_large_body_is_hashed_and_checked_in_blocks(
    api: Api, path: str, steps: list[str]
) -> None:
    """Each of the 32 blocks is checked to be UTF-8, and with a key it is hashed."""
    content = lines_of(["é" * 20_000] * 50).replace(b"\\u00e9", "é".encode())
    blocks = len(content) // web_request.BLOCK_BYTES
    assert blocks >= 30
    for headers in (LINES, LINES | {"Idempotency-Key": "a"}):
        steps.clear()
        assert api.post(path, content=content, headers=headers).status_code == 207
        before = steps[: steps.index("parse_row")]
        wanted = 2 if "Idempotency-Key" in headers else 1
        assert before.count(PAUSE) >= wanted * blocks + 50


@pytest.mark.parametrize("place", [0, 1, 65_535, 65_536, 65_537, 131_071, 131_072])
def test_the_line_of_a_byte_that_is_no_utf_8_is_named_wherever_it_stands(
    api: Api, path: str, place: int
) -> None:
    content = ("\né" * 70_000).encode()
    content = content[:place] + b"\xff" + content[place:]
    with pytest.raises(Malformed) as whole:
        web_request.read_text(content)
    answer = api.post(path, content=content, headers=LINES)
    assert (answer.status_code, answer.json()["detail"]) == (400, whole.value.detail)
    cut = api.post(path, content='{"a": "é'.encode()[:-1], headers=LINES)
    assert (cut.status_code, cut.json()["detail"]) == (
        400,
        "The body is not valid JSON in UTF-8: line 1.",
    )


@pytest.mark.parametrize("domain", [
    "é" * 60 + ".com", "é." * 60 + "com", "xn--" + "a" * 60 + ".com",
    ".".join(["é" * 59] * 4) + ".com", "é",
])  # fmt: skip
def test_an_address_whose_ascii_form_is_too_long_is_not_converted(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Converting such a domain takes milliseconds, and a batch may have a thousand."""
    converted: list[str] = []
    monkeypatch.setattr(
        field_kinds, "validate_email", lambda address, **_: converted.append(address)
    )
    with pytest.raises(Rejected):
        field_kinds.parse_email(f"a@{domain}")
    assert converted == []


@pytest.mark.parametrize("address", [
    "a@bücher.de", "müller@example.com", "a@" + "b" * 63 + ".com", "a@" + ("b" * 61 + ".") * 3 + "com",
    "a@" + "é" * 30 + ".com",
])  # fmt: skip
def test_addresses_of_lawful_length_are_taken(address: str) -> None:
    assert field_kinds.parse_email(address) == address


def test_a_large_answer_is_sent_in_blocks_and_is_whole(api: Api, path: str) -> None:
    """Each record has dozens of faults, so the answer has megabytes."""
    wide = {f"{'k' * 41}{n}": 1 for n in range(50)}
    records = [member_body(n, metadata=wide) for n in range(200)]
    sent = api.post(path, records)
    assert statuses(sent) == [422] * 200
    assert len(sent.content) > 1024 * 1024
    assert "Content-Length" not in sent.headers
    assert sent.headers["Cache-Control"] == "no-store"
    assert sent.json()["counts"]["refused"] == 200
    assert "Content-Length" in api.post(path, records[:10]).headers


@pytest.mark.parametrize(("is_lines", "largest"), [(True, 8 * 1024), (False, 64 * 1024)])
def test_a_batch_of_lines_is_split_in_smaller_blocks(
    api: Api, path: str, monkeypatch: pytest.MonkeyPatch, is_lines: bool, largest: int
) -> None:
    """A block of lines may be line feeds only, and splitting it is one step."""
    sizes: list[int] = []
    read_block = Source.block

    def noted(source: Source) -> str:
        block = read_block(source)
        sizes.append(len(block))
        return block

    monkeypatch.setattr(Source, "block", noted)
    records = [member_body(n) for n in range(400)]
    content = lines_of(records) if is_lines else json.dumps(records).encode()
    assert (
        statuses(api.post(path, content=content, headers=LINES if is_lines else {})) == [201] * 400
    )
    assert max(sizes) == largest
