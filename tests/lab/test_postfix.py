"""Postfix: a relay that asks for STARTTLS with a private CA and for a login, and the host behind
it, which knows its mailboxes.

Nothing leaves the machine: what the relay takes goes to the host, which takes mail for two domains
only; no other has a route.
"""

import mailbox
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from frontdesk.db import open_database
from tests.factories import member_body
from tests.faults.callers import call
from tests.faults.server import Server, mailing
from tests.lab.conftest import Certificate, Installation, Tell, installed
from tests.lab.parts import Program, give, running
from tests.patience import wait_until
from tests.postgres import free_port

PASSWORD = "an invented password: @/%"
SENDER = "Ärztehaus Übersee, 日本"
BOUNCES = "invitations@lab.example.com"
MAILBOXES = (
    BOUNCES,
    "robin.1@members.example.com",
    "later@members.example.com",
    "after@members.example.com",
)
MASTER = """
127.0.0.1:{relay} inet n - n - - smtpd
  -o smtpd_tls_security_level=encrypt -o smtpd_sasl_auth_enable=yes
  -o smtpd_reject_unlisted_recipient=no -o content_filter=smtp:[127.0.0.1]:{host}
  -o smtpd_relay_restrictions=permit_sasl_authenticated,reject
  -o smtpd_recipient_restrictions=check_recipient_access,{access},permit_sasl_authenticated,reject
127.0.0.1:{host} inet n - n - - smtpd -o smtpd_relay_restrictions=reject_unauth_destination
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
smtp unix - - n - - smtp
virtual unix - n n - - virtual
error unix - - n - - error
retry unix - - n - - error
tlsmgr unix - - n 1000? 1 tlsmgr
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
proxymap unix - - n - - proxymap
postlog unix-dgram n - n - 1 postlogd
"""
MAIN = """
compatibility_level = 3.6
queue_directory = {home}/spool
data_directory = {home}/lib
maillog_file = /dev/stdout
myhostname = relay.lab.example.com
mydestination =
alias_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
default_transport = error:nothing leaves this machine
relay_transport = error:nothing leaves this machine
local_transport = error:nothing leaves this machine
virtual_mailbox_domains = members.example.com, lab.example.com
virtual_mailbox_maps = inline:{{ {mailboxes} }}
virtual_mailbox_base = {home}/mail
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
smtpd_tls_cert_file = {certificate.chain}
smtpd_tls_key_file = {certificate.key}
smtpd_tls_auth_only = yes
smtpd_sasl_type = cyrus
smtpd_sasl_path = smtpd
smtpd_sasl_local_domain = lab.example.com
"""
SASL = """
pwcheck_method: auxprop
auxprop_plugin: sasldb
mech_list: PLAIN LOGIN
sasldb_path: {home}/etc/sasl/users
"""


@dataclass
class Postfix:
    """An instance of its own in `home`; it keeps its ports and its mail when it is started again."""

    home: Path
    certificate: Certificate

    def __post_init__(self) -> None:
        self.port = free_port()
        for name in ("etc", "etc/sasl", "spool", "lib", "mail"):
            (self.home / name).mkdir()
        mailboxes = ", ".join(f"{{{address} = {address}}}" for address in MAILBOXES)
        values: dict[str, Any] = {"home": self.home, "relay": self.port, "host": free_port()}
        values |= {"certificate": self.certificate, "mailboxes": mailboxes}
        values["access"] = f"texthash:{self.home}/access"
        for file, text in (
            ("etc/master.cf", MASTER),
            ("etc/main.cf", MAIN),
            ("etc/sasl/smtpd.conf", SASL),
        ):
            (self.home / file).write_text(text.format(**values).lstrip())
        self.defer("later@members.example.com")
        command = [
            "/usr/sbin/saslpasswd2",
            "-c",
            "-p",
            "-f",
            f"{self.home}/etc/sasl/users",
            "-u",
            "lab.example.com",
            "frontdesk",
        ]
        subprocess.run(command, input=PASSWORD, text=True, check=True)
        for path, owner in (
            (self.home / "lib", "postfix"),
            (self.home / "etc/sasl/users", "postfix"),
        ):
            subprocess.run(["chown", owner, path], check=True)
        give(self.home / "mail")

    def defer(self, *addresses: str) -> None:
        """Refuse these for now, from the next start on."""
        (self.home / "access").write_text(
            "".join(f"{each} 450 4.2.0 try later\n" for each in addresses)
        )

    @contextmanager
    def running(self) -> Iterator[Program]:
        subprocess.run(
            ["/usr/sbin/postfix", "-c", f"{self.home}/etc", "check"],
            check=True,
            capture_output=True,
        )
        command = ["/usr/lib/postfix/sbin/master", "-c", f"{self.home}/etc", "-d"]
        with running(command, self.home, as_root=True) as program:
            wait_until(lambda: program.has_told("daemon started"), "Postfix")
            yield program

    def mails(self, address: str) -> list[Any]:
        path = self.home / "mail" / address
        if not path.exists():
            return []
        with closing(mailbox.mbox(path, create=False)) as found:
            keys = list(found.keys())
            return [message_from_bytes(found.get_bytes(key), policy=policy.default) for key in keys]


