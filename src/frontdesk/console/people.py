"""People: find one, see whether they are eligible and why no mail came, check what a caller says,
open the record for a reason. Until then a person is covered: no name, no birth date, no address.
"""

from collections.abc import Callable, Mapping
from typing import Any

from frontdesk.console import frame
from frontdesk.console.actors import names_of
from frontdesk.console.door import Pages
from frontdesk.console.mail_words import mail_answer
from frontdesk.console.person_said import said_of
from frontdesk.console.reasons import REASONS
from frontdesk.console.rules import label_of, rules_by_field, rules_text
from frontdesk.console.times import try_again_text
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.disclosures import another_address
from frontdesk.disclosures import searches as people_searches
from frontdesk.disclosures.another_address import MailSender, ShownPerson
from frontdesk.disclosures.checks import check_answer
from frontdesk.disclosures.model import (
    CHECKS_AN_HOUR,
    CallersWords,
    CheckedField,
    FreshFactorNeeded,
    Holder,
    Opening,
    OpeningReason,
)
from frontdesk.disclosures.opened import open_record
from frontdesk.disclosures.person import PersonView, Viewer, view_person
from frontdesk.disclosures.searches import find_search
from frontdesk.eligibility import person_mail
from frontdesk.eligibility.person_change import MemberOvertaken
from frontdesk.eligibility.search import ByBirthDate, ByEmail, ByExternalId, FindBy, FoundPeople
from frontdesk.errors import FrontdeskError, Invalid, NotFound, RateLimited
from frontdesk.plans import list_plans
from frontdesk.reach import EVERY, Reach
from frontdesk.users.model import NotFresh, Right, Role
from frontdesk.web.response import Response

PAGES = Pages()

LABELS = {field: label_of(field) for field in CheckedField}

_PLACE = "/console/accounts/{account_id}/people"
PERSON = _PLACE + "/{member_id}"


@PAGES.get(_PLACE, for_=Right.PEOPLE_FIND)
async def show_search(visit: Visit) -> Response:
    """Show the forms by which a person is found."""
    return _search_page(visit)


def _search_page(visit: Visit, *, message: str = "", status: int = 200) -> Response:
    return frame.show(
        visit,
        "People",
        "people/search.html",
        status=status,
        message=message,
        typed=visit.form.fields,
    )


@PAGES.post(_PLACE, for_=Right.PEOPLE_FIND)
async def search(visit: Visit) -> Response:
    """Find people. What was typed is in no address: the session keeps who was found, under a number
    of its own.
    """
    session_id = visit.own_session.id
    try:
        by = _find_by(visit)
        searched = await visit.app.write(
            lambda tx: people_searches.search(tx, visit.requester, visit.account, session_id, by)
        )
    except RateLimited as error:
        return _search_page(visit, message=try_again_text(error), status=429)
    except Invalid as error:
        return _search_page(visit, message=rules_text(error), status=422)
    number, found = searched
    if not found.people and found.truncated is None:
        return _search_page(visit, message=_NOBODY[type(by)])
    place = f"/console/accounts/{visit.account}/people"
    may_see = visit.user.may(Right.PEOPLE_CHECK, visit.account)
    if len(found.people) == 1 and found.truncated is None and may_see:
        return frame.go_to(f"{place}/{found.people[0].id}")
    return frame.go_to(f"{place}/found/{number}")


_NOBODY: dict[type[FindBy], str] = {
    ByBirthDate: "No member has this birth date and name. Try the external_id.",
    ByExternalId: "No member has this external_id. Try the birth date and the name.",
    ByEmail: "No member has this e-mail address. Try the birth date and the name.",
}


def _find_by(visit: Visit) -> FindBy:
    form = visit.form
    if form.is_set("external_id"):
        return ByExternalId(form.text("external_id"))
    if form.is_set("email"):
        return ByEmail(form.text("email"))
    return ByBirthDate(form.text("dob"), form.text("last_name"), form.text("first_name"))


