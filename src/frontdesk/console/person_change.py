"""What users change of one person: correct fields, end the access, give another external_id or another
e-mail address. Each is a form, and shows what it will do before it does what takes access away.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from frontdesk.access.accounts import get_account
from frontdesk.access.model import WORKING
from frontdesk.codes import Code
from frontdesk.console import frame
from frontdesk.console.door import Pages
from frontdesk.console.people import LABELS, PERSON, overtaken_text, path_of, sender_of, version_of
from frontdesk.console.person_said import WORDS
from frontdesk.console.rules import label_of, rules_by_field, rules_text
from frontdesk.console.visit import Visit
from frontdesk.db import Tx
from frontdesk.disclosures.another_address import FactsChanged, NewAddress, change_address
from frontdesk.disclosures.change_form import ChangeForm, view_change_form
from frontdesk.disclosures.model import FACTS_NEEDED, Holder, RecordNotOpen
from frontdesk.disclosures.opened import require_open
from frontdesk.eligibility.access_days import AccessPair, Loss, Spans, compare_access
from frontdesk.eligibility.days import OPEN, day_after, day_before
from frontdesk.eligibility.model import Enrolled, MemberWarning, Outcome
from frontdesk.eligibility.person_change import (
    CORRECTED,
    AskedChange,
    Change,
    ChangeAnswer,
    Correction,
    End,
    MemberOvertaken,
    Rename,
    change_person,
)
from frontdesk.errors import Conflict, Fault, FrontdeskError, Invalid, RateLimited, Suspended
from frontdesk.invitations.unproven import TooManyUnproven
from frontdesk.users.model import Right
from frontdesk.web.problems import PROBLEMS
from frontdesk.web.response import Response

PAGES = Pages()

Result = TypeVar("Result")

_LONGEST = (
    65_536  # characters: what a whole form may have, so that a rule of the field refuses a text
)
_UNCHANGED = "Nothing was changed: the record has these values already."
_NOTHING_TYPED = "Nothing was typed, so nothing was changed."


@PAGES.get(PERSON + "/correct", for_=Right.RECORD_CHANGE)
async def show_correction(visit: Visit) -> Response:
    """Show the fields of a person, with their values while the record is open."""
    return await _form_page(visit, "correct")


@PAGES.post(PERSON + "/correct", for_=Right.RECORD_CHANGE)
async def correct(visit: Visit) -> Response:
    """Correct fields of a person. What moves the access is shown before it is done."""
    form = visit.form
    texts = {name: form.text(name, longest=_LONGEST) for name in CORRECTED if form.is_set(name)}
    return await _change(visit, "correct", Correction(texts, are_whole=form.is_set("shown")))


@PAGES.get(PERSON + "/end", for_=Right.RECORD_CHANGE)
async def show_end(visit: Visit) -> Response:
    """Ask for the last day of a person's access."""
    return await _form_page(visit, "end")


@PAGES.post(PERSON + "/end", for_=Right.RECORD_CHANGE)
async def end(visit: Visit) -> Response:
    """End a person's access, after a step that says from which day."""
    return await _change(visit, "end", End(visit.form.text("on", longest=_LONGEST)))


@PAGES.get(PERSON + "/rename", for_=Right.RECORD_CHANGE)
async def show_rename(visit: Visit) -> Response:
    """Ask for another external_id of a person."""
    return await _form_page(visit, "rename")


@PAGES.post(PERSON + "/rename", for_=Right.RECORD_CHANGE)
async def rename(visit: Visit) -> Response:
    """Give a person another external_id."""
    return await _change(visit, "rename", Rename(visit.form.text("external_id", longest=_LONGEST)))


@PAGES.get(PERSON + "/address", for_=Right.EMAIL_CHANGE)
async def show_address(visit: Visit) -> Response:
    """Ask for another e-mail address, and say whether the invitation will go there."""
    return await _form_page(visit, "address")


