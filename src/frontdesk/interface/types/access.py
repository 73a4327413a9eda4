"""Access tokens (RFC 6749 and 7009)."""

from typing import Annotated, Literal, NotRequired, TypedDict

from frontdesk.interface.schema import Keywords


class TokenRequest(TypedDict):
    """A token request. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    grant_type: Literal["client_credentials"]
    scope: NotRequired[
        Annotated[str, "Scopes of the client, separated by spaces; without it, all of them."]
    ]


class RevocationRequest(TypedDict):
    """A revocation. Leave `client_id` and `client_secret` out with HTTP Basic."""

    client_id: NotRequired[str]
    client_secret: NotRequired[str]
    token: Annotated[str, Keywords(minLength=1)]
    token_type_hint: NotRequired[Annotated[str, "Changes nothing."]]


class Token(TypedDict):
    """An access token."""

    access_token: Annotated[str, "Sent as `Authorization: Bearer …`."]
    token_type: Literal["bearer"]
    expires_in: Annotated[int, "Lifetime in seconds."]
    scope: str
    created_at: Annotated[int, "Seconds since 1970."]
