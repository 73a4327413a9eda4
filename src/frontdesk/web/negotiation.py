"""Whether the caller takes JSON and sends JSON, by its Accept and Content-Type headers."""

from functools import _lru_cache_wrapper, lru_cache

from frontdesk.web.request import Request
from frontdesk.web.response import HttpError

LONGEST_REMEMBERED = 200


def check_accept(request: Request) -> None:
    """Raises Refused(406) when Accept excludes JSON; without the header everything is welcome."""
    sent = request.header(b"accept")
    if sent is not None and not _answer(_accepts_json, sent):
        raise HttpError("not_acceptable", "Only application/json is served here.")


def check_json_body(request: Request) -> None:
    """Raises Refused(415) for a body declared as anything other than JSON in UTF-8."""
    sent = request.header(b"content-type")
    encoding = request.header(b"content-encoding")
    if (sent is not None and not _answer(_is_json, sent)) or (
        encoding is not None and encoding.lower() != "identity"
    ):
        raise HttpError(
            "unsupported_media_type", "Send the body as application/json in UTF-8, not compressed."
        )


def _answer(question: "_lru_cache_wrapper[bool]", header: str) -> bool:
    """From memory where it is worth keeping: a cache full of the longest headers there may be would hold megabytes."""
    return question(header) if len(header) <= LONGEST_REMEMBERED else question.__wrapped__(header)


@lru_cache(maxsize=256)
def _accepts_json(accept: str) -> bool:
    """RFC 9110: the most specific range that matches decides; q=0 excludes."""
    best, quality = -1, 0.0
    for part in accept.split(","):
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        rank = {"*/*": 0, "application/*": 1, "application/json": 2}.get(media, -1)
        if rank >= best and rank >= 0:
            weights = [p.partition("=")[2].strip() for p in parameters if p.partition("=")[0].strip() == "q"]
            weight = _weight(weights[0]) if weights else 1.0
            quality = max(quality, weight) if rank == best else weight
            best = rank
    return quality > 0 or not accept.strip()


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


@lru_cache(maxsize=256)
def _is_json(content_type: str) -> bool:
    media, *parameters = (piece.strip().lower() for piece in content_type.split(";"))
    is_json = media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
    charsets = [
        p.partition("=")[2].strip('" ') for p in parameters if p.partition("=")[0].strip() == "charset"
    ]
    return is_json and all(charset in ("utf-8", "utf8") for charset in charsets)
