"""The DNS records of a sender's domain (docs/deliverability.md): MX, SPF (RFC 7208), DKIM (RFC
6376) and DMARC (RFC 7489).
"""

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

# The records of a name and a kind as texts, those that start with a text if one is given.
Find = Callable[..., list[str]]


class RecordRule(NamedTuple):
    """A rule for a domain's records: what is wrong where it is broken, and the remedy. Both may
    name {domain}, {spf_count} and {selector}.
    """

    name: str
    what: str
    remedy: str
    is_warning: bool = False


_RULES = (
    RecordRule(
        "exchanger",
        "{domain} has no MX, A or AAAA record that takes mail, so bounces are lost.",
        "Add an MX record for the bounces' mailbox.",
    ),
    RecordRule(
        "spf_record",
        "{domain} has {spf_count} SPF records, and needs exactly one.",
        "Publish one TXT record: v=spf1 include:… -all",
    ),
    RecordRule(
        "spf_open",
        "The SPF record of {domain} excludes no sender.",
        "End it in -all, or in ~all while you try it out.",
    ),
    RecordRule(
        "spf_lookups",
        "The SPF record of {domain} costs over 10 look-ups, so receivers ignore it.",
        "Take out includes that no sender needs.",
    ),
    RecordRule(
        "dkim",
        "DKIM was not checked.",
        "Name the selector that your relay shows: --selector s1",
        is_warning=True,
    ),
    RecordRule(
        "dkim_key",
        "{selector}._domainkey.{domain} has not one usable DKIM key.",
        "Publish the one TXT or CNAME record that your relay shows.",
    ),
    RecordRule(
        "dmarc",
        "{domain} has not one DMARC policy, so many refuse its mail.",
        "Publish at _dmarc.{domain}: v=DMARC1; p=none; rua=mailto:…",
    ),
    RecordRule(
        "dmarc_none",
        "The DMARC policy is none, so anybody can write in your name.",
        "Set p=quarantine, later p=reject.",
        is_warning=True,
    ),
    RecordRule(
        "dmarc_reports",
        "The DMARC record names no rua, so failures stay unseen.",
        "Add rua=mailto: and an address of yours.",
        is_warning=True,
    ),
    RecordRule(
        "dmarc_strict",
        "DMARC alignment is strict, so senders below {domain} fail.",
        "Take out aspf=s and adkim=s if an account has one.",
        is_warning=True,
    ),
)
_LOOKUP = re.compile(
    r"[-+~?]?((?:include|exists):|redirect=|(?:a|mx|ptr)(?=[:/]|$))(.*)", re.IGNORECASE
)
_TAG = re.compile(r"\b(\w+)\s*=\s*([^;\s]*)")


def check_records(find: Find, domain: str, selector: str) -> dict[str, Any]:
    """The records by kind, and problems and warnings as `frontdesk check` shows them. `selector`:
    of DKIM, or empty.
    """
    spf = find(domain, "TXT", "v=spf1")
    lookups = [*islice(_lookups(find, domain), 11)]
    ending = spf[0].lower().split()[-1] if spf else ""
    parents = (domain.split(".", count)[-1] for count in range(max(1, domain.count("."))))
    dmarc = next(filter(None, (find(f"_dmarc.{each}", "TXT", "v=dmarc1") for each in parents)), [])
    tags = dict(_TAG.findall(dmarc[0].lower())) if len(dmarc) == 1 else {}
    keys = find(f"{selector}._domainkey.{domain}", "TXT") if selector else []
    mx = find(domain, "MX")
    is_right = {
        "exchanger": mx != ["0 ."] and any(mx or find(domain, kind) for kind in ("A", "AAAA")),
        "spf_record": len(spf) == 1,
        "spf_open": not spf or ending in ("-all", "~all") or ending.startswith("redirect="),
        "spf_lookups": len(lookups) <= 10,
        "dkim": bool(selector),
        "dkim_key": not selector
        or [bool(dict(_TAG.findall(key)).get("p")) for key in keys] == [True],
        "dmarc": tags.get("p") in ("none", "quarantine", "reject"),
        "dmarc_none": tags.get("p") != "none",
        "dmarc_reports": not tags or "rua" in tags,
        "dmarc_strict": "s" not in (tags.get("aspf"), tags.get("adkim")),
    }
    found: dict[str, Any] = {"problems": [], "warnings": []}
    known = {"domain": domain, "spf_count": len(spf), "selector": selector}
    for rule in _RULES:
        if not is_right[rule.name]:
            failure = {"what": rule.what.format(**known), "remedy": rule.remedy.format(**known)}
            found["warnings" if rule.is_warning else "problems"].append(failure)
    return found | {
        "records": {"mx": mx, "spf": spf, "spf_lookups": lookups, "dkim": keys, "dmarc": dmarc}
    }


def _lookups(find: Find, domain: str) -> Iterator[str]:
    """Those of the domain's SPF record and of all that it includes; without end if one includes
    itself (RFC 7208, 4.6.4).
    """
    for term in " ".join(find(domain, "TXT", "v=spf1")).split():
        if found := _LOOKUP.fullmatch(term):
            yield term
            if found[1].lower() in ("include:", "redirect="):
                yield from _lookups(find, found[2])
