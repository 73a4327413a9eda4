"""Every route of the operator's interface on one screen: method, path, handler, scope."""

from frontdesk.access.model import Scope
from frontdesk.operator import email_events, mailbox, personal_data, queues
from frontdesk.web.endpoint import Endpoint

# The mailbox's pages check the token themselves, because a browser on a developer's own machine needs none. A mail provider
# proves itself by the token in the path and its signature.
# fmt: off
ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint("POST",  "/operator/v1/queue-events",           queues.post, Scope.OPERATOR, takes_json=True),
    Endpoint("POST",  "/operator/v1/email-events",           email_events.receive, Scope.OPERATOR, takes_json=True),
    Endpoint("POST",  "/operator/v1/email-events/{provider}/{token}",
             email_events.receive_from_provider, None, serves_json=False),
    Endpoint("GET",   "/operator/v1/plans/{plan_id}/queue",  queues.show, Scope.OPERATOR),
    Endpoint("DELETE", "/operator/v1/members/{member_id}",       personal_data.erase, Scope.OPERATOR),
    Endpoint("GET",   "/operator/v1/members/{member_id}/export", personal_data.export, Scope.OPERATOR),
    Endpoint("GET",   "/sandbox/mailbox",                    mailbox.list_, None, serves_json=False),
    Endpoint("GET",   "/sandbox/mailbox/{message_id}",       mailbox.show,  None, serves_json=False),
    Endpoint("GET",   "/sandbox/mailbox/{message_id}/html",  mailbox.html,  None, serves_json=False),
)
# fmt: on
