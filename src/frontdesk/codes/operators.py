"""What operators meet at the command line and in the operator's interface. No page for customers
lists these codes.
"""

from functools import partial
from typing import Literal, get_args

from frontdesk.codes import faults
from frontdesk.codes.model import Code, Kind, Remedy, Where

_operator = partial(Code.declared, Where.OPERATOR)
_fault = partial(_operator, kind=Kind.INVALID)

ADDRESS_UNPROVEN = _operator(
    "address_unproven", "Support entered the address before three facts of the caller had matched."
)
ALREADY_MERGED = _operator(
    "already_merged", "One of the members is merged into another member.", remedy=Remedy.SHOW_MEMBER
)
ALREADY_PENDING = _operator(
    "already_pending", "Another invitation to the address is in line already."
)
CANT_SERVE = _operator("cant_serve", "A serving process refused to start; its message says why.")
EMAIL_TAKEN = _operator("email_taken", "Another user signs in by this e-mail address.")
EMPTY = _operator("empty", "The file is empty.")
ERASED = _operator("erased", "The member or the address was erased.")
FILES_UNFINISHED = _operator("files_unfinished", "Eligibility files of the account have not ended.")
FOREIGN_TABLES = _operator("foreign_tables", "The database has tables of another program.")
FRESH_FACTOR_NEEDED = _operator(
    "fresh_factor_needed", "The user has to give the second factor again before this."
)
INVALID_MAPPING = _operator(
    "invalid_mapping", "The mapping breaks a rule; the message names the place."
)
INVALID_SETTINGS = _operator(
    "invalid_settings", "Settings of the service are missing or wrong; the message names them."
)
LEGAL_HOLD = _operator("legal_hold", "The member or a member of the account is under a legal hold.")
MAILED_RECENTLY = _operator(
    "mailed_recently", "An invitation was sent to the address a short time ago."
)
MALFORMED_ADDRESS = _operator("malformed_address", "The address of the database is malformed.")
MALFORMED_MAPPING = _operator("malformed_mapping", "The mapping is not a JSON object in UTF-8.")
NEEDS_OPERATOR = _operator(
    "needs_operator",
    "The reader complained or an operator blocked the address: only an operator can lift that.",
)
NEWER_REVISION = _operator(
    "newer_revision", "The database has a newer revision than this version of the service."
)
NO_ADDRESS = _operator("no_address", "The member has no e-mail address.")
NO_LINK_SECRET = _operator(
    "no_link_secret", "The secret that signs links of invitations is not set."
)
NO_RELAY = _operator("no_relay", "No relay for mail is set.")
NO_ROLE = _operator("no_role", "The database has no role of this name.")
NO_ROLES = _operator("no_roles", "SQLite has no roles.")
NOT_FRESH = _operator(
    "not_fresh", "The second factor was given too long ago for this; it has to be given anew."
)
NOT_MAILED_NOW = _operator(
    "not_mailed_now", "The address can't be mailed at present; an operator can see why."
)
NOT_MERGED = _operator("not_merged", "The second member is not merged into the first one.")
NOT_OWNER = _operator("not_owner", "The role of the connection does not own the tables.")
OTHER_REVISION = _operator(
    "other_revision", "The database has another revision than this version of the service."
)
OWN_USER = _operator("own_user", "Another user has to do this: it can't be done to oneself.")
OWNER = _operator("owner", "The role owns the tables, so the service must not use it.")
NAMES_NOT_OPEN = _operator(
    "names_not_open", "The names in the lists of the file are not open in the user's session."
)
RECORD_NOT_OPEN = _operator(
    "record_not_open", "The record of the person is not open in the user's session."
)
SAME_MEMBER = _operator("same_member", "Both identifiers are of the same member.")
SEVERAL_ACCOUNTS = _operator(
    "several_accounts",
    "Several accounts have a member with this identifier.",
    remedy=Remedy.NAME_ACCOUNT,
)
SHOWN_ALREADY = _operator(
    "shown_already", "This form has shown its secret before; it shows it once and makes no other."
)
SUPPRESSED = _operator(
    "suppressed", "Mail to the address is suppressed.", remedy=Remedy.STOP_SUPPRESSING
)
TAKEN = _operator("taken", "Another member has a value of the member by now.")
TOO_OLD = _operator("too_old", "The history no longer has the values that are needed.")
UNAVAILABLE = _operator("unavailable", "A file can't be read.")
UNIQUENESS_DIFFERS = _operator(
    "uniqueness_differs", "The database was set up with another scope of uniqueness."
)
UNIQUENESS_FIXED = _operator(
    "uniqueness_fixed", "The scope of uniqueness can't be changed any more."
)
UNIQUENESS_NOT_CHOSEN = _operator(
    "uniqueness_not_chosen", "The scope of uniqueness is not chosen yet."
)
UNSUBSCRIBED = _operator("unsubscribed", "The person unsubscribed, and nobody can lift that.")
WRONG_STATE = _operator("wrong_state", "The state of the invitation does not allow the action.")

