"""The schemas of the OpenAPI document: true of what is accepted and of what is answered.

The eligible member's is made from the one table of fields. Bodies stay open to unknown fields, for the service ignores them.
"""

from typing import Any

from frontdesk.access.model import Scope
from frontdesk.eligibility.fields import FIELDS, REQUIRED, Field
from frontdesk.eligibility.model import ANSWERED, FAULT_CODES
from frontdesk.plans.patch import DESCRIPTION_LENGTH, NAME_LENGTH
from frontdesk.web.problems import PROBLEMS

Schema = dict[str, Any]

# The error codes of /oauth (RFC 6749, section 5.2, and one of ours), with the status of each.
OAUTH_ERRORS = {
    "invalid_request": (400, "A parameter is missing, repeated or unreadable, or the client authenticates in two ways."),
    "invalid_scope": (400, "The client does not have every scope that was asked for."),
    "unsupported_grant_type": (400, "Only client_credentials is supported."),
    "invalid_client": (401, "The client is unknown, its secret is wrong, or it did not authenticate."),
    "rate_limited": (429, "Too many failed attempts by this client or from this address."),
}  # fmt: skip

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "integer"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_BLANK = r"^\s*$"
_NOT_BLANK = r"\S"


def schemas() -> dict[str, Schema]:
    """Every named schema of the document."""
    return _plan_schemas() | _member_schemas() | _oauth_schemas() | _other_schemas()


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(
    properties: dict[str, Schema], *, optional: tuple[str, ...] = (), description: str = ""
) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required} | (
        {"description": description} if description else {}
    )


def _said(schema: Schema, description: str) -> Schema:
    return schema | {"description": description}


def _plan_schemas() -> dict[str, Schema]:
    plan = {
        "id": _said(_NUMBER, "Primary identifier of the plan in the service."),
        "type": {"const": "plans"},
        "external_id": _said(_TEXT, "Identifier of the plan outside the service."),
        "name": _TEXT,
        "description": _TEXT_OR_NULL,
        "active": {
            "type": "boolean",
            "description": "Whether the plan is accepting patients; not the same as `queue_info.is_active`.",
        },
        "created_at": _TIME,
        "provider_group": ref("ProviderGroup"),
        "queue_info": ref("PlanQueueInfo"),
    }
    group = {
        "id": _said(_NUMBER, "Primary identifier."),
        "type": {"const": "provider_groups"},
        "name": _TEXT,
        "external_id": _TEXT_OR_NULL,
        "created_at": _TIME,
    }
    links = {
        "self": _said(_TEXT, "The request's address."),
        "next": _said(_TEXT, "The next page, if `page[size]` was given and there are more plans."),
    }
    return {
        "Plans": _object(
            {"links": _object(links, optional=("next",)), "data": {"type": "array", "items": ref("Plan")}}
        ),
        "Plan": _object(plan, optional=("queue_info",), description="`queue_info` comes with reads only."),
        "ProviderGroup": _object(group),
        "PlanQueueInfo": _queue_schema(),
        "PlanQueueInfoCacheInfo": _object(
            {
                "ttl": {
                    **_NUMBER,
                    "minimum": 0,
                    "description": "How long the values are served, in seconds.",
                },
                "expires_at": _said(_TIME, "When they are taken anew."),
            }
        ),
        "PlanPatch": _plan_patch(),
    }


def _queue_schema() -> Schema:
    wait = (
        "Seconds until a patient who joins now reaches a doctor; -1 when no doctor is on duty for the plan."
    )
    queue: dict[str, Schema] = {
        "estimated_wait_time": {**_NUMBER, "minimum": -1, "description": wait},
        "queue_length": {**_NUMBER, "minimum": 0, "description": "Patients waiting in this plan's queue."},
        "is_active": {"type": "boolean", "description": "Whether a doctor is on duty for the plan now."},
        "cache_info": ref("PlanQueueInfoCacheInfo"),
    }
    return _object(queue, optional=("cache_info",), description="All values are of one moment.")


def _plan_patch() -> Schema:
    name = {**_TEXT, "maxLength": NAME_LENGTH, "pattern": _NOT_BLANK}
    return {
        "type": "object",
        "description": "Absent fields keep their values; `{}` changes nothing. The plan's other fields may be echoed, but a "
        "different `id`, `type`, `active` or `created_at` is the fault `read_only`.",
        "properties": {
            "name": name,
            "description": {
                **_TEXT_OR_NULL,
                "maxLength": DESCRIPTION_LENGTH,
                "description": "null or blank clears it.",
            },
            "external_id": _said(name, "Unique among the account's plans."),
        },
    }


