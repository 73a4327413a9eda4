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


class AuthorizationServer(TypedDict):
    """What a program needs to get tokens (RFC 8414)."""

    issuer: str
    token_endpoint: str
    revocation_endpoint: str
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    grant_types_supported: list[str]
    response_types_supported: Annotated[list[str], "Empty: nobody signs in by a browser."]
    scopes_supported: Annotated[list[str], "A client has some of them."]
    service_documentation: str
