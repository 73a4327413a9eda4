"""Issues, checks and revokes access tokens. A warm check reads no database."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from time import monotonic

from frontdesk.access import store
from frontdesk.access.model import ApiClient, Caller, Scope, digest, new_secret, scope_text
from frontdesk.clock import Clock
from frontdesk.db import Tx
from frontdesk.errors import Unauthorized

LIFETIME_SECONDS = 7200
# Of one client. A program that gets a token for each run and forgets it goes on for ever, since the oldest token ends. A refusal
# would stop it for two hours. So many processes of a customer can each keep one.
LIVE_TOKENS = 1000
CACHE_SECONDS = 5  # how long a revoked token may still pass in another process (docs/interface.md, Tokens)
CACHE_SIZE = 10_000
# Monitoring reads the metrics while the database is away, when nobody could revoke a token either. A token that was revoked in
# another process before passes if this one saw it so shortly before (docs/operator.md).
LATELY_SECONDS = 300


def issue_token(tx: Tx, client: ApiClient, scopes: frozenset[Scope], *, now: datetime) -> str:
    """A new token of the client, valid for 7200 s. The client's oldest ends if it has LIVE_TOKENS already."""
    token = new_secret()
    expires_at = now + timedelta(seconds=LIFETIME_SECONDS)
    row = {"token_hash": digest(token), "scopes": scope_text(scopes), "expires_at": expires_at}
    store.replace_tokens(tx, client.id, keep_newest=LIVE_TOKENS - 1, now=now, **row)
    return token


def revoke_token(tx: Tx, client: ApiClient, token: str) -> bool:
    """End a token of this client; whether it was one. Another client's, or an unknown one, stays as it is without an error
    (RFC 7009)."""
    return store.revoke_token(tx, client.id, digest(token))


class TokenCheck:
    """`await check(token)` returns the caller behind a bearer token, for 5 s from memory.

    The 5 s count from the call of `look_up`, which must begin its read after that. They are measured by the monotonic clock,
    since the machine's may be set.
    """

    def __init__(self, look_up: Callable[[bytes], Awaitable[Caller | None]], clock: Clock) -> None:
        self._look_up = look_up
        self._clock = clock
        self._seen: OrderedDict[bytes, tuple[Caller, float]] = OrderedDict()
        self._revocations = 0
        self._answered_at = float("-inf")

    async def check(self, token: str) -> Caller:
        """Raises Unauthorized for a token that is unknown, expired or revoked."""
        token_hash = digest(token)
        seen, asked_at = self._seen.get(token_hash), monotonic()
        if seen is None or seen[1] <= asked_at:
            caller = await self._look_up_and_remember(token_hash, asked_at)
        else:
            caller = seen[0]
        if caller is None or caller.expires_at <= self._clock():
            raise Unauthorized("The access token is unknown, expired or revoked.")
        return caller

    def good_lately(self, token: str) -> Caller | None:
        """The caller behind a token that has not expired and was found in the 5 min before the last answered look-up. For while
        the database answers none."""
        caller, good_until = self._seen.get(digest(token), (None, 0.0))
        if caller is None or caller.expires_at <= self._clock():
            return None
        return caller if good_until >= self._answered_at + CACHE_SECONDS - LATELY_SECONDS else None

    def forget(self, token: str) -> None:
        """Forget the token, so that its revocation is in force at once in this process."""
        self._revocations += 1
        self._seen.pop(digest(token), None)

    async def _look_up_and_remember(self, token_hash: bytes, asked_at: float) -> Caller | None:
        revocations = self._revocations
        caller = await self._look_up(token_hash)
        self._answered_at = max(self._answered_at, asked_at)
        if caller is None:
            self._seen.pop(token_hash, None)
        elif revocations == self._revocations:  # else the answer may be from before the revocation
            self._seen[token_hash] = (caller, asked_at + CACHE_SECONDS)
            self._seen.move_to_end(token_hash)
            if len(self._seen) > CACHE_SIZE:
                self._seen.popitem(last=False)
        return caller
