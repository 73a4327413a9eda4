"""The operations of the OpenAPI document as a collection for Postman and the programs that import
its files (format 2.1).

Sent from the first to the last, each request finds what it needs: the token, the plan, the member,
the file and the endpoint of the requests before it.
"""

import json
import re
from typing import Any

from frontdesk.interface.schema import Schema

FORMAT = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
_CREDENTIALS = ("client_id", "client_secret")
# What later requests need of an answer: the variable of the collection, by the operation.
_KEPT = {
    "issueToken": ("token", "access_token"),
    "listPlans": ("plan_id", "data[0].id"),
    "enrolMember": ("eligibility_id", "id"),
    "renameMember": ("external_id", "external_id"),
    "uploadEligibilityFile": ("file_id", "data.id"),
    "createWebhookEndpoint": ("endpoint_id", "data.id"),
}
# In a folder what makes a thing stands first, and what removes it last. The others follow the
# document.
_FIRST = ("issueToken", "uploadEligibilityFile", "saveEligibilityMapping", "createWebhookEndpoint")
_LAST = (
    *("changePlan", "revokeToken", "deleteEligibilityMapping"),
    *("changeWebhookEndpoint", "deleteWebhookEndpoint"),  # a paused one can't be tested
)
# The one that has to be chosen among parameters.
_CHOSEN = ("findEligibleMembers", "external_id")


def postman_collection(document: Schema) -> Schema:
    """A folder for each tag. The variables `client_id` and `client_secret` have to be filled in;
    requests keep in the others what they have got.
    """
    folders: dict[str, list[Schema]] = {tag["name"]: [] for tag in document["tags"]}
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    for path, method, operation in sorted(operations, key=lambda each: _place(each[2])):
        folders[operation["tags"][0]].append(_item(path, method, operation, document))
    values = {"base_url": document["servers"][0]["url"], "client_id": "", "client_secret": ""}
    values |= {name: "1" if name.endswith("_id") else "" for name, _ in _KEPT.values()}
    return {
        "info": {
            "name": document["info"]["title"],
            "description": document["info"]["description"],
            "schema": FORMAT,
        },
        "auth": {
            "type": "bearer",
            "bearer": [{"key": "token", "value": "{{token}}", "type": "string"}],
        },
        "variable": [{"key": key, "value": value} for key, value in values.items()],
        "item": [{"name": name, "item": items} for name, items in folders.items()],
    }


def _place(operation: Schema) -> int:
    name = operation["operationId"]
    return (name in _LAST) - (name in _FIRST)


def _item(path: str, method: str, operation: Schema, document: Schema) -> Schema:
    parameters = [
        document["components"]["parameters"][each["$ref"].rpartition("/")[2]]
        for each in operation["parameters"]
    ]
    query = [
        _parameter(each) | {"disabled": (operation["operationId"], each["name"]) != _CHOSEN}
        for each in parameters
        if each["in"] == "query"
    ]
    variables = [_parameter(each) for each in parameters if each["in"] == "path"]
    parts = re.sub(r"{(\w+)}", r":\1", path)
    request = {
        "method": method.upper(),
        "description": operation["description"],
        "header": [{"key": "Accept", "value": "*/*"}],
        "url": {
            "raw": "{{base_url}}" + parts,
            "host": ["{{base_url}}"],
            "path": parts.removeprefix("/").split("/"),
            "query": query,
            "variable": variables,
        },
    }
    if not any("token" in way for way in operation["security"]):
        request["auth"] = {"type": "noauth"}
    if "requestBody" in operation:
        media_type, content = next(iter(operation["requestBody"]["content"].items()))
        request["header"].append({"key": "Content-Type", "value": media_type})
        request["body"] = _body(media_type, content)
    item = {"name": operation["summary"], "request": request}
    if operation["operationId"] in _KEPT:
        name, place = _KEPT[operation["operationId"]]
        script = (
            "if (pm.response.code < 300) "
            f'pm.collectionVariables.set("{name}", pm.response.json().{place});'
        )
        item["event"] = [
            {"listen": "test", "script": {"type": "text/javascript", "exec": [script]}}
        ]
    return item


def _parameter(parameter: Schema) -> Schema:
    value = parameter.get("example", parameter["schema"].get("example", ""))
    if parameter["name"] in (name for name, _ in _KEPT.values()):
        value = "{{" + parameter["name"] + "}}"
    return {
        "key": parameter["name"],
        "value": str(value),
        "description": parameter.get("description", ""),
    }


def _body(media_type: str, content: Schema) -> Schema:
    """The first example as the body. Those of /oauth are forms with the variables of the
    collection.
    """
    example: Any = next(iter(content.get("examples", {}).values()), {"value": {}})["value"]
    if media_type == "application/x-www-form-urlencoded":
        filled = example | {name: "{{" + name + "}}" for name in _CREDENTIALS}
        filled.pop("scope", None)  # a token without it has every scope of the client
        return {
            "mode": "urlencoded",
            "urlencoded": [{"key": key, "value": str(value)} for key, value in filled.items()],
        }
    text = (
        example if isinstance(example, str) else json.dumps(example, ensure_ascii=False, indent=1)
    )
    return {"mode": "raw", "raw": text}
