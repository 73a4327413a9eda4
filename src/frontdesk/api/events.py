"""The feed of events: what has happened to the account's members (docs/interface.md, Events)."""

from frontdesk import audit, codes, events
from frontdesk.access.model import Scope
from frontdesk.api.envelope import enveloped_page
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.codes import Kind
from frontdesk.db import Tx
from frontdesk.events.cursors import check_place
from frontdesk.events.model import EVENTS_PER_PAGE, FEED_START, Event, EventPlace
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import EVENT_PAGE_AFTER, EVENT_PAGE_SIZE
from frontdesk.interface.types import events as types
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request
from frontdesk.web.response import Response

GROUP = Group("Events", "What has happened, for programs that keep a copy.")


@GROUP.get(
    Path.EVENTS,
    scope=Scope.EVENTS_READ,
    is_bulk=True,
    parameters=[EVENT_PAGE_SIZE, EVENT_PAGE_AFTER],
    answers={200: Answer("The events, the oldest first.", types.Events)},
    problems=[Kind.GONE],
    faults=[
        codes.faults.NOT_ALLOWED,
        codes.faults.REPEATED,
        codes.faults.CURSOR_TOO_OLD,
        codes.faults.CURSOR_UNKNOWN,
    ],
)
async def list_events(app: App, request: Request) -> Response:
    """List the account's events.

    Answers a page of them, the oldest first; `links.next` has the next page while more events
    follow. Ask again later with the `id` of the last event that you have: no event is left out, and
    none comes twice. The first request begins the feed; earlier changes are not in it. Events are
    kept for 30 days, and the newest one for longer. A place whose next event is deleted, and one
    that the feed never had, is answered with 410: read the members anew then, and the feed from its
    start.
    """
    query = request.parameters
    account_id = request.account_id
    requester = requester_of(app, request)

    def begin(tx: Tx) -> None:
        if events.begin_feed(tx, account_id, requester.now):
            audit.record_action(tx, requester, "events.begun", account_id)

    if not await app.ask(lambda tx: events.has_feed(tx, account_id)):
        await app.write(begin)
    size = query.get("page[size]", EVENTS_PER_PAGE)
    after = EventPlace.parse(query["page[after]"]) if "page[after]" in query else FEED_START

    def read(tx: Tx) -> list[Event]:
        if after != FEED_START:
            check_place(tx, account_id, after, field="page[after]")
        return events.list_events(tx, account_id, after=after, limit=size + 1)

    found = await app.ask_much(read)
    shown = [present.event(event) for event in found[:size]]
    after_id = shown[-1]["id"] if len(found) > size else None
    return await enveloped_page(app, request, shown, size=size, after=after_id)