@PAGES.post(PERSON + "/address", for_=Right.EMAIL_CHANGE)
async def readdress(visit: Visit) -> Response:
    """Change a person's e-mail address, and send the invitation there if that is allowed."""
    asked = NewAddress(
        _member_id(visit),
        version_of(visit),
        visit.form.text("email", longest=_LONGEST),
        is_mailed=visit.form.is_set("is_mailed"),
    )
    uniqueness = visit.app.config.uniqueness
    requester = visit.requester
    sender = sender_of(visit)
    try:
        mail = await _write(
            visit,
            lambda tx: change_address(
                tx, requester, visit.reach, asked, sender, uniqueness=uniqueness
            ),
        )
    except MemberOvertaken as overtaken:
        return await _overtaken_page(visit, "address", overtaken)
    except (Invalid, RateLimited, Conflict, FactsChanged, TooManyUnproven) as error:
        return await _refused_page(visit, "address", error)
    if mail is None:
        return await _form_page(visit, "address", message=_UNCHANGED)
    visit.app.db.announce_work()
    return _go_back(visit, [mail])


async def _change(visit: Visit, name: str, change: Change) -> Response:
    """Make the change, or show what it would do to the access, or say why nothing was done."""
    if visit.form.is_set("again"):
        return await _form_page(visit, name, refused=())
    is_confirmed = visit.form.is_set("confirmed")
    asked = AskedChange(_member_id(visit), version_of(visit), change, is_confirmed)
    uniqueness = visit.app.config.uniqueness
    requester = visit.requester
    holder = Holder(visit.user.actor, visit.own_session.id)

    def work(tx: Tx) -> ChangeAnswer | FrontdeskError:
        if isinstance(change, Correction) and change.are_whole:
            require_open(tx, visit.reach, asked.member_id, holder, now=visit.now)
        return change_person(tx, requester, visit.reach, asked, uniqueness=uniqueness)

    try:
        answer = await _write(visit, work)
    except MemberOvertaken as overtaken:
        return await _overtaken_page(visit, name, overtaken)
    except (Invalid, RateLimited, Conflict, RecordNotOpen) as error:
        return await _refused_page(visit, name, error)
    made = answer.made
    if not answer.is_written:
        return await _confirm_page(visit, name, made)
    visit.app.db.announce_work()
    if made.outcome is Outcome.UNCHANGED:
        is_typed = visit.form.is_set("shown") or any(_filled(visit, name))
        return await _form_page(visit, name, message=_UNCHANGED if is_typed else _NOTHING_TYPED)
    return _go_back(visit, [warning.code for warning in made.warnings])


def _go_back(visit: Visit, said: Sequence[str]) -> Response:
    """To the person's page, which says these words of the change (`person_said`)."""
    words = ",".join(word for word in dict.fromkeys(said) if word in WORDS)
    path = path_of(visit, _member_id(visit))
    return frame.go_to(f"{path}?said={words}" if words else path)


async def _write(visit: Visit, work: Callable[[Tx], Result | FrontdeskError]) -> Result:
    """Run the work in a transaction. Raises Suspended and StorageUsedUp, as the API does; what the
    work raises; and, after the commit, the refusal that it returns.
    """
    visit.app.refuse_used_up_storage(visit.account)

    def write(tx: Tx) -> Result | FrontdeskError:
        if get_account(tx, visit.account).state not in WORKING:
            raise Suspended
        return work(tx)

    result = await visit.app.write(write)
    if isinstance(result, FrontdeskError):
        raise result
    return result


async def _refused_page(visit: Visit, name: str, error: FrontdeskError) -> Response:
    """The form as it was filled, with the rule at each field that breaks one."""
    message = f"{error.detail} Nothing was changed."
    faults: tuple[Fault, ...] = ()
    if isinstance(error, Invalid):
        faults = tuple(
            dict.fromkeys(each._replace(field=_field_of(name, each.field)) for each in error.faults)
        )
        rest = [each for each in faults if each.field.partition(".")[0] not in _fields_of(name)]
        said = rules_text(Invalid(rest)) if rest else "See the rules at the fields."
        message = f"Nothing was changed. {said}"
    return await _form_page(
        visit, name, status=PROBLEMS[error.kind].status, message=message, refused=faults
    )


def _field_of(name: str, field: str) -> str:
    """The form's field that stands for one of the record. A member_id is renamed with an external_id
    that is the same.
    """
    return {("end", "expiry_date"): "on", ("rename", "member_id"): "external_id"}.get(
        (name, field), field
    )


def _filled(visit: Visit, name: str) -> list[str]:
    """The fields of the form that have a text."""
    return [each for each in _fields_of(name) if visit.form.text(each, longest=_LONGEST)]


def _fields_of(name: str) -> Sequence[str]:
    one = {"end": "on", "rename": "external_id", "address": "email"}
    return (one[name],) if name in one else CORRECTED


