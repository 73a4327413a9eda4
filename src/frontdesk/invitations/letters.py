"""What the text of an invitation is written from; the writing is `message`, the sending `delivery`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InvitationLetter:
    """All that is known of one invitation when its message is written: nothing of the member but the address.

    `sender_name`, `sender_address` and `registration_url` are the account's, None where it has set none.
    `message_id` (no <>) and the links stay the same over every attempt.
    """

    invitation_id: int
    account_id: int
    plan_id: int
    address: str
    message_id: str
    plan_name: str
    sender_name: str | None
    sender_address: str | None
    registration_url: str | None
