"""`frontdesk invitations`, `suppression`, `bounces` and `mailbox`: invitations, suppressed
addresses, bounces, caught mails.

Addresses are masked, unless `suppression list` gets `--full`; `member show` has them. `bounces`
reads what came back to the installation's mail address. `mailbox` shows the mails that a sandbox
caught instead of sending them.
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

import typer

from frontdesk.cli.bulk_resend import resend_failed
from frontdesk.cli.command_group import (
    CommandContext,
    CommandGroup,
    change,
    change_in,
    migrated_database,
)
from frontdesk.cli.layout import Part, field_table, picked, table
from frontdesk.cli.options import (
    WHO_NAMES,
    AccountId,
    OnlyAccount,
    argument,
    id_argument,
    option,
    reach_of,
    read_text,
    start_of,
)
from frontdesk.cli.output import MISUSED, Output, describe, fail, listing, opened_file, settings
from frontdesk.cli.why_no_mail import ask_why, sentence_of
from frontdesk.clock import system_clock
from frontdesk.config import Environment
from frontdesk.db import Tx
from frontdesk.eligibility import find_addresses
from frontdesk.eligibility.field_kinds import parse_email
from frontdesk.eligibility.people import Values, find_member
from frontdesk.errors import Fault, FrontdeskError, Invalid, NotFound
from frontdesk.invitations import (
    delivery,
    delivery_hold,
    find_of_members,
    find_reports,
    list_invitations,
    list_suppressions,
    model,
    suppress,
)
from frontdesk.invitations import resend as resending
from frontdesk.invitations.message import derive_token
from frontdesk.invitations.provider_events import MailProvider
from frontdesk.invitations.reports import parse_report, receive_report, split_mailbox
from frontdesk.invitations.suppression import unsuppress
from frontdesk.mail.status import enhanced_code
from frontdesk.mailbox import delete_messages, get_message, list_messages
from frontdesk.mailbox.model import decode_message
from frontdesk.privacy import erasure
from frontdesk.reach import EVERY, Reach
from frontdesk.text import Rejected

MESSAGES_PER_TRANSACTION = 50
NOT_A_REPORT = "not_a_report"
_STEP = ("at", "from", "to", "reason", "code", "actor")
_MESSAGE_FIELDS = "id sender recipient subject message_id outcome caught_at"

InvitationId = Annotated[int, id_argument("ID", "Id of the invitation (see `invitations list`).")]
MessageId = Annotated[int, id_argument("ID", "Id of the message (see `mailbox list`).")]
Address = Annotated[
    str, argument("ADDRESS", "The address; - reads addresses from stdin, one a line.")
]

invitations = CommandGroup("invitations")
suppression = CommandGroup("suppression")
bounces = CommandGroup("bounces")
mailbox = CommandGroup("mailbox")


@invitations.query("list", "--account 1 --state pending --member robin@example.com --limit 20")
def list_(
    tx: Tx,
    account: OnlyAccount = None,
    state: Annotated[model.InvitationState | None, option("Only those in this state.")] = None,
    limit: Annotated[
        int, option("Most invitations to list, the newest first.", min=1, max=10_000)
    ] = 100,
    member: Annotated[
        str | None, option(f"Only of this member: {WHO_NAMES}.", metavar="WHO")
    ] = None,
) -> Output:
    """List invitations, newest first."""
    if member is None:
        found = list_invitations(tx, reach_of(account), state=state, limit=limit)
    else:
        named = find_member(tx, reach_of(account), read_text("member", member))
        persons = erasure.find_persons_of(tx, Reach.of(named["account_id"]), named["id"])
        own = find_of_members(tx, [each.member_id for each in persons])
        found = [each for each in sorted(own, reverse=True) if state in (None, each.state)][:limit]
    columns = "id account_id plan_id member_id delivery state address_masked created_at"
    return listing([_item(each) for each in found], columns, nothing="There is no such invitation.")


@invitations.query("show", "1")
def show(tx: Tx, invitation_id: InvitationId) -> Output:
    """Show one invitation and its timeline: every step with its reason."""
    item = details(tx, invitation_id)
    return Output(item, parts_of(item))


@invitations.change("cancel", "1")
def cancel(context: CommandContext, invitation_id: InvitationId) -> Output:
    """Cancel an invitation that has not left yet."""
    delivery.cancel_invitation(context.tx, EVERY, invitation_id, context.requester)
    return _recorded(context, "invitation.cancelled", invitation_id)


@invitations.standalone("resend", "--state failed --since 2026-11-20 --code 554")
def resend(
    invitation_id: Annotated[
        int | None, id_argument("ID", "Id of the invitation (see `invitations list`).")
    ] = None,
    *,
    state: Annotated[
        Literal["failed"] | None, option("Instead of an id: all in this state.")
    ] = None,
    since: Annotated[
        datetime | None, option("Only what failed then or later.", parser=start_of, metavar="WHEN")
    ] = None,
    code: Annotated[
        int | None, option("Only with this reply code of the relay.", min=200, max=599)
    ] = None,
    account: OnlyAccount = None,
) -> Output:
    """Enqueue an invitation again, or all that failed since a time; a day after the last mail to an
    address at the earliest. A run that was ended goes on when it is called again.
    """
    of_many = (state, since, code, account)
    if invitation_id is not None and of_many == (None, None, None, None):
        return change(partial(_resend_one, invitation_id=invitation_id))
    if invitation_id is not None or state is None or since is None:
        fail("Give either ID, or --state failed with --since.", status=MISUSED)
    now = system_clock()
    return resend_failed(model.FailedSince(reach_of(account), since, now, code))


def _resend_one(context: CommandContext, invitation_id: int) -> Output:
    resending.resend_invitation(
        context.tx, EVERY, invitation_id, context.requester, find_addresses=find_addresses
    )
    return _recorded(context, "invitation.resent", invitation_id)


@invitations.change("settle", "1 --as sent")
def settle(
    context: CommandContext,
    invitation_id: InvitationId,
    outcome: Annotated[Literal["sent", "failed"], option("What the look-up has shown.", "--as")],
) -> Output:
    """Settle an ambiguous invitation after looking it up at the relay."""
    state = model.InvitationState(outcome)
    delivery.settle_invitation(context.tx, EVERY, invitation_id, state, context.requester)
    return _recorded(context, "invitation.settled", invitation_id)


@invitations.query("forecast", "--account 1")
def forecast(tx: Tx, account: AccountId) -> Output:
    """Show an account's pending mails, batched and immediate, its mails of the last hour, and when
    the last will be sent.
    """
    return describe(asdict(delivery.forecast(tx, account, now=system_clock())))


@invitations.change("hold", "")
def hold(context: CommandContext) -> Output:
    """Hold all delivery from now on, until `invitations release`."""
    delivery_hold.hold(context.tx, model.HoldReason.BY_OPERATOR)
    context.record("invitations.held")
    return describe({"held": True}, "Nothing is delivered until `frontdesk invitations release`.")


@invitations.change("release", "--keep-back")
def release(
    context: CommandContext,
    *,
    keep_back: Annotated[
        bool,
        option("Mark unsettled invitations as ambiguous: they may have been sent.", "--keep-back"),
    ] = False,
) -> Output:
    """Deliver again, after `invitations hold` or after a backup was restored (docs/operations.md)."""
    held_back = delivery.keep_back(context.tx, now=context.now) if keep_back else 0
    delivery_hold.release(context.tx)
    context.record("invitations.released", kept_back=held_back)
    return describe({"held": False, "kept_back": held_back})


def _recorded(context: CommandContext, action: str, invitation_id: int) -> Output:
    """What the invitation is now, after an action that gets its audit entry here."""
    item = details(context.tx, invitation_id)
    context.record(action, account_id=item["account_id"], subject_id=invitation_id)
    return Output(item, parts_of(item))


def details(tx: Tx, invitation_id: int) -> dict[str, Any]:
    """An invitation, its timeline and reports, without its address and the relay's words, which may
    name the address.
    """
    invitation, events = delivery.get_invitation(tx, EVERY, invitation_id)
    names = "attempts losses reason relay_code message_id due_at offered_at settled_at"
    timeline = [
        dict(zip(_STEP, each, strict=True)) | {"why": each.reason.description} for each in events
    ]
    reports = [
        picked(each, "event status") for each in find_reports(tx, [invitation.message_id or ""])
    ]
    more = {
        "enhanced_code": enhanced_code(invitation.relay_words),
        "reports": reports,
        "timeline": timeline,
    }
    return _item(invitation) | picked(invitation, names) | more


def parts_of(item: dict[str, Any]) -> list[Part]:
    """An invitation's details for people."""
    fields = {name: value for name, value in item.items() if name != "timeline"}
    return [field_table(fields), table(item["timeline"], "at from to code why actor")]


