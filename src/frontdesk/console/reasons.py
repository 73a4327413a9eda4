"""Why a user opens a record, or the names of a file's lists: the words that the forms show."""

from frontdesk.codes import complete
from frontdesk.disclosures.model import OpeningReason

REASONS: dict[OpeningReason, str] = complete(
    OpeningReason,
    {
        OpeningReason.CALLER_ON_THE_LINE: "The person is on the line",
        OpeningReason.MAIL_QUESTION: "A question about a mail",
        OpeningReason.CORRECTION: "A correction",
        OpeningReason.COMPLAINT: "A complaint",
        OpeningReason.AUDIT: "An audit",
    },
)