def _member_schemas() -> dict[str, Schema]:
    properties = {field.name: _member_property(field) for field in FIELDS.values()}
    required = ", ".join(f"`{name}`" for name in REQUIRED)
    answered: dict[str, Schema] = dict.fromkeys(ANSWERED, _TEXT) | {
        "id": _said(_NUMBER, "Identifier of the member record."),
        "dob": {"type": "string", "format": "date"},
        "gender": {"type": "string", "enum": ["male", "female", "other", "unknown"]},
        "metadata": {"type": "object", "additionalProperties": _TEXT},
    }
    return {
        "EligibleMember": {
            "type": "object",
            "description": f"A new member needs {required}. An update needs `external_id` only: absent fields keep their "
            "values, and null or blank clears an optional one. Text is trimmed and must not hold control characters.",
            "properties": properties,
            "required": ["external_id"],
        },
        "Eligibility": _object(answered, description="These nine fields, and no others."),
    }


def _member_property(field: Field) -> Schema:
    """The field's schema, widened by what every field is allowed: spaces around text, null and blank where that clears."""
    schema = dict(field.kind.schema)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if "pattern" in schema:
        again = "" if field.required else "?"
        schema["pattern"] = rf"^\s*(?:{schema['pattern'][1:-1]}){again}\s*$"
    elif field.required:
        schema["pattern"] = _NOT_BLANK
    elif "string" not in types:
        schema["pattern"] = _BLANK
    if not field.required:
        schema["type"] = [*types, "null"] if "string" in types else [*types, "string", "null"]
    note = "Required for a new member; never null or blank." if field.required else "null or blank clears it."
    return schema | {"description": f"{field.description} {note}", "examples": [field.example]}


def _oauth_schemas() -> dict[str, Schema]:
    client = {
        "client_id": _said(_TEXT_OR_NULL, "Left out with HTTP Basic."),
        "client_secret": _said(_TEXT_OR_NULL, "Left out with HTTP Basic."),
    }
    scope = f"Some of the client's scopes, separated by spaces; without it, all. Scopes: {', '.join(Scope)}."
    return {
        "TokenRequest": _object(
            {
                "grant_type": {"const": "client_credentials"},
                **client,
                "scope": _said(_TEXT_OR_NULL, scope),
            },
            optional=("client_id", "client_secret", "scope"),
        ),
        "Token": _object(
            {
                "access_token": _said(_TEXT, "Sent as `Authorization: Bearer …`."),
                "token_type": {"const": "bearer"},
                "expires_in": _said(_NUMBER, "Seconds."),
                "scope": _TEXT,
                "created_at": _said(_NUMBER, "Seconds since 1970."),
            }
        ),
        "RevocationRequest": _object(
            {
                "token": {**_TEXT, "minLength": 1},
                "token_type_hint": _said(_TEXT_OR_NULL, "Changes nothing."),
                **client,
            },
            optional=("token_type_hint", "client_id", "client_secret"),
        ),
        "OAuthError": _object(
            {"error": {"type": "string", "enum": list(OAUTH_ERRORS)}, "error_description": _TEXT},
            description="An error of RFC 6749, section 5.2.",
        ),
    }


def _other_schemas() -> dict[str, Schema]:
    fault = {
        "field": _said(
            _TEXT, "The body's member, dotted below it (`metadata.color`), or the query parameter."
        ),
        "code": {
            "type": "string",
            "enum": list(FAULT_CODES),
            "description": "\n".join(f"- `{code}`: {text}" for code, text in FAULT_CODES.items()),
        },
        "message": _said(_TEXT, "The rule in words; it never repeats the value."),
    }
    problem = {
        "type": _said(_TEXT, f"Its fragment is the kind of problem: {', '.join(PROBLEMS)}."),
        "title": _TEXT,
        "status": _NUMBER,
        "detail": _TEXT,
        "instance": _said(_TEXT, "The request's path."),
        "request_id": _TEXT,
        "errors": {
            "type": "array",
            "items": ref("Fault"),
            "minItems": 1,
            "description": "With status 422: all faults.",
        },
    }
    health = {
        "status": {"type": "string", "enum": ["ok", "ready"]},
        "revision": _said(_TEXT, "Of the database."),
    }
    return {
        "Problem": _object(problem, optional=("errors",), description="Problem details (RFC 9457)."),
        "Fault": _object(fault),
        "Health": _object(health, optional=("revision",)),
    }
