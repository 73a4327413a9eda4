"""Examples on pages: a request, and the answer that the page shows."""

from pathlib import Path
from typing import Any

REQUEST_AND_ANSWER = (
    r"```http\n([A-Z]+) (/\S*)\n(.*?)```\s+```http\nHTTP/1.1 (\d+) [^\n]*\n(.*?)```"
)
GUIDES = sorted((Path(__file__).parents[2] / "docs/guides").glob("*.md"))
ANY_TEXT = "…"


def parts(text: str, *, is_answer: bool) -> tuple[dict[str, str], str]:
    """Headers and body of an example. A request without headers has its body at once."""
    head, _, body = text.partition("\n\n") if is_answer or "\n\n" in text else ("", "", text)
    return dict(line.split(": ", 1) for line in head.splitlines() if line), body.rstrip("\n")


def part_of(shown: Any, answer: Any) -> bool:
    """Whether the answer has what a guide shows of it."""
    if isinstance(shown, dict):
        return isinstance(answer, dict) and all(
            part_of(shown[name], answer.get(name)) for name in shown
        )
    if isinstance(shown, list):
        return len(shown) == len(answer) and all(map(part_of, shown, answer))
    return shown == answer or (shown == ANY_TEXT and isinstance(answer, str))
