"""The e-mail addresses by which users sign in."""

from email_validator import EmailNotValidError, validate_email

from frontdesk import codes
from frontdesk.errors import Fault, Invalid
from frontdesk.text import fold_email, trimmed
from frontdesk.users.tables import EMAIL_LENGTH


def sign_in_name(email: str) -> str:
    """The e-mail as it is compared and stored; "" for a text that can be nobody's."""
    plain = trimmed(email[: 2 * EMAIL_LENGTH])
    folded = fold_email(plain)
    return folded if len(folded) <= EMAIL_LENGTH and folded.isprintable() else ""


def parse_email(email: str) -> str:
    """The sign-in name of a new user. Raises Invalid (field `email`)."""
    name = sign_in_name(email)
    try:
        validate_email(name, check_deliverability=False)
    except EmailNotValidError:
        rule = "must be an e-mail address, such as ana.ruiz@example.com"
        raise Invalid([Fault("email", codes.faults.MALFORMED_EMAIL, rule)]) from None
    return name
