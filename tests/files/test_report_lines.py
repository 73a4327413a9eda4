"""How a report prints the warnings of a row."""

import orjson
import pytest

from frontdesk import codes
from frontdesk.eligibility.fields import DROPPED
from frontdesk.eligibility.model import MemberWarning
from frontdesk.files.model import RowOutcome, stored_warnings
from frontdesk.files.report import report_lines

SIMILAR = codes.warnings.SIMILAR_MEMBER


@pytest.mark.parametrize(
    ("warning", "field", "hint"),
    [
        (
            MemberWarning.of(SIMILAR, member_id=7),
            "external_id",
            f"{SIMILAR.sentence} It looks like member 7.",
        ),
        (
            MemberWarning.of(SIMILAR, detail="looks like another new member of the file"),
            "external_id",
            f"{SIMILAR.sentence} It looks like another new member of the file.",
        ),
        (
            MemberWarning.of(DROPPED["phone"], detail="must have exactly 10 digits"),
            "phone",
            f"{DROPPED['phone'].sentence} It must have exactly 10 digits.",
        ),
        (MemberWarning(codes.rows.DIFFERS, "city"), "city", codes.rows.DIFFERS.sentence),
    ],
)
def test_a_warning_is_a_line_with_its_sentence_and_what_is_known_besides(
    warning: MemberWarning, field: str, hint: str
) -> None:
    stored = orjson.loads(orjson.dumps(stored_warnings([warning])))
    _, line = report_lines(RowOutcome(2, "E-1", "created", 9, warnings=stored), {})
    assert (line.outcome, line.code, line.field) == ("warned", warning.code, field)
    assert line.hint == hint


def test_a_code_that_the_table_has_lost_is_shown_without_a_sentence() -> None:
    _, line = report_lines(RowOutcome(2, "E-1", "created", 9, warnings=[("zipcode", "old")]), {})
    assert (line.code, line.hint) == ("old", "")
