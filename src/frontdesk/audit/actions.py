"""Every action of the audit trail in plain words, and what its subject is.

An action that is added to the program gets a line here: a test compares.
"""

from collections.abc import Mapping
from enum import StrEnum

ACTIONS: Mapping[str, str] = {
    "account.created": "made the account",
    "account.limited": "changed the limit of immediate invitations",
    "account.quota_changed": "changed a quota of the account",
    "account.time_zone_changed": "changed the account's time zone",
    "account.suspended": "suspended the account",
    "account.resumed": "resumed the account",
    "account.closed": "closed the account",
    "answer.replayed": "was sent a stored answer again",
    "audit.exported": "exported the trail",
    "audit.read": "read the trail",
    "bounces.read": "read in reports of bounced mails",
    "client.created": "made an API client",
    "client.revoked": "ended an API client",
    "client.rotated": "rolled the secret of an API client",
    "client.secret_made": "made a secret of an API client",
    "client.secret_revoked": "ended a secret of an API client",
    "client.tokens_revoked": "ended the tokens of an API client",
    "database.guards_restored": "made the guards of append-only tables anew",
    "database.migrated": "migrated the database",
    "database.rights_given": "gave the service role its rights",
    "deliverability.changed": "changed how invitations are sent",
    "demo.created": "made the demo's data",
    "demo.history_begun": "began to make the demo's history",
    "demo.history_made": "made the demo's history",
    "eligibility.created": "created a member",
    "eligibility.ended": "ended a member's access",
    "eligibility.moved": "moved a member to another plan",
    "eligibility.reopened": "gave a member access again",
    "eligibility.restored": "restored a member's record",
    "eligibility.updated": "changed a member's record",
    "eligibility.withdrawn": "withdrew a member's record",
    "events.begun": "asked for events",
    "file.approved": "approved a held file",
    "file.cancelled": "cancelled a file",
    "file.done": "sent a file that is done",
    "file.failed": "sent a file that failed",
    "file.held": "sent a file that is held",
    "file.mapping_accepted": "accepted the mapping of a held file",
    "file.names_opened": "opened the names of a file's lists",
    "file.names_read": "read the names of a file's lists",
    "file.received": "sent a file",
    "file.report_read": "read a file's report",
    "file.undo_asked": "asked for the undo of a file",
    "file_settings.changed": "changed how files are treated",
    "invitation.cancelled": "cancelled an invitation",
    "invitation.resent": "sent an invitation again",
    "invitation.settled": "settled an invitation",
    "invitations.held": "held all invitations",
    "invitations.released": "let held invitations go",
    "invitations.resent": "sent many invitations again",
    "mailbox.cleared": "emptied the sandbox's mailbox",
    "mapping.deleted": "deleted a mapping",
    "mapping.saved": "saved a mapping",
    "member.called_distinct": "marked two similar members as two people",
    "member.checked": "compared a caller's answer with a record",
    "member.erased": "erased a person",
    "member.exported": "exported all that is stored of a person",
    "member.held": "placed a person under legal hold",
    "member.history_read": "read a member's history",
    "member.merged": "merged two members",
    "member.opened": "opened a person's record",
    "member.read": "read a member's record",
    "member.released": "ended a legal hold",
    "member.unmerged": "undid the merge of two members",
    "members.read": "read a list of a plan's members",
    "people.searched": "searched for a person",
    "plan.changed": "changed a plan",
    "plan.created": "made a plan",
    "provider_group.changed": "changed a provider group",
    "provider_group.created": "made a provider group",
    "queue.pruned": "deleted old queue events",
    "queue.rebuilt": "rebuilt the queues from their events",
    "retention.pruned": "deleted data after its retention",
    "sandbox.reset": "reset the sandbox",
    "suppression.added": "blocked mail to an address",
    "suppression.removed": "let mail to an address go again",
    "template.changed": "changed the invitation's template",
    "token.issued": "got a token",
    "token.limited": "was refused tokens until the next minutes",
    "token.refused": "was refused a token",
    "token.revoked": "gave a token back",
    "uniqueness.probed": "sent values that other accounts hold",
    "user.changed": "changed the own name or time zone",
    "user.confirmation_refused": "failed to confirm a password or a code",
    "user.demo_made": "made a demo user",
    "user.ended": "ended a user",
    "user.factor_changed": "changed the own second factor",
    "user.factor_removed": "removed a user's second factor",
    "user.factor_set_up": "set up a second factor",
    "user.invitation_withdrawn": "withdrew the invitation of a user",
    "user.invited": "invited a user",
    "user.joined": "joined by an invitation",
    "user.password_changed": "changed the own password",
    "user.password_reset": "chose a new password by a link",
    "user.recovery_code_used": "used a recovery code",
    "user.recovery_codes_renewed": "made new recovery codes",
    "user.reset_link_made": "made a link for a new password",
    "user.roles_changed": "changed a user's roles",
    "user.session_ended": "ended a session",
    "user.sessions_ended": "ended a user's sessions",
    "user.sign_in_limited": "is refused sign-ins for a while",
    "user.sign_in_refused": "was refused a sign-in",
    "user.signed_in": "signed in",
    "webhook.changed": "changed a webhook",
    "webhook.created": "made a webhook",
    "webhook.deleted": "deleted a webhook",
    "webhook.event_given_up": "gave up an event for a webhook",
    "webhook.paused": "paused a webhook",
    "webhook.replayed": "had events sent to a webhook again",
    "webhook.rotated": "rolled the secret of a webhook",
    "webhook.tested": "tested a webhook",
    "webhook.verified": "verified the address of a webhook",
}


class Subject(StrEnum):
    """What the id of an entry's subject is that of."""

    ACCOUNT = "Account"
    CLIENT = "API client"
    FILE = "File"
    GROUP = "Provider group"
    INVITATION = "Invitation"
    PERSON = "Person"
    PLAN = "Plan"
    USER = "User"
    WEBHOOK = "Webhook"


# By the action's noun, and by the action where its noun has several.
_SUBJECTS: Mapping[str, Subject] = {
    "account": Subject.ACCOUNT,
    "client": Subject.CLIENT,
    "deliverability": Subject.ACCOUNT,
    "demo": Subject.ACCOUNT,
    "eligibility": Subject.PERSON,
    "file": Subject.FILE,
    "file_settings": Subject.ACCOUNT,
    "invitation": Subject.INVITATION,
    "member": Subject.PERSON,
    "members": Subject.PLAN,
    "plan": Subject.PLAN,
    "provider_group": Subject.GROUP,
    "sandbox": Subject.ACCOUNT,
    "suppression.added": Subject.INVITATION,
    "suppression.removed": Subject.PERSON,
    "template": Subject.ACCOUNT,
    "token": Subject.CLIENT,
    "uniqueness": Subject.FILE,
    "user": Subject.USER,
    "webhook": Subject.WEBHOOK,
}


def words_of(action: str) -> str:
    """The action in plain words, as what the actor did; an unknown one as it is stored.

    >>> words_of("client.rotated")
    'rolled the secret of an API client'
    """
    return ACTIONS.get(action, action)


def subject_of(action: str) -> Subject | None:
    """What the action's subject is; None for an action without one."""
    return _SUBJECTS.get(action) or _SUBJECTS.get(action.partition(".")[0])
