"""Who is invited, and how: the interface's four invitation rules as a pure function; it reads and writes nothing."""

from enum import StrEnum
from typing import NamedTuple


class Delivery(StrEnum):
    """How an invitation leaves: at once, or in the account's rate-limited batches."""

    IMMEDIATE = "immediate"
    BATCHED = "batched"


class Reason(StrEnum):
    """Why nobody was invited (the answer's `Invitation: none; reason=…`)."""

    NOT_NEW = "not_new"
    NO_EMAIL = "no_email"
    NOT_REQUESTED = "not_requested"
    DISABLED = "disabled"
    SUPPRESSED = "suppressed"
    EXPIRED = "expired"


REASONS = {
    Reason.NOT_NEW: "The record existed already; only new members are invited.",
    Reason.NO_EMAIL: "The record has no e-mail address.",
    Reason.NOT_REQUESTED: "invite_immediately was not true, and the account has no deliverability settings.",
    Reason.DISABLED: "invite_immediately was not true, and the account's batched invitations are switched off.",
    Reason.SUPPRESSED: "The address is on the suppression list.",
    Reason.EXPIRED: "The member's access has already expired.",
}

Decision = Delivery | Reason


class Candidate(NamedTuple):
    """What the rules look at. `has_email` means present and well-formed; `asked` is invite_immediately, False if absent.

    `batches_enabled` is the account's deliverability setting, None when the account never had one agreed.
    """

    is_new: bool
    has_email: bool
    suppressed: bool
    expired: bool
    asked: bool
    batches_enabled: bool | None


def decide_invitation(candidate: Candidate) -> Decision:
    """Rules 1 to 4. The first obstacle in the order below is the one that is told.

    >>> decide_invitation(Candidate(True, True, False, False, True, None))
    <Delivery.IMMEDIATE: 'immediate'>
    """
    if not candidate.is_new:
        return Reason.NOT_NEW
    if not candidate.has_email:
        return Reason.NO_EMAIL
    if candidate.suppressed:
        return Reason.SUPPRESSED
    if candidate.expired:
        return Reason.EXPIRED
    if candidate.asked:
        return Delivery.IMMEDIATE  # rules 1 and 3: the account's settings are ignored
    if candidate.batches_enabled:
        return Delivery.BATCHED  # rule 4
    # Rule 2. An account without an agreement never asked for batches; one that switched them off disabled them.
    return Reason.NOT_REQUESTED if candidate.batches_enabled is None else Reason.DISABLED
