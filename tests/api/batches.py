"""Batches of members: what is sent, and what of an answer is compared."""

import json
from collections.abc import Iterable
from typing import Any

LINES = {"Content-Type": "application/x-ndjson"}


def lines_of(records: Iterable[Any]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def kind(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].partition("#")[2]


def statuses(answer: Any) -> list[int]:
    return [each["status"] for each in answer.json()["data"]]
