"""What a person's page says of the change that has led to it: words, which stand in the address. They
count only while the newest change is the reader's own and a few minutes old.
"""

from datetime import timedelta

from frontdesk import codes
from frontdesk.console.visit import Visit
from frontdesk.disclosures.person import PersonView
from frontdesk.eligibility.person_mail import NewAddressMail

SAID_FOR = timedelta(minutes=5)
_MOST_WORDS = 10

# Warnings of a change, and what became of the mail to a new address.
WORDS: dict[str, str] = {
    codes.warnings.DOB_SHIFTED_ONE_DAY: (
        "The birth date moved by one day. If that was not meant, correct it again."
    ),
    codes.warnings.IDENTITY_CHANGED: (
        "First name and birth date both changed. If this is now another person, correct both back: "
        "another person needs a record of their own."
    ),
    codes.warnings.PLAN_INACTIVE: "The plan accepts no patients at present.",
    codes.warnings.STATE_NOT_RECOGNISED: (
        "The state is neither a USPS code nor a state's name; it was kept as typed."
    ),
    codes.warnings.RELATIONSHIP_CODE_HIPAA_UNKNOWN: (
        "The HIPAA relationship code is unknown; it was kept as typed."
    ),
    codes.warnings.PLACEHOLDER: (
        "A value that stands for none, such as none@none.com, was left out; the stored one stays."
    ),
    NewAddressMail.REFUSED: "The invitation can't be sent to the new address now; see below why.",
    NewAddressMail.LEAVING: (
        "A mail was just leaving for the earlier address, so nothing was sent to the new one. Send it "
        "again once that mail has left."
    ),
}


def said_of(visit: Visit, person: PersonView) -> str:
    """What the page says of the reader's own change just now; "" for nothing."""
    words = visit.parameter("said").split(",")[:_MOST_WORDS]
    texts = [WORDS[word] for word in dict.fromkeys(words) if word in WORDS]
    newest = person.changes[0] if person.changes else None
    if not texts or newest is None or newest.client != visit.user.actor:
        return ""
    if not visit.now - SAID_FOR <= newest.at <= visit.now:
        return ""
    return " ".join(("The change was made.", *texts))