def describe_mail(tx: Tx, member: Values, ids: list[int]) -> dict[str, Any]:
    """The member's invitations and its address's suppression, and why no mail came. `ids`: also of
    those merged with it.
    """
    why = ask_why(tx, member)
    sentence = sentence_of(why, is_gone=member["uniqueness_scope"] < 0)
    return {
        "mail": {"reason": why.reason, "why": sentence},
        "suppression": why.suppression and picked(why.suppression, "reason created_at"),
        "invitations": [
            details(tx, each.id) | picked(each, "address relay_words")
            for each in find_of_members(tx, ids)
        ],
    }


def _item(invitation: model.Invitation) -> dict[str, Any]:
    names = "id account_id plan_id member_id kind delivery state created_at updated_at"
    return picked(invitation, names) | {"address_masked": masked(invitation.address)}


def masked(address: str) -> str:
    """`r***@e***.com`: enough to recognise an address, too little to reveal it."""
    local, _, domain = address.rpartition("@")
    name, dot, ending = domain.rpartition(".")
    return f"{local[:1]}***@{name[:1]}***{dot}{ending}"


@suppression.standalone("add", "robin@example.com")
def add(address: Address) -> Output:
    """Suppress an address. Pending invitations to it are cancelled when their turn comes."""

    def suppressed(context: CommandContext, each: str) -> bool:
        return suppress(context.tx, each, model.SuppressionReason.BY_HAND, now=context.now)

    addresses = [*_addresses(address)]

    def work(context: CommandContext) -> int:
        if count := sum(suppressed(context, each) for each in addresses):
            context.record("suppression.added", count=count)
        return count

    changed = change(work)
    unchanged = len(addresses) - changed
    sentence = f"Addresses added: {changed}; {unchanged} needed no change."
    return Output({"changed": changed, "unchanged": unchanged}, [sentence])


