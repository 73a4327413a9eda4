"""`frontdesk invitations resend --state failed`: page by page, with a bar for people."""

from collections import Counter
from functools import partial

from rich.progress import MofNCompleteColumn

from frontdesk.cli.command_group import CommandContext, change_in, migrated_database
from frontdesk.cli.layout import Part, progress, table
from frontdesk.cli.output import Output, settings
from frontdesk.eligibility import find_addresses
from frontdesk.invitations import model
from frontdesk.invitations import resend as resending


def resend_failed(asked: model.FailedSince) -> Output:
    """Each page has its entries in the audit trail."""
    refused: Counter[str] = Counter()
    resent = 0
    place: model.FailedPlace | None = resending.FIRST_PLACE
    with migrated_database(settings()) as db, progress(MofNCompleteColumn()) as bar:
        task = bar.add_task("resending", total=db.ask(partial(resending.count_failed, asked=asked)))
        while place is not None:
            page = change_in(db, partial(_resend_page, asked=asked, place=place))
            resent += sum(page.resent.values())
            refused.update(page.refused)
            bar.advance(task, page.total)
            place = page.place
    sentence = f"{resent} of {resent + refused.total()} failed invitations are pending again."
    rows = [{"refused": code, "invitations": count} for code, count in sorted(refused.items())]
    parts: list[Part] = [table(rows, "refused invitations")] if rows else []
    return Output({"resent": resent, "refused": dict(refused)}, [*parts, sentence])


def _resend_page(
    context: CommandContext, asked: model.FailedSince, place: model.FailedPlace
) -> resending.ResentPage:
    page = resending.resend_failed(
        context.tx, asked, place, context.requester, find_addresses=find_addresses
    )
    for account_id, count in page.resent.items():
        context.record("invitations.resent", account_id=account_id, count=count)
    return page
