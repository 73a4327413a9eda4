"""Why a member got no mail, in the words of the command line: a sentence with the next command."""

from collections.abc import Callable
from datetime import datetime

from frontdesk import codes
from frontdesk.cli.output import settings
from frontdesk.clock import system_clock
from frontdesk.codes.mail import MailRemedy
from frontdesk.db import Tx
from frontdesk.eligibility.mailed import mailed_member
from frontdesk.eligibility.people import Values
from frontdesk.invitations.model import Invitation, InvitationState, SuppressionReason
from frontdesk.invitations.why import WhyNoMail, why_no_mail
from frontdesk.reach import EVERY
from frontdesk.text import wire_time

_LATER = (
    "Only a new member is invited, so a later change of the record or the settings brought no mail."
)
# {0} is the invitation. Those of a pending invitation are in its sentence.
_COMMANDS = {
    MailRemedy.CORRECT_CAUSE: "Correct the cause.",
    MailRemedy.LIFT_SUPPRESSION: (
        "To allow the suppressed address: frontdesk suppression remove ADDRESS."
    ),
    MailRemedy.LOOK_IN_RELAY_LOG: (
        "Look its Message-ID up in the relay's log, and look into the reader's spam folder."
    ),
    MailRemedy.PROVE_ADDRESS: (
        "Support entered the present address before three facts of the caller had matched. An editor "
        "of the account can send the mail in the console."
    ),
    MailRemedy.RESEND: "To send it after all: frontdesk invitations resend {0}",
    MailRemedy.SETTLE: (
        "Ask the relay's log, then: frontdesk invitations settle {0} --as sent (or failed)"
    ),
}


def ask_why(tx: Tx, member: Values) -> WhyNoMail:
    """Why the member got no mail, for an operator, who sees what the mails of all accounts did."""
    now = system_clock()
    of_member = mailed_member(tx, member, now=now)
    return why_no_mail(tx, EVERY, of_member, has_relay=settings().sends_mail, now=now)


def sentence_of(why: WhyNoMail, *, is_gone: bool) -> str:
    """The answer for people. `is_gone`: the member is erased or withdrawn."""
    own = why.invitation
    if own is None:
        return why.sentence if is_gone else f"{why.sentence} {_LATER}"
    if own.state is InvitationState.PENDING:
        return _PENDING.get(why.reason, _plain)(why, own).strip()
    advice = [_COMMANDS[each].format(own.id) for each in why.remedies]
    if is_gone and own.state is not InvitationState.CANCELLED:
        advice = ["The member is erased or withdrawn."]
    elif why.suppression and why.suppression.reason is SuppressionReason.UNSUBSCRIBE:
        advice.append("The person unsubscribed, and nobody can lift that.")
    reports = [f"Reported: {each.event} ({each.status or 'no status'})." for each in why.reports]
    said = f"Invitation {own.id} is {own.state} (since {wire_time(own.updated_at)})."
    return " ".join(filter(None, [said, _last_step(own), *reports, *advice]))


def _last_step(own: Invitation) -> str:
    """The reason of the last step, and what the relay said."""
    code = own.relay_code
    words = own.relay_words or ""
    reply = f" The relay said: {code} {words}".rstrip(" .") + "." if code else ""
    return (own.reason.description if own.reason else "") + reply


def _plain(why: WhyNoMail, _own: Invitation) -> str:
    return why.sentence


def _held(why: WhyNoMail, _own: Invitation) -> str:
    return f"Mail is held ({why.hold}): frontdesk invitations release [--keep-back]"


def _suspended(_why: WhyNoMail, own: Invitation) -> str:
    return f"The account is suspended: frontdesk account resume {own.account_id}"


def _no_relay(_why: WhyNoMail, _own: Invitation) -> str:
    return "There is no relay: set FRONTDESK_SMTP_URL, and start the worker."


def _mailbox_limit(why: WhyNoMail, own: Invitation) -> str:
    return f"{_last_step(own)} That is at {_time(why.due_at)}."


def _retry(why: WhyNoMail, own: Invitation) -> str:
    return f"{_last_step(own)} The next attempt is due at {_time(why.due_at)}."


def _worker(why: WhyNoMail, own: Invitation) -> str:
    ask = "Does a worker run? Does the relay answer (frontdesk check)?"
    return f"{_last_step(own)} Due since {_time(why.due_at)}. {ask}"


def _immediate_limit(why: WhyNoMail, own: Invitation) -> str:
    more = f"frontdesk account limit {own.account_id} --immediate-per-hour NUMBER"
    return (
        f"The account has its {why.limit} immediate mails for this hour. "
        f"{_leaves(why)}To allow more: {more}"
    )


def _disabled(_why: WhyNoMail, own: Invitation) -> str:
    enable = f"frontdesk deliverability set --account {own.account_id} --enabled"
    return f"The account's batches are off: {enable}"


def _batch(why: WhyNoMail, _own: Invitation) -> str:
    limit = f"the account's hourly limit ({why.used} of {why.limit} mails)"
    return f"It waits for its batch and {limit}. {_leaves(why)}"


def _leaves(why: WhyNoMail) -> str:
    """When it leaves, with a space after it; "" if too many wait with it to say."""
    if why.leaves_by is None:
        return ""
    return f"While a worker runs, it leaves by {_time(why.leaves_by)}. "


def _time(at: datetime | None) -> str | None:
    return None if at is None else wire_time(at)


_PENDING: dict[str, Callable[[WhyNoMail, Invitation], str]] = {
    codes.mail.BATCH: _batch,
    codes.mail.DISABLED: _disabled,
    codes.mail.HELD: _held,
    codes.mail.IMMEDIATE_LIMIT: _immediate_limit,
    codes.mail.MAILBOX_LIMIT: _mailbox_limit,
    codes.mail.NO_RELAY: _no_relay,
    codes.mail.RETRY: _retry,
    codes.mail.SUSPENDED: _suspended,
    codes.mail.WORKER: _worker,
}
