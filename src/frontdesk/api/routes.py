"""Every customer route on one screen: method, path, handler, scope (without one: no token is asked for, or any will do).

A handler's name is the operation's id in the OpenAPI document; its docstring says the rest (`openapi`).
"""

from frontdesk.access.model import Scope
from frontdesk.api import (
    eligibility,
    events,
    health,
    invitees,
    mappings,
    me,
    members,
    oauth,
    plans,
    reference,
    webhooks,
)
from frontdesk.api import eligibility_files as files
from frontdesk.api.openapi import operation
from frontdesk.web.endpoint import Endpoint

PLAN = "/v2/plans/{plan_id}"
MEMBERS = PLAN + "/eligibility"
MEMBER = MEMBERS + "/{eligibility_id}"
FILES = PLAN + "/eligibility-files"
FILE = FILES + "/{file_id}"
MAPPINGS = "/v2/eligibility-mappings"
MAPPING = MAPPINGS + "/{mapping_name}"
WEBHOOKS = "/v2/webhook-endpoints"
WEBHOOK = WEBHOOKS + "/{endpoint_id}"
_WEBHOOKS = Scope.WEBHOOKS_MANAGE
_MEMBERS = Scope.ELIGIBILITY_WRITE
_READ = Scope.ELIGIBILITY_READ

_OPERATIONS = (
    operation("POST", MEMBERS, eligibility.enrol_member, _MEMBERS),
    operation("GET", MEMBERS, members.list_eligible_members, _READ),
    # Before MEMBER: the first path that fits counts.
    operation("POST", MEMBERS + "/batch", eligibility.enrol_members, _MEMBERS),
    operation("GET", MEMBER, members.show_eligible_member, _READ),
    operation("GET", MEMBER + "/history", members.list_eligible_member_history, _READ),
    operation("POST", MEMBER + "/end", eligibility.end_member, _MEMBERS),
    operation("POST", MEMBER + "/rename", eligibility.rename_member, _MEMBERS),
    operation("GET", "/v2/eligibility", members.find_eligible_members, _READ),
    operation("POST", FILES, files.upload_eligibility_file, _MEMBERS),
    operation("GET", FILES, files.list_eligibility_files_of_plan, _MEMBERS),
    operation("GET", "/v2/eligibility-files", files.list_eligibility_files, _MEMBERS),
    operation("GET", FILE, files.show_eligibility_file, _MEMBERS),
    operation("GET", FILE + "/report", files.report_eligibility_file, _MEMBERS),
    operation("POST", FILE + "/approve", files.approve_eligibility_file, _MEMBERS),
    operation("POST", FILE + "/mapping", files.accept_eligibility_file_mapping, _MEMBERS),
    operation("POST", FILE + "/cancel", files.cancel_eligibility_file, _MEMBERS),
    operation("POST", FILE + "/undo", files.undo_eligibility_file, _MEMBERS),
    operation("GET", MAPPINGS, mappings.list_eligibility_mappings, _MEMBERS),
    operation("GET", MAPPING, mappings.show_eligibility_mapping, _MEMBERS),
    operation("PUT", MAPPING, mappings.save_eligibility_mapping, _MEMBERS),
    operation("DELETE", MAPPING, mappings.delete_eligibility_mapping, _MEMBERS),
    operation("GET", "/v2/me", me.show_caller, any_scope=True),
    operation("GET", "/v2/events", events.list_events, Scope.EVENTS_READ),
    operation("GET", WEBHOOKS, webhooks.list_webhook_endpoints, _WEBHOOKS),
    operation("POST", WEBHOOKS, webhooks.create_webhook_endpoint, _WEBHOOKS),
    operation("GET", WEBHOOK, webhooks.show_webhook_endpoint, _WEBHOOKS),
    operation("PATCH", WEBHOOK, webhooks.change_webhook_endpoint, _WEBHOOKS),
    operation("DELETE", WEBHOOK, webhooks.delete_webhook_endpoint, _WEBHOOKS),
    operation("POST", WEBHOOK + "/rotate", webhooks.rotate_webhook_secret, _WEBHOOKS),
    operation("POST", WEBHOOK + "/test", webhooks.test_webhook_endpoint, _WEBHOOKS),
    operation("POST", WEBHOOK + "/replay", webhooks.replay_webhook_endpoint, _WEBHOOKS),
    operation("GET", "/v2/plans", plans.list_plans, Scope.PLANS_READ),
    operation("GET", PLAN, plans.show_plan, Scope.PLANS_READ),
    operation("PATCH", PLAN, plans.change_plan, Scope.PLANS_WRITE),
    operation("POST", "/oauth/token", oauth.issue_token),
    operation("POST", "/oauth/revoke", oauth.revoke_token),
    operation("GET", "/healthz", health.is_alive),
    operation("GET", "/readyz", health.is_ready),
    operation("GET", "/metrics", health.metrics, Scope.OPERATOR, outlives_database=True),
)
ENDPOINTS = reference.Documentation(_OPERATIONS).operations
ENTRANCE = (Endpoint("GET", "/", reference.entrance, None, serves_json=False),)

# Pages for invited people. They are not in the OpenAPI document.
PAGES = (
    Endpoint("GET", "/register/{token}", invitees.register, None, serves_json=False),
    Endpoint("GET", "/unsubscribe/{token}", invitees.ask_to_unsubscribe, None, serves_json=False),
    Endpoint("POST", "/unsubscribe/{token}", invitees.unsubscribe, None, serves_json=False),
)
