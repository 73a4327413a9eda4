"""Every customer route on one screen: method, path, handler, scope (None: no token), and which bodies are JSON."""

from frontdesk.access.model import Scope
from frontdesk.api import eligibility, eligibility_files, health, invitees, oauth, plans, reference
from frontdesk.web.endpoint import Endpoint

PLAN = "/v2/plans/{plan_id}"
FILE = PLAN + "/eligibility-files/{file_id}"

# fmt: off
_DESCRIBED: tuple[Endpoint, ...] = (
    Endpoint("POST",  PLAN + "/eligibility", eligibility.post,    Scope.ELIGIBILITY_WRITE, takes_json=True),
    Endpoint("POST",  PLAN + "/eligibility-files", eligibility_files.post, Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   FILE,                  eligibility_files.show,   Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   FILE + "/report",      eligibility_files.report, Scope.ELIGIBILITY_WRITE, serves_json=False),
    Endpoint("POST",  FILE + "/approve",     eligibility_files.approve, Scope.ELIGIBILITY_WRITE),
    Endpoint("POST",  FILE + "/cancel",      eligibility_files.cancel,  Scope.ELIGIBILITY_WRITE),
    Endpoint("POST",  FILE + "/undo",        eligibility_files.undo,    Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   "/v2/plans",           plans.list_,         Scope.PLANS_READ),
    Endpoint("GET",   PLAN,                  plans.show,          Scope.PLANS_READ),
    Endpoint("PATCH", PLAN,                  plans.change,        Scope.PLANS_WRITE, takes_json=True),
    Endpoint("POST",  "/oauth/token",        oauth.issue,         None),
    Endpoint("POST",  "/oauth/revoke",       oauth.revoke,        None),
    Endpoint("GET",   "/docs",               reference.page,      None, serves_json=False),
    Endpoint("GET",   "/docs/{asset}",       reference.asset,     None, serves_json=False),
    Endpoint("GET",   "/problems",           reference.problems,  None, serves_json=False),
    Endpoint("GET",   "/healthz",            health.alive,        None),
    Endpoint("GET",   "/readyz",             health.ready,        None),
    Endpoint("GET",   "/metrics",            health.metrics,      Scope.OPERATOR, serves_json=False),
)
ENDPOINTS = (*_DESCRIBED, reference.openapi_endpoint(_DESCRIBED))

# Pages for invited people. They are not in the OpenAPI document.
PAGES: tuple[Endpoint, ...] = (
    Endpoint("GET",   "/register/{token}",    invitees.register,           None, serves_json=False),
    Endpoint("GET",   "/unsubscribe/{token}", invitees.ask_to_unsubscribe, None, serves_json=False),
    Endpoint("POST",  "/unsubscribe/{token}", invitees.unsubscribe,        None, serves_json=False),
)
# fmt: on
