"""What to do about a refusal or a held file, as a command."""

from collections.abc import Mapping

from frontdesk.codes import Remedy, complete

# {file_id} is that of the error. No command is refused in a way that a text "" stands for.
COMMANDS: dict[Remedy, str] = complete(
    Remedy,
    {
        Remedy.ACCEPT_MAPPING: "To accept it: frontdesk file accept {file_id}",
        Remedy.APPROVE_FILE: "To apply the whole file: frontdesk file approve {file_id}",
        Remedy.CANCEL_FILE: "To cancel the file: frontdesk file cancel {file_id}",
        Remedy.CREATE_MEMBER: "",
        Remedy.DECLARE_ENCODING: "To declare it: frontdesk file load … --encoding NAME",
        Remedy.GIVE_MAPPING: "To load the file with another mapping: frontdesk file load … --mapping F",
        Remedy.LIST_ACCOUNTS: "`frontdesk account list` shows those there are.",
        Remedy.LIST_CLIENTS: "`frontdesk client list` shows those there are, and which are revoked.",
        Remedy.LIST_INVITATIONS: "`frontdesk invitations list` shows the newest.",
        Remedy.LIST_MESSAGES: "`frontdesk mailbox list` shows the newest.",
        Remedy.LIST_PLANS: "`frontdesk plan list` shows those there are.",
        Remedy.LIST_PROVIDER_GROUPS: "`frontdesk provider-group list` shows those there are.",
        Remedy.LIST_USERS: "`frontdesk user list` shows those there are.",
        Remedy.MOVE_MEMBER: "",
        Remedy.NAME_ACCOUNT: "Say which with --account.",
        Remedy.NAME_SHEET: "To name the sheet: frontdesk file load … --sheet NAME",
        Remedy.RENAME_MEMBER: "To free a number: frontdesk member rename OLD NEW",
        Remedy.RENAME_MEMBERS: "If the sender renumbered them: frontdesk member rename --csv FILE",
        Remedy.SAY_HEADER: (
            "To say which row: frontdesk file load … --header-row N; to name the columns: "
            "frontdesk file load … --mapping F"
        ),
        Remedy.SAY_MODE: "To say the mode: frontdesk file load … --mode full",
        Remedy.SHOW_MEMBER: "See where it leads to: frontdesk member show",
        Remedy.STOP_SUPPRESSING: (
            "`frontdesk suppression remove` takes it off, unless the person unsubscribed."
        ),
        Remedy.UPDATE_MEMBER: "",
    },
)


def command_for(remedy: Remedy | None, ids: Mapping[str, int]) -> str:
    """The sentence that says the command; "" without a remedy."""
    return "" if remedy is None else COMMANDS[remedy].format(**ids)
