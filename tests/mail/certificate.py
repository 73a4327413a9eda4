"""A certificate for localhost, and others that have a fault."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# A certificate for localhost and its key, made for these tests and trusted by nobody else.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBozCCAUmgAwIBAgIUURfxA3HHLRca62QSTwUV+87rd+QwCgYIKoZIzj0EAwIw
GDEWMBQGA1UEAwwNcmVsYXkuZXhhbXBsZTAgFw0yNjExMjEwODEyMzhaGA8yMTI2
MTAyODA4MTIzOFowGDEWMBQGA1UEAwwNcmVsYXkuZXhhbXBsZTBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABJ4ZhXQ4uJgy0JUogvxGIxJ16tdNr1yQXddTEpqOpE3g
2BU+QQyM8Tmq6p6LMWw5mS32wz0AP63MQBZPofb3BKKjbzBtMB0GA1UdDgQWBBRn
GhSaY84Vs7LMeeC0+1BZGpDhWjAfBgNVHSMEGDAWgBRnGhSaY84Vs7LMeeC0+1BZ
GpDhWjAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAA
ATAKBggqhkjOPQQDAgNIADBFAiB3+xatyD9znt2IZd4VG3BToHGz5cR9IH/EgQi1
0v/C0AIhAIJMd4cMC92sbt6zYTq1LmQLk6l12Cs1dXnjjuKkC0F6
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgh0lTFrGQROux+Ec7
Od60mKpHXNN+QHqvidFLVokHykqhRANCAASeGYV0OLiYMtCVKIL8RiMSderXTa9c
kF3XUxKajqRN4NgVPkEMjPE5quqeizFsOZkt9sM9AD+tzEAWT6H29wSi
-----END PRIVATE KEY-----
"""


def certificate_with_key(name: str = "localhost", *, begins: int = -1, ends: int = 1) -> bytes:
    """A certificate for the name and its key. It signs itself, and is good for the days from
    `begins` to `ends`.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "relay.example")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + timedelta(days=begins))
        .not_valid_after(now + timedelta(days=ends))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.public_bytes(pem) + secret