# Faults of a field.
COMMON_PASSWORD = _fault("common_password", "The password is one of those that are tried first.")
DIFFERS = _fault("differs", "The value is not what it has to repeat.")
NAME_IN_PASSWORD = _fault(
    "name_in_password", "The password is little more than a name of the user or of the service."
)
LINK_MISSING = _fault("link_missing", "The template does not show a link that it must show.")
MALFORMED_MESSAGE_ID = _fault(
    "malformed_message_id", "The value is not the Message-ID of one mail."
)
UNKNOWN_TIME_ZONE = _fault("unknown_time_zone", "No time zone has this name.")
MALFORMED_STATUS = _fault("malformed_status", "The value is not an enhanced status code.")
MALFORMED_TEMPLATE = _fault(
    "malformed_template", "The template can't be read, or is nested too deeply."
)
MALFORMED_URL = _fault("malformed_url", "The value is not a URL that is allowed here.")
NO_SUCH_TIME = _fault("no_such_time", "The local time does not exist: clocks were put forward.")
NOT_A_TIME = _fault("not_a_time", "The value is not a time.")
NOT_ALONE = _fault("not_alone", "The scope can't be combined with other scopes.")
WRONG_ROLES = _fault("wrong_roles", "The roles can't be combined, or don't fit the account.")
NOT_MAILABLE = _fault("not_mailable", "A mail can't carry the address.")
TIME_EXISTS_TWICE = _fault(
    "time_exists_twice", "The local time exists twice: clocks were put back."
)
TOO_EARLY = _fault("too_early", "The time is before one that it has to follow.")
TOO_SHORT = _fault("too_short", "The value has too few characters.")
TOO_MANY = _fault("too_many", "The request holds more items than it may.")
UNREADABLE = _fault("unreadable", "The file can't be read from this line on.")

# What may not exist. The code is `no_such_` and the noun.
Noun = Literal[
    "account",
    "address",
    "API client",
    "eligibility file",
    "eligibility mapping",
    "eligible member",
    "invitation",
    "member",
    "message",
    "part",
    "plan",
    "provider group",
    "second factor",
    "secret",
    "session",
    "sign-in",
    "user",
    "user invitation",
    "user link",
    "webhook endpoint",
]

_LISTED: dict[Noun, Remedy] = {
    "account": Remedy.LIST_ACCOUNTS,
    "API client": Remedy.LIST_CLIENTS,
    "invitation": Remedy.LIST_INVITATIONS,
    "message": Remedy.LIST_MESSAGES,
    "plan": Remedy.LIST_PLANS,
    "provider group": Remedy.LIST_PROVIDER_GROUPS,
    "user": Remedy.LIST_USERS,
}


def _no_such(noun: Noun) -> Code:
    if noun == "member":
        return faults.NO_SUCH_MEMBER
    word = f"no_such_{noun.lower().replace(' ', '_').replace('-', '_')}"
    sentence = f"There is no such {noun}."
    return _operator(word, sentence, kind=Kind.NOT_FOUND, remedy=_LISTED.get(noun))


NO_SUCH = {noun: _no_such(noun) for noun in get_args(Noun)}
