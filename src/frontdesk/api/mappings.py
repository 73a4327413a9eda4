"""Mappings of eligibility files: how the files of an account name things (docs/files.md, Mappings)."""

from typing import Any

from frontdesk.api.eligibility_files import enveloped
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.files import actions, list_mappings
from frontdesk.files.model import MappingName, StoredMapping
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import NO_STORE, Response


async def list_eligibility_mappings(app: App, request: Request) -> Response:
    """List the account's mappings. Answers all of them, by name.

    200 EligibilityMappings: The mappings, by name.
    """
    account_id = request.account_id
    found = await app.ask(lambda tx: list_mappings(tx, account_id))
    return enveloped(app, request, [actions.serialize_mapping(each) for each in found])


async def show_eligibility_mapping(app: App, request: Request) -> Response:
    """Read a mapping. Answers it as it was sent.

    200 EligibilityMapping: The mapping.
    """
    key = _key(request)
    found = await app.ask(lambda tx: actions.get_mapping(tx, key))
    return enveloped(app, request, actions.serialize_mapping(found))


async def save_eligibility_mapping(app: App, request: Request) -> Response:
    """Store a mapping, or replace it. It counts for the files that come from now on; files that came before keep the one that
    they had. Sending it again is safe. An account has 50 mappings at most.

    Body: Mapping
    Parameters: mapping_default
    200 EligibilityMapping: The mapping of this name was replaced.
    201 EligibilityMapping: A mapping of this name is new.
    Faults: required wrong_type not_a_date not_allowed repeated unknown_field
    """
    default = request.parameters.get("default")
    key, requester = _key(request), requester_of(app, request)
    content: dict[str, Any] = parse_json_object(await request.body())

    def save(tx: Tx) -> tuple[bool, StoredMapping]:
        is_new = actions.save_mapping(tx, key, content, requester, default=default)
        return is_new, actions.get_mapping(tx, key)

    is_new, saved = await app.write(save)
    return enveloped(app, request, actions.serialize_mapping(saved), status=201 if is_new else 200)


async def delete_eligibility_mapping(app: App, request: Request) -> Response:
    """Delete a mapping. Files that came before keep their copy of it.

    204: The mapping is gone.
    """
    key, requester = _key(request), requester_of(app, request)
    await app.write(lambda tx: actions.delete_mapping(tx, key, requester))
    return Response(204, b"", (NO_STORE,))


def _key(request: Request) -> MappingName:
    return MappingName(request.account_id, request.path_parameters["mapping_name"])
