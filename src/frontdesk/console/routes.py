"""Every page of the console. What is not here is "not found"."""

from frontdesk.console import (
    account,
    clients,
    file,
    file_rows,
    files,
    home,
    looks,
    me,
    now,
    people,
    sign_in,
    users,
    users_invited,
    webhooks,
)
from frontdesk.console.door import pages_of_forms

PLACES = (
    *(sign_in.PAGES, me.PAGES),
    *(files.PAGES, file.PAGES, file_rows.PAGES),
    *(people.PAGES, now.PAGES),
    *(account.PAGES, clients.PAGES, webhooks.PAGES, looks.PAGES),
    *(users.PAGES, users_invited.PAGES),
    home.PAGES,
)
_DECLARED = tuple(endpoint for place in PLACES for endpoint in place.endpoints)
ENDPOINTS = (*_DECLARED, *pages_of_forms(_DECLARED))
