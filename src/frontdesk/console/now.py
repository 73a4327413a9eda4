"""Now: how long the wait is at present, plan by plan, and what became of the promises of the last day.

All viewers of a process share a board (`App.queue_board`) and its markup. A refresh gets the parts of
the page that may have changed, without their frame; 304 where they have not.
"""

import hashlib
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from markupsafe import Markup

from frontdesk.app import App
from frontdesk.console import frame
from frontdesk.console.door import REFRESH_HEADER, Pages
from frontdesk.console.live import AS_OF
from frontdesk.console.now_words import (
    GroupWords,
    chart_of,
    describe_day,
    describe_group,
    describe_plan,
    hours_of,
)
from frontdesk.console.visit import Visit
from frontdesk.errors import NotFound
from frontdesk.queues.board import GroupBoard, PlanBoard, PlanDay, QueueBoard
from frontdesk.text import isolated
from frontdesk.users.model import Right
from frontdesk.web.chart import draw
from frontdesk.web.page import HTML, page_template
from frontdesk.web.response import NO_STORE, Header, Response

PAGES = Pages()

_TAG_LETTERS = 16


class Region(NamedTuple):
    """A part of a page that is refreshed. Viewers share it, so it has no value of a session. `tag`
    changes with it.
    """

    markup: Markup
    tag: str


@PAGES.get("/console/accounts/{account_id}/now", for_=Right.FILES_READ)
async def show_board(visit: Visit) -> Response:
    """Show the wait of each plan of the account, and how well the last hour's waits were estimated."""
    board = await visit.app.queue_board(visit.reach)
    account_id = visit.account

    def render() -> str:
        groups = [describe_group(group, board) for group in board.groups]
        return _groups(groups, account_id)

    region = _region(visit.app, ("board", account_id), board, render)
    return _answer(visit, "Now", "now/board.html", board, region)


@PAGES.get("/console/accounts/{account_id}/now/{plan_id}", for_=Right.FILES_READ)
async def show_plan(visit: Visit) -> Response:
    """Show a plan's wait now and in the last 24 hours: what was promised, and what came."""
    plan_id = visit.id_of("plan_id", of="plan")
    day = await visit.app.queue_day(visit.reach, plan_id)
    board = await visit.app.queue_board(visit.reach)
    group, of_plan = _find(board, plan_id)
    zone = frame.times_of(visit).zone
    # The board changes every few seconds, the day once a minute: a chart is drawn once for both.
    now = _region(visit.app, ("plan", plan_id), board, lambda: _present(board, group, of_plan))
    past = _region(visit.app, ("day", plan_id, str(zone)), day, lambda: _day(visit, day))
    region = Region(now.markup + past.markup, now.tag + past.tag)
    title = f"{isolated(day.plan.name)}: the wait"
    return _answer(visit, title, "now/plan.html", board, region, plan_name=day.plan.name)


def _find(board: QueueBoard, plan_id: int) -> tuple[GroupBoard, PlanBoard]:
    """Raises NotFound for a plan that was made since the board was read."""
    for group in board.groups:
        for of_plan in group.plans:
            if of_plan.plan.id == plan_id:
                return group, of_plan
    raise NotFound("plan")


def _present(board: QueueBoard, group: GroupBoard, of_plan: PlanBoard) -> str:
    return page_template(frame.PACKAGE, "now/present.html").render(
        group=describe_group(group, board), plan=describe_plan(of_plan)
    )


def _groups(groups: list[GroupWords], account_id: int) -> str:
    nobody_waits = not any(plan.waiting for group in groups for plan in group.plans)
    return page_template(frame.PACKAGE, "now/groups.html").render(
        groups=groups, account_id=account_id, nobody_waits=nobody_waits
    )


def _day(visit: Visit, day: PlanDay) -> str:
    times = frame.times_of(visit)
    return page_template(frame.PACKAGE, "now/day.html").render(
        chart=draw(chart_of(day, times.zone)),
        summary=describe_day(day),
        hours=hours_of(day, times.zone),
        times=times,
    )


def _region(app: App, key: Hashable, source: object, render: Callable[[], str]) -> Region:
    """What `render` makes of the source, made once for all viewers while the source is the same."""

    def make() -> Region:
        text = render()
        digest = hashlib.sha256(text.encode()).hexdigest()[:_TAG_LETTERS]
        return Region(Markup(text), digest)  # noqa: S704 # rendered with autoescape

    return app.regions.get(key, source, make)


def _answer(
    visit: Visit, title: str, template: str, board: QueueBoard, region: Region, **values: Any
) -> Response:
    """The page; to a refresh its region alone, or 304."""
    as_of = frame.times_of(visit).clock_text(board.as_of)
    tag = f'"{region.tag}"'.encode()
    headers: tuple[Header, ...] = ((b"etag", tag), (AS_OF, as_of.encode()))
    if visit.request.header(REFRESH_HEADER) is None:
        return frame.show(
            visit, title, template, headers=headers, as_of=as_of, region=region.markup, **values
        )
    headers = (*headers, NO_STORE)
    if visit.request.knows(tag):
        return Response(304, b"", headers)
    return Response(200, region.markup.encode(), headers, HTML)
