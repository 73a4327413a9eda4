"""The feed of events: what has happened to the account's members (docs/interface.md, Events)."""

from urllib.parse import urlencode

from frontdesk import audit, events
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.events.model import EVENTS_PER_PAGE, FEED_START, AccountEventType, Event, EventPlace
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response, json_response

SEARCHED = 1000  # events that a page of one type looks at


async def list_events(app: App, request: Request) -> Response:
    """List the account's events. Answers a page of them, the oldest first; `links.next` has the next page while more events
    follow. Ask again later with the `id` of the last event that you have: no event is left out, and none comes twice. The
    first request begins the feed; earlier changes are not in it. Events are kept for 30 days.

    Parameters: event_type event_page_size event_page_after
    200 Events: The events, the oldest first.
    Faults: not_allowed repeated
    """
    query, account_id, requester = request.parameters, request.account_id, requester_of(app, request)

    def begin(tx: Tx) -> None:
        if events.begin_feed(tx, account_id, requester.now):
            audit.record_action(tx, requester, "events.begun", account_id)

    if not await app.ask(lambda tx: events.has_feed(tx, account_id)):
        await app.write(begin)
    wanted, size = query.get("type"), query.get("page[size]", EVENTS_PER_PAGE)
    start = EventPlace.parse(query["page[after]"]) if "page[after]" in query else FEED_START
    limit = SEARCHED if wanted else size
    after = start or FEED_START
    found = await app.ask(lambda tx: events.list_events(tx, account_id, after=after, limit=limit + 1))
    page, last = _page(found, None if wanted is None else AccountEventType(wanted), size=size, limit=limit)
    links = {"self": app.config.base_url + request.target}
    if last is not None:
        following = query | {"page[size]": size, "page[after]": last.event_id}
        links["next"] = f"{app.config.base_url}{request.path}?{urlencode(following)}"
    return json_response({"links": links, "data": [event.serialize() for event in page]})


def _page(
    found: list[Event], wanted: AccountEventType | None, *, size: int, limit: int
) -> tuple[list[Event], EventPlace | None]:
    """The events of the page, and the place after which the next one starts; None if no event follows."""
    page: list[Event] = []
    for event in found[:limit]:
        if len(page) == size:
            return page, page[-1].place
        if wanted in (None, event.type):
            page.append(event)
    return page, found[limit - 1].place if len(found) > limit else None
