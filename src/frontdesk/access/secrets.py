"""Makes and hashes secrets and tokens: 256 random bits each, of which only the SHA-256 is kept.

A slow password hash would add nothing to 256 random bits and cost 220 ms a request (docs/decisions/0017).
"""

import hashlib
import secrets


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def new_client_id() -> str:
    return secrets.token_hex(16)


def digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