@suppression.standalone("remove", "robin@example.com")
def remove(address: Address) -> Output:
    """Allow an address to be mailed again that bounced, complained or was added by hand. Nobody can
    lift an unsubscription. Invitations that were cancelled for it stay cancelled.
    """
    addresses = [*_addresses(address)]
    changed, unchanged, refused = change(partial(_remove_each, addresses=addresses))
    if refused and len(addresses) == 1:
        raise refused[0]
    codes = Counter(str(each.code) for each in refused)
    sentence = f"Addresses removed: {changed}; {unchanged} needed no change."
    parts: list[Part] = [sentence]
    if codes:
        rows = [{"refused": code, "addresses": count} for code, count in sorted(codes.items())]
        parts.append(table(rows, "refused addresses"))
    result = {"changed": changed, "unchanged": unchanged, "refused": dict(sorted(codes.items()))}
    return Output(result, parts)


def _remove_each(
    context: CommandContext, addresses: Sequence[str]
) -> tuple[int, int, list[FrontdeskError]]:
    """How many addresses were taken off the list, how many were not on it, and why others stay."""
    lifted = Counter[str]()
    changed = 0
    unchanged = 0
    refused: list[FrontdeskError] = []
    for each in addresses:
        try:
            found = unsuppress(context.tx, EVERY, each, may_lift=model.LIFTED_BY_OPERATORS)
        except NotFound:
            unchanged += 1
        except FrontdeskError as error:
            refused.append(error)
        else:
            changed += 1
            lifted.update(map(str, found.lifted))
    if changed:
        reasons = dict(sorted(lifted.items()))
        context.record("suppression.removed", count=changed, reasons=reasons)
    return changed, unchanged, refused


@suppression.query("list", "--full --limit 1000")
def list_suppressed(
    tx: Tx,
    *,
    full: Annotated[bool, option("Show whole addresses, not masked ones.", "--full")] = False,
    limit: Annotated[
        int, option("Most addresses to list, in their order.", min=1, max=1_000_000)
    ] = 100,
) -> Output:
    """List the suppressed addresses, each with its reason; one that unsubscribed, with the account."""
    name, shown = ("address", str) if full else ("address_masked", masked)
    found = list_suppressions(tx, EVERY, limit=limit)
    items = [
        {name: shown(each.address)}
        | picked(each, "reason created_at")
        | {"account_id": each.only_account_id or None}
        for each in found
    ]
    columns = f"{name} reason account_id created_at"
    return listing(items, columns, nothing="No address is suppressed.")


def _addresses(argument: str) -> Iterator[str]:
    """The addresses of the argument or of stdin. Raises Invalid, with the number of the line that
    is no address.
    """
    lines = [argument] if argument != "-" else sys.stdin.read().splitlines()
    for number, line in enumerate(lines, 1):
        try:
            if line.strip() or argument != "-":
                yield parse_email(line)
        except Rejected as rejected:
            rule = "must be an e-mail address" + (f" in line {number}" if argument == "-" else "")
            raise Invalid([Fault("ADDRESS", rejected.code, rule)]) from None


