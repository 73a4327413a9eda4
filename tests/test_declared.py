"""The guard of the fixture `api` finds what it is there for."""

from typing import Any

import httpx
import pytest

from tests.declared import check_declared

APPROVE = "https://api.example.com/v2/plans/1/eligibility-files/7/approve"
REPORT = "https://api.example.com/v2/plans/1/eligibility-files/7/report"


def answer(url: str, status: int, *, kind: str = "", code: str = "", **headers: str) -> Any:
    """An answer of the service to a POST for a decision, or to a GET."""
    request = httpx.Request("POST" if url == APPROVE else "GET", url)
    if not kind:
        return httpx.Response(status, headers=headers, request=request)
    body = {"type": f"https://api.example.com/problems#{kind}", "errors": [{"code": code}]}
    headers["Content-Type"] = "application/problem+json"
    return httpx.Response(status, json=body, headers=headers, request=request)


@pytest.mark.parametrize(
    "undeclared",
    [
        answer(APPROVE, 418),
        answer(APPROVE, 200, Location="/elsewhere"),
        answer(APPROVE, 403, kind="wrong_state", code="wrong_state"),
        answer(REPORT, 422, kind="invalid", code="not_ten_digits"),
        answer(APPROVE, 409, kind="wrong_state", code="report_open"),
        answer("https://api.example.com/operator/v1/plans/1/queue", 202),
    ],
)
def test_an_undeclared_status_header_kind_or_code_is_refused(undeclared: httpx.Response) -> None:
    with pytest.raises(AssertionError, match="undeclared"):
        check_declared(undeclared)


@pytest.mark.parametrize(
    "declared",
    [
        answer(APPROVE, 200, **{"Cache-Control": "no-store"}),
        answer(APPROVE, 409, kind="wrong_state", code="wrong_state"),
        answer(REPORT, 422, kind="invalid", code="not_allowed"),
        answer("https://api.example.com/v2/nowhere", 404, kind="not_found"),
    ],
)
def test_a_declared_answer_passes(declared: httpx.Response) -> None:
    check_declared(declared)
