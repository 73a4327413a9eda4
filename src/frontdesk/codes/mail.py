"""Why a mail that a member waits for has not left, and what people can do about it. The other
reasons are words of the invitation: its last step, or why there is none (`invitations.model`).
"""

from enum import StrEnum
from functools import partial

from frontdesk.codes.model import Code, Where

_mail = partial(Code.declared, Where.MAIL)

BATCH = _mail("batch", "It waits for its batch and the account's hourly limit.")
DISABLED = _mail("disabled", "The account's batches are switched off.")
EXPIRED = _mail("expired", "The member's access has ended, so the invitation will be cancelled.")
HELD = _mail("held", "All mail is held.")
IMMEDIATE_LIMIT = _mail("immediate_limit", "The account has its immediate mails for this hour.")
MAILBOX_LIMIT = _mail("mailbox_limit", "The mailbox has had its mails for one day.")
NOT_NEW = _mail("not_new", "The account's batches were not on when the member came.")
NO_RELAY = _mail("no_relay", "There is no relay for mail.")
PLAN_INACTIVE = _mail("plan_inactive", "Its plan accepts no patients, so it waits.")
RETRY = _mail("retry", "The relay did not take it; the next attempt comes by itself.")
SUPPRESSED = _mail("suppressed", "The address is suppressed, so the invitation will be cancelled.")
SUSPENDED = _mail("suspended", "The account is suspended.")
UNPROVEN = _mail(
    "unproven", "Support entered the address before three facts of the caller had matched."
)
WAITING = _mail("waiting", "It waits for its turn.")
WORKER = _mail("worker", "It is due: no worker runs, or the relay does not answer.")


class MailRemedy(StrEnum):
    """What to do so that a mail leaves or arrives. Each door says how, and who may."""

    ALLOW_MORE = "allow_more"  # immediate mails of the account
    CHECK_WORKER = "check_worker"
    CORRECT_CAUSE = "correct_cause"  # what the relay or the report says
    ENABLE_BATCHES = "enable_batches"
    LIFT_SUPPRESSION = "lift_suppression"
    LOOK_IN_RELAY_LOG = "look_in_relay_log"  # by the Message-ID; and in the spam folder
    PROVE_ADDRESS = "prove_address"  # an editor sends it, or facts of the caller match
    RELEASE_MAIL = "release_mail"
    RESEND = "resend"
    RESUME_ACCOUNT = "resume_account"
    SETTLE = "settle"  # ask the relay's log first
    SET_RELAY = "set_relay"
    WAIT = "wait"
