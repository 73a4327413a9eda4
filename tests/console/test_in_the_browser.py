"""What a browser keeps and shows of the console by itself (docs/security.md, ASVS 3.7, 6.2, 7.4 and
14.3).
"""

import re

from frontdesk.console.assets import SCRIPT_PATH
from frontdesk.users.model import Role
from tests.console.browsing import Browser
from tests.console.conftest import SignIn
from tests.factories import Customer


def inputs_of(browser: Browser) -> list[str]:
    return re.findall(r"<input [^>]*>", browser.page)


def test_passwords_are_masked_and_come_from_password_managers(sign_in: SignIn) -> None:
    browser = sign_in(Role.VIEWER).open("/console/me")
    fields = [
        each for each in inputs_of(browser) if 'name="present"' in each or 'name="new"' in each
    ]
    browser.open("/console/me").send("/console/sign-out")
    fields += [each for each in inputs_of(browser.open("/console/sign-in")) if '"password"' in each]
    assert len(fields) == 3
    for each in fields:
        assert 'type="password"' in each
        assert re.search(r'autocomplete="(current|new)-password"', each), each


def test_the_script_stores_nothing_and_hinders_no_paste(sign_in: SignIn) -> None:
    script = sign_in(Role.VIEWER).open(SCRIPT_PATH).page
    assert "fetch(" in script
    for word in ("localStorage", "sessionStorage", "indexedDB", "document.cookie", "paste"):
        assert word not in script


def test_each_page_has_the_way_out(sign_in: SignIn, customer: Customer) -> None:
    browser = sign_in(Role.EDITOR)
    for path in ("files", "people", "now", "files/999999"):
        browser.open(f"/console/accounts/{customer.account_id}/{path}")
        assert browser.form("/console/sign-out"), path
    assert browser.open("/console/me").form("/console/sign-out")