@pytest.fixture
def postfix(home: Path, certificate: Certificate) -> Postfix:
    return Postfix(home, certificate)


@pytest.fixture
def lab(sqlite_url: str) -> Installation:
    return installed(sqlite_url)


def test_postfix_delivers_bounces_and_defers_and_loses_nothing_when_killed(
    lab: Installation, postfix: Postfix, tmp_path: Path, tell: Tell
) -> None:
    account = str(lab.customer.account_id)
    sender = ("--sender-name", SENDER, "--sender-address", "care@lab.example.com")
    lab.cli.text("deliverability", "set", "--account", account, *sender)
    settings = mailing(postfix.port) | {
        "FRONTDESK_MAIL_FROM": BOUNCES,
        "FRONTDESK_SMTP_URL": (
            f"smtp://frontdesk%40lab.example.com:{quote(PASSWORD, safe='')}"
            f"@localhost:{postfix.port}?tls=required"
        ),
        "SSL_CERT_FILE": str(postfix.certificate.ca),
    }

    def invite(server: Server, number: int, address: str) -> int:
        """The id of the invitation of a new member."""
        body = member_body(number, email=address, invite_immediately=True)
        assert call(server.port, "POST", lab.members, body, lab.customer.token)[0] == 201
        return int(lab.cli.json("invitations", "list", "--limit", "1")[0]["id"])

    def shown(invitation: int) -> Any:
        return lab.cli.json("invitations", "show", str(invitation))

    def steps(invitation: int) -> list[str]:
        return [step["reason"] for step in shown(invitation)["timeline"]]

    with Server(lab.url, tmp_path / "log", settings=settings, with_worker=True) as server:
        with postfix.running() as relay:
            whole, missing, later = (
                invite(server, number, f"{name}@members.example.com")
                for number, name in enumerate(("robin.1", "missing", "later"), start=1)
            )
            wait_until(lambda: postfix.mails("robin.1@members.example.com"), "the mail")
            [mail] = postfix.mails("robin.1@members.example.com")
            wait_until(lambda: shown(whole)["state"] == "sent", "the relay's answer to be stored")
            assert mail["From"] == f'"{SENDER}" <care@lab.example.com>'
            assert mail["Message-ID"] == f"<{shown(whole)['message_id']}>"
            assert mail["Return-Path"] == f"<{BOUNCES}>"
            assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
            assert any("with ESMTPSA" in line for line in mail.get_all("Received"))
            text, html = (part.get_content() for part in mail.iter_parts())
            assert SENDER in text
            assert html.rstrip().endswith("</html>")
            tell(f"taken by STARTTLS and SASL, {len(mail.as_bytes())} bytes")

            wait_until(
                lambda: postfix.mails(BOUNCES), "the report of the address that does not exist"
            )
            first, again = (
                lab.cli.json("bounces", "read", str(postfix.home / "mail" / BOUNCES))
                for _ in range(2)
            )
            assert (first["messages"], first["applied"], again["applied"]) == (1, 1, 0)
            assert shown(missing)["state"] == "failed"
            assert steps(missing)[-1] == "by_report"
            [suppressed] = lab.cli.json("suppression", "list", "--full")
            assert (suppressed["address"], suppressed["reason"]) == (
                "missing@members.example.com",
                "hard_bounce",
            )

            wait_until(
                lambda: {"refused_for_now", "put_aside"} & set(steps(later)), "the refusal for now"
            )
            os.killpg(relay.pid, signal.SIGKILL)
        after = invite(server, 4, "after@members.example.com")
        wait_until(lambda: server.told("relay_down"), "the worker to notice")
        postfix.defer()
        with closing(open_database(lab.url)) as db, db.write() as tx:  # or wait a minute
            tx.exec_driver_sql(f"UPDATE invitations SET due_at = created_at WHERE id = {later}")  # noqa: S608
        with postfix.running():
            wait_until(
                lambda: shown(after)["state"] == shown(later)["state"] == "sent",
                "the relay to be used again",
            )
            for address in ("after@members.example.com", "later@members.example.com"):
                wait_until(lambda: postfix.mails(address), "the mail")  # noqa: B023 - used at once
                assert len(postfix.mails(address)) == 1
    tell("a report of an unknown mailbox read, a 450 tried again, the relay killed and back")
