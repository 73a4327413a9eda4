"""What is wrong with the place where an installation runs: rights of its files, the disk of SQLite, production's settings."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from frontdesk.config import SECRET_LENGTH, Config, Environment
from frontdesk.relay import is_this_machine

MOUNTS = Path("/proc/self/mountinfo")
# SQLite's write-ahead log needs memory that all its processes share, so over these it can lose or damage records.
NETWORK_FILESYSTEMS = {
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "gpfs", "ocfs2"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "virtiofs"),
}
FEWEST_CHARACTERS = 8  # different ones, in a secret
_RANDOM = f"{SECRET_LENGTH} or more random characters, such as those of: openssl rand -hex 32."
_WIDEST = {4: 8, 6: 7}  # lengths of the prefixes of the widest private networks, by version of IP
_OTHERS = 0o077  # rights of the group and of everybody


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """`what` is wrong and its `remedy`, a sentence each. A service with a warning serves."""

    what: str
    remedy: str
    is_warning: bool = False


def deployment_failures(config: Config) -> Iterator[CheckFailure]:
    """What the settings and the machine tell without the database being asked."""
    if config.environment is Environment.PRODUCTION:
        yield from _production_failures(config)
    if config.database_url.startswith("sqlite:///"):
        path = Path(config.database_url.removeprefix("sqlite:///")).absolute()
        yield from _disk_failures(path, is_warning=config.environment is not Environment.PRODUCTION)
        yield from _rights_failures(path)


def _production_failures(config: Config) -> Iterator[CheckFailure]:
    base_url = urlsplit(config.base_url)
    if base_url.scheme.lower() != "https" or is_this_machine(base_url.hostname or ""):
        what = "FRONTDESK_BASE_URL is no https address that others can reach: tokens and links can be read, or lead nowhere."
        yield CheckFailure(what, "Set it to the address that callers use, such as https://api.example.com.")
    if not config.link_secret:
        what = "FRONTDESK_LINK_SECRET is not set, so the links in invitations could be guessed."
        yield CheckFailure(what, f"Set it to {_RANDOM}")
    elif _can_be_guessed(config.link_secret):
        what = "FRONTDESK_LINK_SECRET can be guessed: it repeats itself, or has too few different characters."
        yield CheckFailure(what, f"Set it to {_RANDOM} Links in mails that were sent go on working.")
    if any(network.prefixlen < _WIDEST[network.version] for network in config.trusted_proxies):
        what = "FRONTDESK_TRUSTED_PROXIES has a network wider than any private one: callers in it could write their own address."
        remedy = "Name the proxies' own addresses and networks; 10.0.0.0/8 and fc00::/7 are the widest that are taken."
        yield CheckFailure(what, remedy)
    if config.smtp_url is None:
        what = "FRONTDESK_SMTP_URL is not set, so invitations wait and none is delivered."
        yield CheckFailure(
            what, "Set it to your relay, such as smtps://user:password@mail.example.com.", is_warning=True
        )
    elif is_this_machine(config.mail_from.rpartition("@")[2]):
        what = "FRONTDESK_MAIL_FROM is an address of localhost; relays refuse it, and bounces come back to nobody."
        yield CheckFailure(what, "Set it to an address of yours, such as invitations@example.com.")


def _can_be_guessed(secret: str) -> bool:
    """Whether the text shows that it is not random: a shorter one again and again, or few different characters.

    Of random hexadecimal digits, 32 of them have fewer than 8 different ones once in 26 million times.
    """
    repeats = any(secret.startswith(secret[period:]) for period in range(1, len(secret) // 2 + 1))
    return repeats or len(set(secret)) < FEWEST_CHARACTERS


def _disk_failures(path: Path, *, is_warning: bool) -> Iterator[CheckFailure]:
    kind = filesystem_of(path)
    if kind in NETWORK_FILESYSTEMS:
        what = f"The SQLite database lies on a network file system ({kind}), where several processes can damage it."
        remedy = "Move it to a disk of this machine, or use PostgreSQL."
        yield CheckFailure(what, remedy, is_warning)


def filesystem_of(path: Path) -> str | None:
    """The kind of file system that the path is on, as Linux names it; None where that can't be told."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place, longest, kind = os.path.realpath(path), -1, None
    for line in (
        lines
    ):  # "36 35 98:0 /root /mount/point options - kind source options" (proc(5)); later ones lie on top
        mount, _, described = line.partition(" - ")
        point = mount.split(" ")[4].replace("\\040", " ")
        if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= longest:
            longest, kind = len(point), described.partition(" ")[0]
    return kind


def _rights_failures(path: Path) -> Iterator[CheckFailure]:
    """The database, its write-ahead log and copies beside it hold health records, and so does their folder."""
    try:
        beside = sorted(path.parent.glob(f"{path.name}*"))
        wide = [each for each in (path.parent, *beside) if each.stat().st_mode & _OTHERS]
    except OSError:
        return  # opening the database says more
    for each in wide:
        rights = "700" if each.is_dir() else "600"
        what = f"Other users of this machine have rights to {each}."
        yield CheckFailure(what, f"Run: chmod {rights} {quote(str(each))}", is_warning=True)
