"""What `check` and `serve` say of the place: rights of the files, the disk, and the settings of
production.
"""

import os
import stat
from contextlib import closing
from pathlib import Path
from secrets import token_hex, token_urlsafe
from typing import Any

import pytest

from frontdesk.config import ConfigError, read_config
from frontdesk.db import checks, open_database
from frontdesk.db.checks import deployment_failures, filesystem_of
from frontdesk.db.migrate import upgrade

PRODUCTION = {
    "FRONTDESK_DATABASE_URL": "postgresql://db.example.com/frontdesk",
    "FRONTDESK_ENVIRONMENT": "production",
    "FRONTDESK_BASE_URL": "https://api.example.com",
    "FRONTDESK_CONSOLE_URL": "https://console.example.com",
    "FRONTDESK_LINK_SECRET": "an invented secret for tests only",
    "FRONTDESK_SMTP_URL": "smtps://mail.example.com",
    "FRONTDESK_MAIL_FROM": "invitations@example.com",
}


LOCAL = ["http://api.example.com", "HTTP://api.example.com", "https://localhost", "https://127.0.0.1:8443",
         "https://localhost.", "https://desk.localhost", "https://0.0.0.0", "https://[::1]"]  # fmt: skip
OPEN = ["0.0.0.0/0", "::/0", "10.0.0.7,0.0.0.0/1,128.0.0.0/1", "8000::/1", "10.0.0.0/7"]
SANDBOX = {"environment": "sandbox", "sandbox_recipients": "@example.com"}
GUESSABLE = ["x" * 40, "abcdefghijkl" * 3, "0123456789abcdefghij" * 2, "aabbccddeeff" + "g" * 28]


@pytest.mark.parametrize(
    ("changes", "failures"),
    [
        ({}, []),
        *(({"base_url": url}, [("FRONTDESK_BASE_URL", False)]) for url in LOCAL),
        *(
            ({"trusted_proxies": networks}, [("FRONTDESK_TRUSTED_PROXIES", False)])
            for networks in OPEN
        ),
        ({"trusted_proxies": "10.0.0.0/8,172.16.0.0/12,192.168.4.7,fc00::/7,2001:db8::/32"}, []),
        *(({"link_secret": secret}, [("FRONTDESK_LINK_SECRET", False)]) for secret in GUESSABLE),
        *(({"link_secret": secret} | SANDBOX, []) for secret in GUESSABLE),
        *(
            ({"link_secret": secret}, [])
            for secret in (token_hex(16), token_hex(32), token_urlsafe(32))
        ),
        ({"link_secret": ""}, [("FRONTDESK_LINK_SECRET", False)]),
        ({"smtp_url": "", "mail_from": ""}, [("FRONTDESK_SMTP_URL", True)]),
        ({"console_url": ""}, [("FRONTDESK_CONSOLE_URL", True)]),
        ({"console_url": ""} | SANDBOX, []),
        ({"mail_from": ""}, [("FRONTDESK_MAIL_FROM", False)]),
        ({"mail_from": "desk@localhost"}, [("FRONTDESK_MAIL_FROM", False)]),
        ({"mail_from": "desk@mail.localhost"}, [("FRONTDESK_MAIL_FROM", False)]),
        (
            {
                "environment": "sandbox",
                "base_url": "",
                "smtp_url": "",
                "mail_from": "",
                "link_secret": "",
            },
            [],
        ),
    ],
)
def test_production_needs_safe_settings(changes: dict[str, str], failures: list[Any]) -> None:
    assert told(**changes) == failures


def told(**changes: str) -> list[tuple[str, bool]]:
    """The setting that each failure names first, and whether it is a warning. None shows a secret."""
    config = read_config(
        PRODUCTION | {f"FRONTDESK_{name.upper()}": value for name, value in changes.items()}
    )
    found = list(deployment_failures(config))
    assert not any(
        config.link_secret in each.what + each.remedy for each in found if config.link_secret
    )
    return [(each.what.split()[0], each.is_warning) for each in found]


MOUNTS = r"""""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:41 / /srv rw - nfs4 files.example.com:/srv rw
41 40 8:2 / /srv/local\040disk rw - xfs /dev/sdb1 rw
42 22 0:42 / /srvx rw - cifs //files.example.com/x rw
"""


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setattr(checks, "MOUNTS", tmp_path / "mounts")


