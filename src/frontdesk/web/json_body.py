"""JSON in requests: whether the caller takes it, whether it sends it, and how a body is read."""

from functools import lru_cache

from frontdesk.errors import Malformed
from frontdesk.strict_json import NotStrict, parse_strictly
from frontdesk.web.request import Request
from frontdesk.web.response import HttpError

# Longer headers are not cached: a cache full of the longest ones would hold megabytes.
LONGEST_CACHED = 200


def check_accept(request: Request) -> None:
    """Raises HttpError `not_acceptable` when the Accept header excludes JSON. No header accepts everything."""
    sent = request.header(b"accept")
    if sent is None:
        return
    accepts = _accepts_json if len(sent) > LONGEST_CACHED else _accepts_json_cached
    if not accepts(sent):
        raise HttpError("not_acceptable", "Only application/json is served here.")


def check_json_body(request: Request) -> None:
    """Raises HttpError `unsupported_media_type` when the body is declared as anything but JSON in UTF-8."""
    sent = request.header(b"content-type")
    encoding = request.header(b"content-encoding")
    is_json = _is_json if sent is not None and len(sent) > LONGEST_CACHED else _is_json_cached
    if (sent is not None and not is_json(sent)) or (encoding is not None and encoding.lower() != "identity"):
        raise HttpError(
            "unsupported_media_type", "Send the body as application/json in UTF-8, not compressed."
        )


def parse_json_object(raw: bytes) -> dict[str, object]:
    """The JSON object in `raw`. Raises Malformed as `parse_json` does, and for an array or a single value."""
    value = parse_json(raw)
    if type(value) is not dict:
        raise Malformed("The body must be a JSON object.")
    return value


def parse_json(raw: bytes) -> object:
    """The JSON value in `raw`. Raises Malformed when it is not UTF-8, and for all that `parse_strictly` refuses."""
    try:
        value: object = parse_strictly(raw.decode("utf-8"))
    except NotStrict as error:
        raise Malformed(f"The body {error}{error.place and ': ' + error.place}.") from None
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Malformed(f"The body is not valid JSON in UTF-8: line {line}.") from None
    return value


def _accepts_json(accept: str) -> bool:
    """The most specific range that matches decides, and q=0 excludes (RFC 9110, section 12.5.1)."""
    best, quality = -1, 0.0
    for part in accept.split(","):
        media, parameters = _media_type(part)
        rank = {"*/*": 0, "application/*": 1, "application/json": 2}.get(media, -1)
        if rank >= best and rank >= 0:
            weight = next((_weight(value) for name, value in parameters if name == "q"), 1.0)
            quality = max(quality, weight) if rank == best else weight
            best = rank
    return quality > 0 or not accept.strip()


def _is_json(content_type: str) -> bool:
    media, parameters = _media_type(content_type)
    is_json = media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
    charsets = {value.strip('" ') for name, value in parameters if name == "charset"}
    return is_json and charsets <= {"utf-8", "utf8"}


def _media_type(text: str) -> tuple[str, list[tuple[str, str]]]:
    """A media type or range and its parameters, in lower case."""
    media, *parameters = (piece.strip().lower() for piece in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return media, [(name.strip(), value.strip()) for name, _, value in pairs]


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


_accepts_json_cached = lru_cache(maxsize=256)(_accepts_json)
_is_json_cached = lru_cache(maxsize=256)(_is_json)
