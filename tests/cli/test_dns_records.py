"""`deliverability check`: the records of a small DNS server of its own, and the sentence for each
that is wrong.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import dns.message
import dns.rcode
import dns.rrset
import pytest

from tests.cli.conftest import CommandLine

# What passes, of an invented domain.
GOOD = {
    "example.com MX": ["10 mail.example.com."],
    "example.com TXT": ['"site-verification=1"', '"v=spf1 include:relay.example.net " "a -all"'],
    "relay.example.net TXT": ['"v=spf1 ip4:192.0.2.0/24 ?exists:%{i}.relay.example.net ~all"'],
    "_dmarc.example.com TXT": ['"v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"'],
    "s1._domainkey.example.com CNAME": ["s1.dkim.example.net."],
    "s1.dkim.example.net TXT": ['"v=DKIM1; k=rsa; p=MIIBIjAN" "BgkqhkiG"'],
}
FROM = {"mail_from": "invitations@example.com"}


class NameServer:
    """Answers from `zone`: texts by name and kind. `asked` counts the questions."""

    asked = 0

    def __init__(self) -> None:
        self.zone: dict[str, list[str]] = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"

    def serve(self) -> None:
        while True:
            raw, sender = self.socket.recvfrom(4096)
            if not raw:
                return
            self.asked += 1
            asked = dns.message.from_wire(raw)
            name = asked.question[0].name.to_text(omit_final_dot=True).lower()
            kind = dns.rdatatype.to_text(asked.question[0].rdtype)
            answer = dns.message.make_response(asked)
            alias = self.zone.get(f"{name} CNAME", [])
            if alias:
                answer.answer.append(dns.rrset.from_text_list(f"{name}.", 60, "IN", "CNAME", alias))
                name = alias[0].rstrip(".")
            if texts := self.zone.get(f"{name} {kind}"):
                answer.answer.append(dns.rrset.from_text_list(f"{name}.", 60, "IN", kind, texts))
            elif not any(known.startswith(f"{name} ") for known in self.zone):
                answer.set_rcode(dns.rcode.NXDOMAIN)
            self.socket.sendto(answer.to_wire(), sender)


@pytest.fixture
def names() -> Iterator[NameServer]:
    server = NameServer()
    with closing(server.socket):
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield server
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", server.socket.getsockname())
        thread.join()


def test_good_records_pass_and_are_shown(bare_cli: CommandLine, names: NameServer) -> None:
    names.zone = GOOD
    words = ("deliverability", "check", "--selector", "s1", "--resolver", names.address)
    checked = bare_cli.json(*words, **FROM)
    assert (checked["ok"], checked["problems"], checked["warnings"]) == (True, [], [])
    assert checked["records"] == {
        "mx": ["10 mail.example.com."],
        "spf": ["v=spf1 include:relay.example.net a -all"],
        "spf_lookups": ["include:relay.example.net", "?exists:%{i}.relay.example.net", "a"],
        "dkim": ["v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG"],
        "dmarc": ["v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"],
    }
    assert "All is well" in bare_cli.text(*words, **FROM)
    below = bare_cli.json(*words[:2], *words[4:], mail_from="a@example.com")
    assert [each["what"] for each in below["warnings"]] == ["DKIM was not checked."]


SPF = "example.com TXT"
DMARC = "_dmarc.example.com TXT"
LOOP = '"v=spf1 include:loop.example.net -all"'
MANY = '"v=spf1 {} -all"'.format(" ".join(f"exists:{n}.example.net" for n in range(11)))
BELOW = {"sub.example.com MX": ["1 mail.example.com."], "sub.example.com TXT": ['"v=spf1 mx ~all"']}
# The records that differ, and the words of the only sentence that comes of it.
WRONG: list[tuple[dict[str, list[str]], str]] = [
    ({"example.com MX": []}, "no MX, A or AAAA record"),
    ({"example.com MX": ["0 ."]}, "no MX, A or AAAA record"),
    ({SPF: ['"other"']}, "has 0 SPF records"),
    ({SPF: ['"v=spf1 -all"', '"v=spf1 mx -all"']}, "has 2 SPF records"),
    ({SPF: ['"v=spf1 mx ?all"']}, "excludes no sender"),
    ({SPF: ['"v=spf1 mx"']}, "excludes no sender"),
    ({SPF: [LOOP], "loop.example.net TXT": [LOOP]}, "over 10 look-ups"),
    ({SPF: [MANY]}, "over 10 look-ups"),
    ({"s1.dkim.example.net TXT": ['"v=DKIM1; p="']}, "not one usable DKIM key"),
    ({"s1._domainkey.example.com CNAME": []}, "not one usable DKIM key"),
    ({DMARC: []}, "not one DMARC policy"),
    ({DMARC: ['"v=DMARC1; p=none"', '"v=DMARC1; p=reject"']}, "not one DMARC policy"),
    ({DMARC: ['"v=DMARC1; rua=mailto:a@example.com"']}, "not one DMARC policy"),
    ({DMARC: ['"v=DMARC1; p=none; rua=mailto:a@example.com"']}, "policy is none"),
    ({DMARC: ['"v=DMARC1; p=reject"']}, "names no rua"),
    ({DMARC: ['"v=DMARC1;p=reject;rua=mailto:a@example.com;aspf=s"']}, "alignment is strict"),
]
WARNINGS = ("policy is none", "names no rua", "alignment is strict")


@pytest.mark.parametrize(("changed", "words"), WRONG)
def test_each_wrong_record_has_its_own_sentence_and_remedy(
    bare_cli: CommandLine, names: NameServer, changed: dict[str, list[str]], words: str
) -> None:
    names.zone = GOOD | changed
    asked = ("deliverability", "check", "--selector", "s1", "--resolver", names.address)
    result = bare_cli.run(*asked, **FROM)
    sentences = [
        part for part in result.stdout.split("\n") if part.startswith(("Problem: ", "Warning: "))
    ]
    is_warning = words in WARNINGS
    assert [words in sentence for sentence in sentences] == [True]
    assert sentences[0].startswith("Warning" if is_warning else "Problem")
    assert result.stdout.count("\nRemedy: ") == 1
    assert result.exit_code == (0 if is_warning else 1)
    assert names.asked < 25  # a record that includes itself has an end


def test_the_policy_of_a_parent_counts_and_a_redirect_is_an_end(
    bare_cli: CommandLine, names: NameServer
) -> None:
    redirect = {"sub.example.com TXT": ['"v=spf1 redirect=relay.example.net"']}
    for zone in (GOOD | BELOW, GOOD | BELOW | redirect):
        names.zone = zone
        checked = bare_cli.json(
            *("deliverability", "check", "--resolver", names.address),
            mail_from="mail@sub.example.com",
        )
        assert (checked["ok"], checked["records"]["dmarc"]) == (
            True,
            ["v=DMARC1; p=quarantine; rua=mailto:dmarc@example.com"],
        )


@pytest.mark.parametrize("resolver", ["nowhere", "::1", "127.0.0.1:x"])
def test_a_resolver_that_is_none_is_told(bare_cli: CommandLine, resolver: str) -> None:
    said = bare_cli.refused(
        "deliverability", "check", "--resolver", resolver, mail_from="a@example.com"
    )
    assert "The resolver gives no answer" in said
