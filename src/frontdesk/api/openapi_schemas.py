"""The schemas of the OpenAPI document; the eligible member's is made from the one table of fields."""

from typing import Any

from frontdesk.eligibility.fields import FIELDS

Schema = dict[str, Any]

TIME: Schema = {"type": "string", "format": "date-time", "examples": ["2016-09-28T23:33:32Z"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Schema], *, optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _member_request() -> Schema:
    properties = {}
    for field in FIELDS.values():
        needed = (
            "Required for a new member, never null or blank."
            if field.required
            else "null or blank clears it."
        )
        schema = field.schema if field.required else _nullable(field.schema)
        properties[field.name] = schema | {
            "description": f"{field.description} {needed}",
            "examples": [field.example],
        }
    return {
        "type": "object",
        "description": "An update needs external_id only: absent fields keep their values. Unknown fields are ignored "
        "and named in Ignored-Fields, or refused with `Prefer: handling=strict`.",
        "properties": properties,
        "required": ["external_id"],
    }


def _queue() -> Schema:
    cache = _object({"ttl": {"type": "integer", "description": "Seconds."}, "expires_at": TIME})
    wait = {
        "type": "integer",
        "minimum": -1,
        "description": "Seconds until a patient who joins now reaches a doctor; -1 when none is on duty.",
    }
    length = {"type": "integer", "minimum": 0, "description": "Patients waiting in this plan."}
    return _object(
        {
            "estimated_wait_time": wait,
            "queue_length": length,
            "is_active": {"type": "boolean", "description": "A doctor is on duty for the plan now."},
            "cache_info": cache,
        },
        optional=("cache_info",),
    )


def _plan() -> Schema:
    return _object(
        {
            "id": {"type": "integer"},
            "type": {"const": "plans"},
            "external_id": {"type": "string"},
            "name": {"type": "string"},
            "description": {"type": ["string", "null"]},
            "active": {
                "type": "boolean",
                "description": "Accepting patients; not the same as queue_info.is_active.",
            },
            "created_at": TIME,
            "provider_group": ref("ProviderGroup"),
            "queue_info": ref("PlanQueueInfo"),
        },
        optional=("queue_info",),
    )


def schemas() -> dict[str, Schema]:
    """Every named schema of the document."""
    text = {"type": "string"}
    links = _object({"self": text, "next": text}, optional=("next",))
    fault = _object({"field": text, "code": {**text, "description": "See /problems."}, "message": text})
    return {
        "PlanQueueInfo": _queue(),
        "ProviderGroup": _object(
            {
                "id": {"type": "integer"},
                "type": {"const": "provider_groups"},
                "name": text,
                "external_id": {"type": ["string", "null"]},
                "created_at": TIME,
            }
        ),
        "Plan": _plan(),
        "Plans": _object({"links": links, "data": {"type": "array", "items": ref("Plan")}}),
        "PlanPatch": {
            "type": "object",
            "description": "Absent fields keep their values. Read-only fields may be echoed unchanged.",
            "properties": {
                "name": {**text, "minLength": 1, "maxLength": 255},
                "description": {"type": ["string", "null"], "maxLength": 2000},
                "external_id": {**text, "minLength": 1, "maxLength": 255},
            },
            "examples": [{"name": "Gold 2027", "description": None}],
        },
        "EligibleMember": _member_request(),
        "Eligibility": _object(
            {"id": {"type": "integer"}}
            | dict.fromkeys(
                ("external_id", "dob", "first_name", "last_name", "gender", "member_id", "zipcode"), text
            )
            | {"metadata": {"type": "object", "additionalProperties": text}}
        ),
        "Problem": _object(
            {
                "type": {**text, "description": "Its fragment is the kind of problem (see /problems)."},
                "title": text,
                "status": {"type": "integer"},
                "detail": text,
                "instance": text,
                "request_id": text,
                "errors": {"type": "array", "items": fault},
            },
            optional=("errors",),
        ),
        "TokenRequest": {
            "type": "object",
            "properties": {
                "grant_type": {"const": "client_credentials"},
                "client_id": text,
                "client_secret": text,
                "scope": {**text, "examples": ["customer"]},
            },
            "required": ["grant_type"],
        },
        "RevocationRequest": {
            "type": "object",
            "properties": {"token": text, "token_type_hint": text, "client_id": text, "client_secret": text},
            "required": ["token"],
        },
        "Token": _object(
            {
                "access_token": text,
                "token_type": {"const": "bearer"},
                "expires_in": {"type": "integer"},
                "scope": text,
                "created_at": {"type": "integer", "description": "Seconds since 1970."},
            }
        ),
        "OAuthError": _object({"error": text, "error_description": text}),
        "Health": _object({"status": text, "revision": text}, optional=("revision",)),
    }