async def _overtaken_page(visit: Visit, name: str, overtaken: MemberOvertaken) -> Response:
    """The form anew. Values of an open record are shown as they are now: what was typed over older
    ones would undo the other change.
    """
    message = f"{await overtaken_text(visit, overtaken)} You have changed nothing."
    keeps_typed = not visit.form.is_set("shown")
    return await _form_page(visit, name, status=409, message=message, keeps_typed=keeps_typed)


async def _form_page(
    visit: Visit,
    name: str,
    *,
    status: int = 200,
    message: str = "",
    refused: tuple[Fault, ...] | None = None,
    keeps_typed: bool = True,
) -> Response:
    """The form of a change, with what was typed. `refused`: the faults at its fields; what was typed
    is then still about the record as the form has shown it.
    """
    typed = visit.form.fields if keeps_typed else {}
    # Blank fields of a covered form must not become those of an open one: they would clear the record.
    is_covered = bool(typed) and "shown" not in typed
    shows = name == "correct" and not is_covered
    form = await visit.app.write(lambda tx: _read_form(tx, visit, shows_values=shows))
    return frame.show(
        visit,
        f"Person {form.covered.id}: {_TITLES[name].lower()}",
        f"people/{name}.html",
        status=status,
        heading=_TITLES[name],
        form=form,
        version=form.version if refused is None else version_of(visit),
        are_shown="shown" in typed or form.values is not None,
        values={**(form.values or {}), **typed},
        rules=rules_by_field(refused or ()),
        message=message,
        tone="warn" if status == 200 else "bad",
        label_of=label_of,
        fact_labels=[LABELS[each] for each in LABELS if each in form.facts],
        facts_missing=max(0, FACTS_NEEDED - len(form.facts)),
        own=path_of(visit, form.covered.id),
        corrected=CORRECTED,
    )


_TITLES = {
    "correct": "Correct",
    "end": "End the access",
    "rename": "Another external_id",
    "address": "Another address",
}


def _read_form(tx: Tx, visit: Visit, *, shows_values: bool) -> ChangeForm:
    form = view_change_form(
        tx,
        visit.requester,
        visit.reach,
        _member_id(visit),
        sender_of(visit),
        shows_values=shows_values,
    )
    if form.values is not None:  # a view of the open record, which is recorded
        visit.app.usage.refuse_used_up_trail(visit.account, visit.now)
    return form


async def _confirm_page(visit: Visit, name: str, made: Enrolled) -> Response:
    """What the change does to the access, with the form to do it. Of a covered record it names the
    fields that are filled, and gives no warnings: that a typed value differs would tell the stored one.
    """
    form = await visit.app.write(lambda tx: _read_form(tx, visit, shows_values=False))
    pair = made.access or AccessPair(before=(), after=())
    loss = compare_access(*pair, form.today).loss
    fields = {
        key: text
        for key, text in visit.form.fields.items()
        if key not in ("user", "confirmed", "again")
    }
    return frame.show(
        visit,
        f"Person {form.covered.id}: {_TITLES[name].lower()}",
        "people/confirm.html",
        form=form,
        heading=_TITLES[name],
        before=_days_of(pair.before),
        after=_days_of(pair.after),
        loss=loss,
        ends_from=_ends_from(loss, form.today),
        warnings=_warned(made.warnings) if form.is_open else [],
        changed=[
            label_of(each) for each in (made.changes if form.is_open else _filled(visit, name))
        ],
        fields=fields,
        name=name,
        own=path_of(visit, form.covered.id),
    )


def _ends_from(loss: Loss | None, today: str) -> str:
    """The first day without access; "" if none is lost. That of a last day in the past is past too,
    though a loss counts from today on.
    """
    if loss is None:
        return ""
    is_past = loss.last_day and loss.last_day < day_before(today)
    return day_after(loss.last_day) if is_past else loss.first_day


def _days_of(spans: Spans) -> list[str]:
    """The spans of access in words, 20 at most."""
    return [f"{span.begin} to {span.end if span.end < OPEN else 'no end'}" for span in spans[:20]]


def _warned(warnings: Sequence[MemberWarning]) -> list[str]:
    return [_sentence(each.code, each.member_id) for each in warnings]


def _sentence(code: Code, member_id: int) -> str:
    return f"{code.sentence} (person {member_id})" if member_id else code.sentence


def _member_id(visit: Visit) -> int:
    return visit.id_of("member_id", of="eligible member")
