"""Every page of the console. What is not here is "not found"."""

from frontdesk.console import file, file_rows, files, home, me, now, people, sign_in, system, trail
from frontdesk.console.door import pages_of_forms

PLACES = (
    *(sign_in.PAGES, me.PAGES),
    *(files.PAGES, file.PAGES, file_rows.PAGES),
    *(people.PAGES, now.PAGES),
    *(system.PAGES, trail.PAGES),
    home.PAGES,
)
_DECLARED = tuple(endpoint for place in PLACES for endpoint in place.endpoints)
ENDPOINTS = (*_DECLARED, *pages_of_forms(_DECLARED))
