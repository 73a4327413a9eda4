"""Enhanced status codes (RFC 3463) in the words of a relay, and what they say about the sender."""

import re

_STATUS = re.compile(r"[245]\.[0-9]{1,3}\.[0-9]{1,3}")
# The sender's address is malformed, or its domain is unknown.
OF_SENDER = frozenset({"4.1.7", "4.1.8", "5.1.7", "5.1.8"})
# The message is too large, or has characters that the relay can't carry.
_OF_CONTENT = re.compile(r"5\.(?:3\.4|6\.[0-9]+)")
_OF_POLICY = "5.7."


def read_status(text: str) -> str | None:
    """The enhanced status code; None when the text is none."""
    return text if _STATUS.fullmatch(text) else None


def enhanced_code(words: str | None) -> str | None:
    """The enhanced status code that a relay's words begin with; None when they don't."""
    return read_status((words or "").partition(" ")[0])


def is_about_sender(words: str | None) -> bool:
    return enhanced_code(words) in OF_SENDER


def is_about_content(words: str | None) -> bool:
    return _OF_CONTENT.fullmatch(enhanced_code(words) or "") is not None


def is_about_policy(words: str | None) -> bool:
    """Of the sender or of the recipient: the code alone does not tell."""
    return (enhanced_code(words) or "").startswith(_OF_POLICY)
