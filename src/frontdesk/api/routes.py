"""Every customer route on one screen: method, path, handler, scope (None: no token), and which bodies are JSON.

A handler's name is the operation's id in the OpenAPI document, its docstring the summary and description.
"""

from dataclasses import replace

from frontdesk.access.model import Scope
from frontdesk.api import (
    eligibility,
    eligibility_files,
    file_lists,
    file_reports,
    health,
    invitees,
    mappings,
    oauth,
    plans,
    reference,
)
from frontdesk.api.openapi_operations import query_names
from frontdesk.web.endpoint import Endpoint

PLAN = "/v2/plans/{plan_id}"
FILES = PLAN + "/eligibility-files"
ALL_FILES = "/v2/eligibility-files"
FILE = FILES + "/{file_id}"
MAPPINGS = "/v2/eligibility-mappings"
MAPPING = MAPPINGS + "/{mapping_name}"

# fmt: off
_ROUTES: tuple[Endpoint, ...] = (
    Endpoint("POST",  PLAN + "/eligibility", eligibility.enrol_member, Scope.ELIGIBILITY_WRITE, takes_json=True),
    Endpoint("POST",  FILES,             eligibility_files.upload_eligibility_file, Scope.ELIGIBILITY_WRITE, strict_query=True),
    Endpoint("GET",   FILES,             file_lists.list_eligibility_files_of_plan, Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   ALL_FILES,         file_lists.list_eligibility_files, Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   FILE,              eligibility_files.show_eligibility_file,   Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   FILE + "/report",  file_reports.report_eligibility_file, Scope.ELIGIBILITY_WRITE, serves_json=False),
    Endpoint("POST",  FILE + "/approve", eligibility_files.approve_eligibility_file, Scope.ELIGIBILITY_WRITE),
    Endpoint("POST",  FILE + "/mapping", eligibility_files.accept_eligibility_file_mapping, Scope.ELIGIBILITY_WRITE,
             takes_json=True, strict_query=True),
    Endpoint("POST",  FILE + "/cancel",  eligibility_files.cancel_eligibility_file, Scope.ELIGIBILITY_WRITE),
    Endpoint("POST",  FILE + "/undo",    eligibility_files.undo_eligibility_file,   Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   MAPPINGS,          mappings.list_eligibility_mappings, Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   MAPPING,           mappings.show_eligibility_mapping, Scope.ELIGIBILITY_WRITE),
    Endpoint("PUT",   MAPPING,           mappings.save_eligibility_mapping, Scope.ELIGIBILITY_WRITE, takes_json=True,
             strict_query=True),
    Endpoint("DELETE", MAPPING,          mappings.delete_eligibility_mapping, Scope.ELIGIBILITY_WRITE),
    Endpoint("GET",   "/v2/plans",       plans.list_plans,          Scope.PLANS_READ),
    Endpoint("GET",   PLAN,              plans.show_plan,           Scope.PLANS_READ),
    Endpoint("PATCH", PLAN,              plans.change_plan,         Scope.PLANS_WRITE, takes_json=True),
    Endpoint("POST",  "/oauth/token",    oauth.issue_token,         None),
    Endpoint("POST",  "/oauth/revoke",   oauth.revoke_token,        None),
    Endpoint("GET",   "/docs",           reference.reference_page,  None, serves_json=False),
    Endpoint("GET",   "/docs/{asset}",   reference.reference_file,  None, serves_json=False),
    Endpoint("GET",   "/problems",       reference.list_problems,   None, serves_json=False),
    Endpoint("GET",   "/healthz",        health.is_alive,           None),
    Endpoint("GET",   "/readyz",         health.is_ready,           None),
    Endpoint("GET",   "/metrics",        health.metrics,            Scope.OPERATOR, serves_json=False, outlives_database=True),
)
# A misspelt parameter of /v2 is told; one of an upload or a mapping may be a `dry_run` or a `default`, so it is refused.
_DESCRIBED = tuple(
    replace(endpoint, query=query_names(endpoint)) if endpoint.path.startswith("/v2/") else endpoint for endpoint in _ROUTES
)
ENDPOINTS = (*_DESCRIBED, reference.openapi_endpoint(_DESCRIBED))
ENTRANCE = (Endpoint("GET",   "/",                 reference.entrance,  None, serves_json=False),)

# Pages for invited people. They are not in the OpenAPI document.
PAGES: tuple[Endpoint, ...] = (
    Endpoint("GET",   "/register/{token}",    invitees.register,           None, serves_json=False),
    Endpoint("GET",   "/unsubscribe/{token}", invitees.ask_to_unsubscribe, None, serves_json=False),
    Endpoint("POST",  "/unsubscribe/{token}", invitees.unsubscribe,        None, serves_json=False),
)
# fmt: on
