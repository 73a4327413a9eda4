"""Which texts name a person (pure): the name that a sender gave a file, and columns that no field
has.

`Sample, Robin.csv` names a person. So does the first row of a table without a header, of which the
columns are a member's values.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable

# A text with one of these values names the person; a first name or a birth date alone names nobody.
NAMING_FIELDS = ("external_id", "member_id", "last_name", "email", "phone")
# Values that a row in the place of a header holds, too.
FIELDS_OF_ROW = ("first_name", "dob")

_WORD = re.compile(r"[^\W_]+")


class Names:
    """The values of persons, to be found in texts whatever their letter case, spaces and
    punctuation.
    """

    def __init__(self, values: Iterable[str]) -> None:
        words = (_words(value) for value in values)
        self._sequences = {tuple(each) for each in words if each}
        self._longest = max(map(len, self._sequences), default=0)

    def are_in(self, text: str) -> bool:
        """Whether one of the values stands in the text, as whole words."""
        words = _words(text)
        for start in range(len(words)):
            for end in range(start + 1, min(start + self._longest, len(words)) + 1):
                if tuple(words[start:end]) in self._sequences:
                    return True
        return False

    def are_among(self, texts: Collection[str], *, cut_to: int) -> bool:
        """Whether one of the values stands in one of the texts, which were cut to a number of
        characters.
        """
        if any(map(self.are_in, texts)):
            return True
        cut = {_joined(text) for text in texts if len(text) >= cut_to}
        return any(
            _joined(sequence).startswith(text)
            for sequence in self._sequences
            for text in cut
            if text
        )


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _joined(words: str | tuple[str, ...]) -> str:
    return "".join(_words(words) if isinstance(words, str) else words)
