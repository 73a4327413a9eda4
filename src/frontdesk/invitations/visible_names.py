"""Which names of plans a mail may show. A customer renames a plan as it likes, and the mail leaves
from the operator's domain.

A name that a mail program could link, or that hides or reorders characters, is left out of the
whole mail. The plan keeps it.
"""

import re
import unicodedata

NEUTRAL_NAME = "your health plan"
MOST_CHARACTERS = 80  # a longer text in the subject is a message of its own

# A dot as domain names know it: IDNA takes the ideographic one for a dot, too. NFKC has made the
# others of these two.
_DOT = "[.\u3002]"
_ADDRESS = re.compile(
    rf"@|:/|//|\\\\|=\?|hxxps?|\bwww{_DOT}"
    rf"|[^\W_]{_DOT}[^\W\d_]{{2}}"  # a letter or digit, a dot, and what can begin a top-level domain
    rf"|[^\W_]{_DOT}xn--"
    rf"|\d{_DOT}\d{{1,3}}{_DOT}\d{{1,3}}{_DOT}\d",
    re.IGNORECASE,
)
# Control, format (invisible, bidirectional), surrogate, private and unassigned characters; ends of
# lines and paragraphs.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# They are drawn as nothing, though Unicode files them under letters, marks and symbols.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def visible_name(name: str) -> str:
    """The name as a mail shows it: itself, or NEUTRAL_NAME.

    >>> visible_name("Gold 2.0 for St. Mary's")
    "Gold 2.0 for St. Mary's"
    >>> visible_name("Your account is locked: evil.com/login")
    'your health plan'
    """
    return name if _is_harmless(name) else NEUTRAL_NAME


def _is_harmless(name: str) -> bool:
    if not name.strip() or len(name) > MOST_CHARACTERS:
        return False
    if any(unicodedata.category(character) in _HIDDEN for character in name) or _BLANK & set(name):
        return False
    # Full-width letters, ligatures and the like as mail programs and browsers resolve them.
    resolved = unicodedata.normalize("NFKC", name)
    return _ADDRESS.search(resolved) is None
