"""Whether a relay refuses one message, the messages of one account, or every message.

A refusal for good of the content names no cause. These rules find it, with MANY messages:

| between MANY refused messages the relay took | then |
|---|---|
| none | The relay is out of order: they wait, and the circuit breaker opens. |
| messages of other accounts, none of this one | They are tried again later, as after a refusal for now. |
| a message of this account | Each is refused for itself, and has failed. |

The first refusals are held until that is known: until the next messages are taken or refused, for
HELD_SECONDS, or until the worker has nothing else in hand.
"""

import time
from collections.abc import Collection
from dataclasses import replace

from frontdesk.invitations.model import InvitationStep
from frontdesk.worker.relay_pool import SendReport

MANY = 3
HELD_SECONDS = 10.0


class RefusalJudge:
    """Takes the reports of the connections, and gives them back when they are decided."""

    def __init__(self) -> None:
        self._held: list[SendReport] = []
        self._held_since = 0.0
        # Ids of refused invitations, MANY at most: of all accounts since the relay took a message,
        # and of each account since the relay took a message of it.
        self._of_all: set[int] = set()
        self._of_account: dict[int, set[int]] = {}
        # Accounts that were refused while the relay took messages of others.
        self._alone: set[int] = set()

    @property
    def held_ids(self) -> set[int]:
        return {report.job.invitation.id for report in self._held}

    def judge(self, report: SendReport) -> list[SendReport]:
        """The reports that are decided by now, this one or earlier ones."""
        if report.result is InvitationStep.ACCEPTED:
            return [*self._note_accepted(report.job.invitation.account_id), report]
        if report.doubted is None:
            return [report]
        return self._note_refused(report)

    def release(self, *, has_others: bool) -> list[SendReport]:
        """Those that are held, when there is nothing to wait for: each is about its own message."""
        is_overdue = time.monotonic() - self._held_since > HELD_SECONDS
        if has_others and not is_overdue:
            return []
        released = self._held
        self._held = []
        return released

    def _note_accepted(self, account_id: int) -> list[SendReport]:
        self._of_all.clear()
        self._of_account.pop(account_id, None)
        self._alone.discard(account_id)
        self._alone |= self._of_account.keys()
        return self._take_held({account_id})

    def _note_refused(self, report: SendReport) -> list[SendReport]:
        invitation = report.job.invitation
        account_id = invitation.account_id
        of_account = self._of_account.setdefault(account_id, set())
        _note(of_account, invitation.id)
        if account_id in self._alone:
            if len(of_account) < MANY:
                return self._hold(report)
            refused = [*self._take_held({account_id}), report]
            return [replace(each, result=InvitationStep.REFUSED_FOR_NOW) for each in refused]
        _note(self._of_all, invitation.id)
        if len(self._of_all) < MANY:
            return self._hold(report)
        refused = [*self._take_held(self._of_account.keys()), report]
        self._alone.clear()
        return [
            replace(each, result=InvitationStep.PUT_ASIDE, relay_failure=each.doubted)
            for each in refused
        ]

    def _hold(self, report: SendReport) -> list[SendReport]:
        if not self._held:
            self._held_since = time.monotonic()
        self._held.append(report)
        return []

    def _take_held(self, account_ids: Collection[int]) -> list[SendReport]:
        taken = [each for each in self._held if each.job.invitation.account_id in account_ids]
        self._held = [each for each in self._held if each not in taken]
        return taken


def _note(ids: set[int], id_: int) -> None:
    if len(ids) < MANY:
        ids.add(id_)
