"""What to do about a refusal, as an operation of the customers' interface."""

from collections.abc import Iterable
from typing import NamedTuple

from frontdesk.api import eligibility, eligibility_files
from frontdesk.codes import Remedy, complete
from frontdesk.web.endpoint import Endpoint, Handler
from frontdesk.web.problems import RemedyOperation


class RemedyHandler(NamedTuple):
    """The handler of the operation, and what its request has to be like."""

    handler: Handler
    note: str = ""


_UPLOAD = eligibility_files.upload_eligibility_file  # the whole file again

# None: an operator does it, or there is nothing to do with it at this interface.
HANDLERS: dict[Remedy, RemedyHandler | None] = complete(
    Remedy,
    {
        Remedy.ACCEPT_MAPPING: RemedyHandler(eligibility_files.accept_eligibility_file_mapping),
        Remedy.APPROVE_FILE: RemedyHandler(eligibility_files.approve_eligibility_file),
        Remedy.CANCEL_FILE: RemedyHandler(eligibility_files.cancel_eligibility_file),
        Remedy.CREATE_MEMBER: RemedyHandler(
            eligibility.enrol_member, "Leave If-Match and only=update out."
        ),
        Remedy.DECLARE_ENCODING: RemedyHandler(_UPLOAD, "Give encoding."),
        Remedy.GIVE_MAPPING: RemedyHandler(_UPLOAD, "Give mapping."),
        Remedy.LIST_ACCOUNTS: None,
        Remedy.LIST_CLIENTS: None,
        Remedy.LIST_INVITATIONS: None,
        Remedy.LIST_MESSAGES: None,
        Remedy.LIST_PLANS: None,
        Remedy.LIST_PROVIDER_GROUPS: None,
        Remedy.LIST_USERS: None,
        Remedy.MOVE_MEMBER: RemedyHandler(
            eligibility.enrol_member, "Leave move=false out; in a batch, say move=true."
        ),
        Remedy.NAME_ACCOUNT: None,
        Remedy.NAME_SHEET: RemedyHandler(_UPLOAD, "Give sheet."),
        Remedy.RENAME_MEMBER: RemedyHandler(eligibility.rename_member),
        Remedy.RENAME_MEMBERS: RemedyHandler(eligibility.rename_member),
        Remedy.SAY_HEADER: RemedyHandler(_UPLOAD, "Give header_row or mapping."),
        Remedy.SAY_MODE: RemedyHandler(_UPLOAD, "Give mode."),
        Remedy.SHOW_MEMBER: None,
        Remedy.STOP_SUPPRESSING: None,
        Remedy.UPDATE_MEMBER: RemedyHandler(eligibility.enrol_member, "Leave If-None-Match out."),
    },
)


def operations_of(endpoints: Iterable[Endpoint]) -> dict[Remedy, RemedyOperation]:
    """The operation of each remedy that customers have. Raises ValueError for a handler without an
    endpoint, so that the program does not start.
    """
    by_handler = {endpoint.handler: endpoint for endpoint in endpoints}
    operations = {}
    for remedy, each in HANDLERS.items():
        if each is None:
            continue
        if each.handler not in by_handler:
            raise ValueError(f"the remedy {remedy} has no endpoint")
        endpoint = by_handler[each.handler]
        operations[remedy] = RemedyOperation(endpoint.method, endpoint.path, each.note)
    return operations