@bounces.standalone("address", "ses --signer arn:aws:sns:eu-west-1:123456789012:bounces")
def address(
    provider: Annotated[MailProvider, argument("PROVIDER", "The mail provider.")],
    signer: Annotated[str, option("The topic of SES, or the verification key of SendGrid.")] = "",
) -> Output:
    """Show the address that a mail provider is to call with bounces and complaints. It holds a
    secret.
    """
    secret = settings().link_secret
    base_url = settings().base_url
    if not secret or bool(signer) is (provider == "postmark"):
        fail("Set FRONTDESK_LINK_SECRET, and give --signer for ses and sendgrid, not for postmark.")
    query = f"?{urlencode({'signer': signer})}" if signer else ""
    url = f"{base_url}/operator/v1/email-events/{provider}/{derive_token(secret, provider, signer)}{query}"
    return Output({"url": url}, [url])


@bounces.standalone("read", "/var/mail/invitations")
def read(
    path: Annotated[str, argument("PATH", "An mbox file or a single message; - reads stdin.")],
) -> Output:
    """Read delivery reports: settle unclear deliveries, suppress addresses that don't exist or
    complain.

    Reading the same file again changes nothing. Mail that is no report of ours is skipped.
    """
    found: Counter[str] = Counter()
    failure = "The mailbox can't be read: {}."
    with opened_file(path, "rb", failure) as stream, migrated_database(settings()) as db:
        messages = split_mailbox(stream)
        while batch := list(islice(messages, MESSAGES_PER_TRANSACTION)):
            found.update(change_in(db, partial(_receive, messages=batch)))
    effects = (*model.ReportEffect, NOT_A_REPORT)
    counts = {"messages": found.total()} | {effect: found[effect] for effect in effects}
    sentence = (
        "{messages} messages: {applied} reports applied, {known} known already, {no_news} of delays, "
        "{unknown} about mail of others, {not_a_report} no delivery reports."
    )
    return Output(counts, [sentence.format_map(counts)])


def _receive(context: CommandContext, messages: Sequence[bytes]) -> list[str]:
    effects = [
        receive_report(context.tx, report, now=context.now).value if report else NOT_A_REPORT
        for report in map(parse_report, messages)
    ]
    if applied := effects.count(model.ReportEffect.APPLIED):
        context.record("bounces.read", count=applied)
    return effects


@mailbox.callback()
def refuse_in_production() -> None:
    if settings().environment is not Environment.SANDBOX:
        fail("Only a sandbox catches mail; here FRONTDESK_ENVIRONMENT is production.")


@mailbox.query("list", "--limit 20")
def list_mails(
    tx: Tx,
    limit: Annotated[int, option("Most mails to list, the newest first.", min=1, max=10_000)] = 100,
) -> Output:
    """List the caught mails, newest first."""
    items = [picked(message, _MESSAGE_FIELDS) for message in list_messages(tx, limit=limit)]
    return listing(
        items, "id recipient subject outcome caught_at", nothing="Nothing has been caught yet."
    )


@mailbox.query("show", "1")
def show_mail(tx: Tx, message_id: MessageId) -> Output:
    """Show one mail: its headers and its text."""
    message = get_message(tx, message_id)
    decoded = decode_message(message.content)
    shown = {"headers": dict(decoded.headers), "text": decoded.text, "html": decoded.html}
    item = picked(message, _MESSAGE_FIELDS) | shown
    return Output(item, [field_table(dict(decoded.headers)), "", decoded.text])


@mailbox.query("open", "1 --output invitation.html")
def open_(
    tx: Tx,
    message_id: MessageId,
    output: Annotated[
        Path | None, option("Write it there and don't open a browser.", metavar="FILE")
    ] = None,
) -> Output:
    """Open one mail in the browser, as its reader would see it."""
    decoded = decode_message(get_message(tx, message_id).content)
    ending = "html" if decoded.html else "txt"
    path = output or Path(tempfile.mkdtemp(prefix="frontdesk-mail-")) / f"{message_id}.{ending}"
    with opened_file(path, "wb", f"{path} can't be written: {{}}.") as file:
        file.write((decoded.html or decoded.text).encode())
    opened = output is None and typer.launch(str(path)) == 0
    outcome = {"id": message_id, "path": str(path), "opened": opened}
    return Output(outcome, [f"Message {message_id} is in {path}."])


@mailbox.change("clear", "")
def clear(context: CommandContext) -> Output:
    """Delete all caught mails."""
    count = delete_messages(context.tx)
    context.record("mailbox.cleared", count=count)
    return Output({"deleted": count}, [f"{count} messages were deleted."])
