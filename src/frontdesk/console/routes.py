"""Every page of the console. What is not here is "not found"."""

from frontdesk.console import home, me, now, people, sign_in

PLACES = (sign_in.PAGES, me.PAGES, people.PAGES, now.PAGES, home.PAGES)
ENDPOINTS = tuple(endpoint for place in PLACES for endpoint in place.endpoints)
