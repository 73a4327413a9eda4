"""Whose things a caller may see or change: those of one account, or those of all."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """Whose things a caller may see or change: those of one account (`Reach.of`), or with EVERY
    those of the whole installation. The door decides it, from the token, the session or the
    command; nothing that a caller may leave out means EVERY.
    """

    account_id: int | None

    @classmethod
    def of(cls, account_id: int) -> "Reach":
        """The reach of one account."""
        return cls(account_id)

    def covers(self, account_id: int | None) -> bool:
        """Whether a thing of this account is within reach; one without an account, for EVERY only."""
        return self.account_id is None or self.account_id == account_id


EVERY = Reach(None)