@PAGES.get(_PLACE + "/found/{number}", for_=Right.PEOPLE_FIND)
async def show_found(visit: Visit) -> Response:
    """Show the people of a search of this session."""
    number = visit.request.path_parameters["number"]
    holder = Holder(visit.user.actor, visit.own_session.id)

    def read(tx: Tx) -> tuple[FoundPeople, Mapping[int, str]]:
        found = find_search(tx, visit.reach, holder, number, now=visit.now)
        return found, _plan_names(tx, visit.reach, found)

    found, plans = await visit.app.ask(read)
    may_see = visit.user.may(Right.PEOPLE_CHECK, visit.account)
    may_read_trail = visit.user.may(Right.TRAIL, visit.account)
    return frame.show(
        visit,
        "People found",
        "people/found.html",
        found=found,
        plans=plans,
        may_see=may_see,
        trail=f"/console/accounts/{visit.account}/trail" if may_read_trail else "",
    )


def _plan_names(tx: Tx, reach: Reach, found: FoundPeople) -> Mapping[int, str]:
    """The names of the plans of the people."""
    wanted = {person.plan_id for person in found.people}
    plans = list_plans(tx, reach) if wanted else []
    return {plan.id: plan.name for plan in plans if plan.id in wanted}


@PAGES.get(PERSON, for_=Right.PEOPLE_CHECK)
async def show_person(visit: Visit) -> Response:
    """Show a person: covered, or the record while it is open in this session."""
    return await person_page(visit)


async def person_page(visit: Visit, *, status: int = 200, **said: Any) -> Response:
    """`said`: what the page says of the last form: `message`, `rules` by field."""
    member_id = _member_id(visit)
    viewer = Viewer(sender_of(visit), _mail_reach(visit), visit.app.config.sends_mail)

    # A view of an open record is recorded, in the transaction that reads it.
    def read(tx: Tx) -> tuple[PersonView, Mapping[str, str], Mapping[int, str]]:
        person = view_person(tx, visit.requester, visit.reach, member_id, viewer)
        if person.record is not None:
            visit.app.usage.refuse_used_up_trail(visit.account, visit.now)
        actors = {change.client for change in person.changes}
        names = names_of(tx, actors, visit.reach, visit.user)
        return person, names, _plan_names(tx, visit.reach, person.similar)

    person, names, plans = await visit.app.write(read)
    if "message" not in said:
        said |= {"message": said_of(visit, person), "tone": "warn"}
    return frame.show(
        visit,
        f"Person {person.covered.id}",
        "people/person.html",
        status=status,
        person=person,
        names=names,
        plans=plans,
        mail=mail_answer(
            person.why,
            frame.times_of(visit),
            is_proven=person.is_proven,
            has_address=person.covered.masked_email is not None,
        ),
        may_send=visit.user.may(Right.INVITATION_SEND, visit.account),
        may_change=visit.user.may(Right.RECORD_CHANGE, visit.account),
        may_readdress=visit.user.may(Right.EMAIL_CHANGE, visit.account),
        may_open=visit.user.may(Right.RECORD_OPEN, visit.account),
        fields=CheckedField,
        most_checks=CHECKS_AN_HOUR,
        labels=LABELS,
        label_of=label_of,
        reasons=OpeningReason,
        reason_labels=REASONS,
        typed=visit.form.fields,
        **({"tone": "bad", "rules": {}} | said),
    )


@PAGES.post(PERSON + "/check", for_=Right.PEOPLE_CHECK)
async def check(visit: Visit) -> Response:
    """Compare what a caller says with the record. The person's page shows what has matched."""
    member_id = _member_id(visit)
    try:
        said = CallersWords(
            member_id,
            visit.own_session.id,
            visit.form.word("field", CheckedField),
            visit.form.text("text"),
        )
        await visit.app.write(lambda tx: check_answer(tx, visit.requester, visit.reach, said))
    except RateLimited as error:
        return await person_page(visit, status=429, message=try_again_text(error))
    except Invalid as error:
        return await _refused(visit, error)
    return frame.go_to(path_of(visit, member_id) + "#caller")


