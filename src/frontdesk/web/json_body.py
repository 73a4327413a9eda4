"""The body of a request as strict JSON in UTF-8; it knows no field."""

from frontdesk.errors import Malformed
from frontdesk.strict_json import NotStrict, parse_strictly


def parse_json_object(raw: bytes) -> dict[str, object]:
    """The JSON object in `raw`. Raises Malformed as `parse_json` does, and for an array or a single value."""
    value = parse_json(raw)
    if type(value) is not dict:
        raise Malformed("The body must be a JSON object.")
    return value


def parse_json(raw: bytes) -> object:
    """The JSON in `raw`. Raises Malformed for another encoding, and for what `parse_strictly` refuses."""
    try:
        value: object = parse_strictly(raw.decode("utf-8"))
    except NotStrict as error:
        raise Malformed(f"The body {error}.") from None
    except UnicodeDecodeError:
        raise Malformed("The body is not valid JSON in UTF-8.") from None
    return value
