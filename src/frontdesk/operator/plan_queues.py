"""GET of a plan's queue, for operators: what its customer is told now, with the interval (docs/operator.md)."""

import orjson

from frontdesk.app import App
from frontdesk.plans import get_plan
from frontdesk.web.request import Request
from frontdesk.web.response import Response


async def show(app: App, request: Request) -> Response:
    """`GET /operator/v1/plans/:plan_id/queue`: a plan of any account.

    `queue_info` and `queue_interval` are absent while no values can be had. Raises NotFound and Unavailable.
    """
    plan_id = request.path_id("plan_id")
    plan = await app.read_in_thread(lambda: app.db.ask(lambda tx: get_plan(tx, None, plan_id)))
    snapshot = await app.queue_snapshot(plan.account_id, [plan_id])
    body: dict[str, object] = {"plan_id": plan_id, "account_id": plan.account_id}
    if snapshot is not None and plan_id in snapshot.queues:
        body["queue_info"] = snapshot.serialize(plan_id)
        body["queue_interval"] = snapshot.serialize_interval(plan_id)
    return Response(200, orjson.dumps(body), ((b"cache-control", b"no-store"),))
