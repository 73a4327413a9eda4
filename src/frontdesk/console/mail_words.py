"""Why a person got no mail, in the words of the console, and what may be done about it there. Never
the relay's words: they may name the address.
"""

from typing import NamedTuple

from markupsafe import Markup

from frontdesk import codes
from frontdesk.codes.mail import MailRemedy
from frontdesk.console.times import Times
from frontdesk.invitations.model import InvitationState, SuppressionReason
from frontdesk.invitations.protocol import CANCELLABLE
from frontdesk.invitations.resend import RESENDABLE
from frontdesk.invitations.why import WhyNoMail

_SENT = "The mail was sent."
_STATES = {
    InvitationState.PENDING: ("plain", "The mail waits."),
    InvitationState.CLAIMED: ("plain", "The mail is about to be sent."),
    InvitationState.OFFERED: ("plain", "The mail is being sent."),
    InvitationState.SENT: ("good", _SENT),
    InvitationState.AMBIGUOUS: ("warn", "Nobody knows whether the mail was sent."),
    InvitationState.FAILED: ("bad", "No mail came."),
    InvitationState.CANCELLED: ("warn", "The mail was cancelled."),
}
_SUPPRESSED = {
    SuppressionReason.HARD_BOUNCE: "A mail bounced, so the address is blocked.",
    SuppressionReason.COMPLAINT: "The reader complained: only an operator can lift that.",
    SuppressionReason.BY_HAND: "An operator blocked the address.",
    SuppressionReason.UNSUBSCRIBE: "The person unsubscribed: nobody can lift that.",
}
_ADVICE = {
    MailRemedy.WAIT: "It goes by itself.",
    MailRemedy.CORRECT_CAUSE: "Correct the cause, then send it again.",
    MailRemedy.PROVE_ADDRESS: (
        "An editor of the account can send it; or support, on a call, once three answers match, not "
        "counting the e-mail."
    ),
    MailRemedy.LOOK_IN_RELAY_LOG: "Ask the person to look into the spam folder.",
    MailRemedy.SETTLE: "An operator has to look it up at the relay.",
    MailRemedy.CHECK_WORKER: "An operator has to look after the workers.",
    MailRemedy.RELEASE_MAIL: "An operator holds all mail.",
    MailRemedy.RESUME_ACCOUNT: "An operator has suspended the account.",
    MailRemedy.SET_RELAY: "An operator has to set a relay.",
    MailRemedy.ENABLE_BATCHES: "An operator has to switch the account's batches on.",
    MailRemedy.ALLOW_MORE: "An operator can allow more mails an hour.",
}


class MailAnswer(NamedTuple):
    """The answer as a page shows it: its tone, what happened, why and since when; what to do; and
    which buttons may be drawn.
    """

    tone: str
    happened: str
    sentence: str
    when: Markup
    advice: tuple[str, ...]
    can_resend: bool
    can_unblock: bool
    can_cancel: bool


def mail_answer(why: WhyNoMail, times: Times, *, is_proven: bool, has_address: bool) -> MailAnswer:
    """`is_proven`: whether a mail of the reader may go to an address that support has entered.
    `has_address`: whether the person has an e-mail address now.
    """
    own = why.invitation
    blocked = why.suppression.reason if why.suppression is not None else None
    tone, happened = ("plain", "No mail was sent.") if own is None else _STATES[own.state]
    if tone == "good" and (blocked is not None or why.is_elsewhere):
        tone = "warn"
    if why.is_elsewhere and happened == _SENT:
        happened = "The mail was sent to an earlier address."
    moment = why.due_at or why.leaves_by or (own.updated_at if own is not None else None)
    sentences = [why.sentence]
    if blocked is not None:
        sentences.append(_SUPPRESSED[blocked])
    if own is not None and not has_address:
        sentences.append("The person has no e-mail address now.")
    elif why.is_elsewhere:
        sentences.append("No mail has gone to the present address.")
    can_send = has_address and own is not None and own.state in RESENDABLE and blocked is None
    if why.resendable_from is not None:
        sentences.append(f"It can be sent again from {times.minute(why.resendable_from)}.")
    # Who has complained or unsubscribed has had the mail; one to an earlier address can't be found.
    is_lost = blocked is not None or why.is_elsewhere
    advised = _ADVICE.keys() - ({MailRemedy.LOOK_IN_RELAY_LOG} if is_lost else set())
    is_kept_back = why.reason == codes.mail.UNPROVEN and not is_proven
    return MailAnswer(
        tone=tone,
        happened=happened,
        sentence=" ".join(filter(None, sentences)),
        when=times.at(moment),
        advice=tuple(_ADVICE[each] for each in why.remedies if each in advised),
        can_resend=can_send and why.resendable_from is None and not is_kept_back,
        can_unblock=has_address and blocked is SuppressionReason.HARD_BOUNCE and not is_kept_back,
        can_cancel=own is not None and own.state in CANCELLABLE,
    )