@pytest.mark.usefixtures("mounts")
def test_a_path_is_on_the_innermost_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"/var": "ext4", "/srv": "nfs4", "/srv/local disk": "xfs", "/srvxy": "ext4"}
    assert {folder: filesystem_of(Path(folder) / "f.db") for folder in kinds} == kinds
    monkeypatch.setattr(checks, "MOUNTS", Path("/none"))
    assert filesystem_of(Path("/var/f.db")) is None


@pytest.mark.usefixtures("mounts")
def test_sqlite_on_a_network_folder_is_refused_in_production() -> None:
    assert ("The", False) in told(database_url="sqlite:////srv/none/f.db")
    assert ("The", True) in told(
        database_url="sqlite:////srv/none/f.db", environment="sandbox", smtp_url=""
    )


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
def test_the_files_of_a_new_database_are_its_users_alone(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "new" / "deep" / "frontdesk.db"
    config = read_config({"FRONTDESK_DATABASE_URL": f"sqlite:///{path}"})
    before = os.umask(umask)
    try:
        with closing(open_database(config.database_url)) as db:
            upgrade(db)
            with db.write() as tx:
                tx.exec_driver_sql("UPDATE installation SET id = id")
                rights = {
                    each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()
                }
    finally:
        os.umask(before)
    assert rights.keys() >= {"frontdesk.db", "frontdesk.db-wal", "frontdesk.db-shm"}
    assert set(rights.values()) == {0o600}
    assert {
        stat.S_IMODE(folder.stat().st_mode) for folder in (path.parent, path.parent.parent)
    } == {0o700}
    assert list(deployment_failures(config)) == []


def test_the_room_in_a_folder_that_can_not_be_looked_at_is_no_matter(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/{'x' * 300}/frontdesk.db"
    assert list(deployment_failures(read_config({"FRONTDESK_DATABASE_URL": url}))) == []


def test_wider_rights_are_told_of_each_file_and_of_copies_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    for name, mode in (
        ("f.db", 0o640),
        ("f.db-wal", 0o600),
        ("f.db.backup", 0o604),
        ("other", 0o666),
    ):
        (folder / name).touch()
        (folder / name).chmod(mode)
    config = read_config({"FRONTDESK_DATABASE_URL": f"sqlite:///{folder / 'f.db'}"})
    found = list(deployment_failures(config))
    rights = (700, folder), (600, folder / "f.db"), (600, folder / "f.db.backup")
    assert [(each.remedy, each.is_warning) for each in found] == [
        (f"Run: chmod {mode} {path}", True) for mode, path in rights
    ]


@pytest.mark.parametrize("name", ["DATABASE_URL", "LINK_SECRET", "SMTP_URL"])
def test_a_secret_may_be_in_a_file(tmp_path: Path, name: str) -> None:
    value = PRODUCTION[f"FRONTDESK_{name}"]
    recipients = {"FRONTDESK_SANDBOX_RECIPIENTS": "@example.com"}
    (tmp_path / "secret").write_text(value + "\n")
    from_file = read_config(recipients | {f"FRONTDESK_{name}_FILE": str(tmp_path / "secret")})
    plain = read_config(recipients | {f"FRONTDESK_{name}": value})
    assert getattr(from_file, name.lower()) == getattr(plain, name.lower())


def test_a_file_without_a_secret_is_refused_without_being_told(tmp_path: Path) -> None:
    (path := tmp_path / "secret").touch()
    holds_none = "FRONTDESK_LINK_SECRET_FILE names holds no value"
    for content, variables, rule in (
        *(
            (content, {"LINK_SECRET_FILE": str(path)}, holds_none)
            for content in (b"", b"\n", b"\xff" * 40, b"x" * 5000)
        ),
        (b"", {"LINK_SECRET_FILE": str(tmp_path / "none")}, "can't be read: No such file"),
        (b"", {"LINK_SECRET_FILE": str(tmp_path)}, "can't be read: Is a directory"),
        (b"", {"LINK_SECRET_FILE": str(path), "LINK_SECRET": "x" * 32}, "set either this or"),
        (b"", {"BASE_URL_FILE": str(path)}, "FRONTDESK_BASE_URL_FILE: no such setting"),
    ):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match=rule) as caught:
            read_config({f"FRONTDESK_{name}": value for name, value in variables.items()})
        assert "xxx" not in str(caught.value)
