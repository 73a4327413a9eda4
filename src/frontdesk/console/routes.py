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
    person_change,
    sign_in,
    system,
    trail,
    upload_columns,
    upload_dry_run,
    upload_plan,
    uploads,
    users,
    users_invited,
    webhooks,
)
from frontdesk.console.door import pages_of_forms

PLACES = (
    *(sign_in.PAGES, me.PAGES),
    *(files.PAGES, file.PAGES, file_rows.PAGES),
    *(uploads.PAGES, upload_plan.PAGES, upload_columns.PAGES, upload_dry_run.PAGES),
    *(people.PAGES, person_change.PAGES, now.PAGES),
    *(account.PAGES, clients.PAGES, webhooks.PAGES, looks.PAGES),
    *(users.PAGES, users_invited.PAGES),
    *(system.PAGES, trail.PAGES),
    home.PAGES,
)
_DECLARED = tuple(endpoint for place in PLACES for endpoint in place.endpoints)
ENDPOINTS = (*_DECLARED, *pages_of_forms(_DECLARED))