@PAGES.post(PERSON + "/open", for_=Right.RECORD_OPEN)
async def open_person(visit: Visit) -> Response:
    """Open the record in this session, for 15 minutes, for a reason and a case."""
    try:
        opening = Opening(
            _member_id(visit),
            visit.form.word("reason", OpeningReason),
            visit.form.text("case"),
            visit.own_session.id,
            has_fresh_factor=visit.own_session.is_fresh(visit.now),
        )
        opened = await visit.app.write(
            lambda tx: open_record(tx, visit.requester, visit.reach, opening)
        )
    except FreshFactorNeeded:
        raise NotFresh from None
    except Invalid as error:
        return await _refused(visit, error)
    return frame.go_to(path_of(visit, opened.member_id))


async def _refused(visit: Visit, error: Invalid) -> Response:
    """The page with the rule at the field that breaks it."""
    rules = rules_by_field(error.faults)
    message = "Nothing was done. See the rule at the field."
    return await person_page(visit, status=422, message=message, rules=rules)


@PAGES.post(PERSON + "/resend", for_=Right.INVITATION_SEND)
async def resend(visit: Visit) -> Response:
    """Send the invitation again, to the person's present address."""
    shown = _shown(visit)
    sender = sender_of(visit)
    return await _mend(
        visit,
        lambda tx: another_address.resend(tx, visit.reach, shown, visit.requester, sender=sender),
    )


@PAGES.post(PERSON + "/unblock", for_=Right.INVITATION_SEND)
async def unblock(visit: Visit) -> Response:
    """Lift a bounce of the address and send again."""
    shown = _shown(visit)
    sender = sender_of(visit)
    lift_within = _mail_reach(visit)
    return await _mend(
        visit,
        lambda tx: another_address.unblock_and_resend(
            tx, visit.reach, shown, visit.requester, lift_within=lift_within, sender=sender
        ),
    )


@PAGES.post(PERSON + "/cancel", for_=Right.INVITATION_SEND)
async def cancel(visit: Visit) -> Response:
    """Cancel an invitation that has not left yet."""
    member_id = _member_id(visit)
    return await _mend(
        visit, lambda tx: person_mail.cancel(tx, visit.reach, member_id, visit.requester)
    )


def _shown(visit: Visit) -> ShownPerson:
    return ShownPerson(_member_id(visit), version_of(visit))


def _member_id(visit: Visit) -> int:
    return visit.id_of("member_id", of="eligible member")


async def _mend(visit: Visit, work: Callable[[Tx], None]) -> Response:
    """Do something about the person's invitation; say on the page why it can't be done."""
    try:
        await visit.app.write(work)
    except NotFound:
        raise
    except MemberOvertaken as overtaken:
        message = (
            f"{await overtaken_text(visit, overtaken)} No mail was sent: look at the address first."
        )
        return await person_page(visit, status=409, message=message)
    except FrontdeskError as error:
        return await person_page(visit, status=409, message=rules_text(error))
    return frame.go_to(path_of(visit, _member_id(visit)))


def sender_of(visit: Visit) -> MailSender:
    """The user as a sender of mails. Who may change records vouches for an address."""
    vouches = visit.user.may(Right.RECORD_CHANGE, visit.account)
    return MailSender(visit.own_session.id, vouches)


def _mail_reach(visit: Visit) -> Reach:
    """Whose mails and bounces are told and lifted: support's are of every account, since accounts
    share addresses; an account's are its own.
    """
    return EVERY if Role.SUPPORT in visit.user.roles else visit.reach


async def overtaken_text(visit: Visit, overtaken: MemberOvertaken) -> str:
    """Who changed what of the person, and when, since the page was made."""
    change = overtaken.change
    names = await visit.app.ask(lambda tx: names_of(tx, {change.client}, visit.reach, visit.user))
    who = names[change.client] if change.file_id is None else f"file {change.file_id}"
    fields = ", ".join(map(label_of, change.fields[:10])) or "it"
    at = frame.times_of(visit).minute(change.at)
    return f"This record changed while the page was open: {who} changed {fields} at {at}."


def version_of(visit: Visit) -> int:
    """The version in the form. One that is no number is of no record."""
    version = visit.form.number("version")
    return -1 if version is None else version


def path_of(visit: Visit, member_id: int) -> str:
    return f"/console/accounts/{visit.account}/people/{member_id}"
