"""Templates: what an account's own may hold, and the product's."""

from functools import partial

import pytest

from frontdesk.db import Database
from frontdesk.errors import Fault, Invalid
from frontdesk.invitations.message import (
    SAMPLE_VALUES,
    TemplateValues,
    find_template_faults,
    render,
    set_template,
)
from frontdesk.invitations.model import MessageTemplate
from frontdesk.invitations.store.account_settings import get_template
from tests.factories import NOW, Customer, make_customer
from tests.invitations.mails import LINKS


def faults_of(db: Database, customer: Customer, **changes: str | None) -> tuple[Fault, ...]:
    with pytest.raises(Invalid) as caught, db.write() as tx:
        set_template(tx, customer.account_id, now=NOW, **changes)
    return caught.value.faults


def test_html_is_escaped_and_text_is_not() -> None:
    name = '<script>"x"</script>'
    rendered = render(
        MessageTemplate(),
        TemplateValues(name, "A & B", "https://a.example/?x=1&y=2", "https://b.example"),
    )
    assert name in rendered.text
    html = str(rendered.html)
    assert "<script" not in html
    assert "A &amp; B" in html
    assert 'href="https://a.example/?x=1&amp;y=2"' in html


def test_an_accounts_own_templates_are_kept_changed_one_by_one_and_reset(db: Database) -> None:
    customer = make_customer(db)
    other = make_customer(db, name="Other")
    own = MessageTemplate("Welcome to {{ plan_name }}", f"Hello. {LINKS}", f"<p>{LINKS}</p>")
    with db.write() as tx:
        keep = partial(set_template, tx, customer.account_id, now=NOW)
        assert keep(subject=own.subject, text=own.text, html=own.html) == own
        assert get_template(tx, customer.account_id) == own
        assert get_template(tx, other.account_id) == MessageTemplate()
        changed = keep(subject="{{ plan_name | upper }}")
        assert (render(changed, SAMPLE_VALUES).subject, changed.text) == ("GOLD", own.text)
        assert keep(subject=None, text=None, html=None) == MessageTemplate()
        assert get_template(tx, customer.account_id) == MessageTemplate()


def test_a_text_without_html_is_a_mail_of_text_alone_and_html_needs_a_text(db: Database) -> None:
    assert render(MessageTemplate(text=LINKS), SAMPLE_VALUES).html is None
    [fault] = faults_of(db, make_customer(db), html=LINKS)
    assert (fault.field, fault.code) == ("text", "required")


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("{{ member_name }}" + LINKS, "not_allowed"),
        ("{% for x in plan_name %}x{% endfor %}" + LINKS, "not_allowed"),
        ("{{ plan_name.__class__ }}" + LINKS, "not_allowed"),
        ("{{ range(10) }}" + LINKS, "not_allowed"),
        ("{{ plan_name * 1000000000 }}" + LINKS, "not_allowed"),
        ("{{ plan_name ~ plan_name }}" + LINKS, "not_allowed"),
        ("{{ plan_name | safe }}" + LINKS, "not_allowed"),
        ("{{ plan_name | title(1) }}" + LINKS, "not_allowed"),
        ("{% if 1 < plan_name %}x{% endif %}" + LINKS, "not_allowed"),
        ("{% set plan_name = 'x' %}" + LINKS, "not_allowed"),
        ("{% include 'invitation.txt' %}" + LINKS, "not_allowed"),
        ("{% macro x() %}{% endmacro %}" + LINKS, "not_allowed"),
        ("{{ plan_name", "malformed_template"),
        ("{% nonsense %}", "malformed_template"),
        ("{% if plan_name %}" * 200 + LINKS + "{% endif %}" * 200, "malformed_template"),
        ("{{ " + "(" * 9000 + "plan_name" + ")" * 9000 + " }}" + LINKS, "malformed_template"),
        ("Hello", "link_missing"),
        ("{{ registration_link | upper }} {{ unsubscribe_link }}", "link_missing"),
        ("{% if not plan_name %}" + LINKS + "{% endif %}", "link_missing"),
        ("a\0b" + LINKS, "control_character"),
        ("x" * 100_001, "too_long"),
    ],
)
def test_a_hostile_template_is_refused(source: str, code: str) -> None:
    faults = list(find_template_faults("text", source))
    assert {fault.code for fault in faults} == {code}
    assert {fault.field for fault in faults} == {"text"}


def test_conditions_and_comparisons_of_names_are_welcome() -> None:
    source = (
        "{% if sender_name and plan_name != 'x' and 'a' not in plan_name %}From {{ sender_name "
        "}}.{% else %}.{% endif %}"
    )
    assert list(find_template_faults("text", source + LINKS)) == []
    assert render(MessageTemplate(text=source), SAMPLE_VALUES).text == "From Example Health."


def test_a_subject_is_one_line_and_not_blank(db: Database) -> None:
    customer = make_customer(db)
    for source, code in [
        ("a\nb", "control_character"),
        ("{{ '' }}", "required"),
        ("x" * 256, "too_long"),
    ]:
        assert [fault.code for fault in faults_of(db, customer, subject=source)] == [code]
