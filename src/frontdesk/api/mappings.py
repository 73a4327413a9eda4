"""Mappings of eligibility files: how the files of an account name things (docs/files.md, Mappings)."""

import asyncio
from typing import Any

from frontdesk import codes
from frontdesk.access.model import Scope
from frontdesk.api.envelope import enveloped
from frontdesk.api.paths import Path
from frontdesk.app import App
from frontdesk.db import Tx
from frontdesk.files import actions, list_mappings
from frontdesk.files.model import MappingName, StoredMapping
from frontdesk.interface import present
from frontdesk.interface.operations import Answer, Group
from frontdesk.interface.parameters import MAPPING_DEFAULT
from frontdesk.interface.types import mappings as types
from frontdesk.interface.types.mapping_rules import Mapping
from frontdesk.web.endpoint import requester_of
from frontdesk.web.request import Request, parse_json_object
from frontdesk.web.response import NO_STORE, Response

GROUP = Group("Mappings", "How the eligibility files of the account name things.")


@GROUP.get(
    Path.MAPPINGS,
    scope=Scope.ELIGIBILITY_WRITE,
    answers={200: Answer("The mappings, by name.", types.EligibilityMappings)},
)
async def list_eligibility_mappings(app: App, request: Request) -> Response:
    """List the account's mappings.

    Answers all of them, by name.
    """
    account_id = request.account_id
    found = await app.ask(lambda tx: list_mappings(tx, account_id))
    return enveloped(app, request, [present.mapping(each) for each in found])


@GROUP.get(
    Path.MAPPING,
    scope=Scope.ELIGIBILITY_WRITE,
    answers={200: Answer("The mapping.", types.EligibilityMapping)},
)
async def show_eligibility_mapping(app: App, request: Request) -> Response:
    """Read a mapping.

    Answers it as it was sent.
    """
    key = _key(request)
    found = await app.ask(lambda tx: actions.get_mapping(tx, key))
    return enveloped(app, request, present.mapping(found))


@GROUP.put(
    Path.MAPPING,
    scope=Scope.ELIGIBILITY_WRITE,
    body=Mapping,
    parameters=[MAPPING_DEFAULT],
    answers={
        200: Answer("The mapping of this name was replaced.", types.EligibilityMapping),
        201: Answer("A mapping of this name is new.", types.EligibilityMapping),
    },
    faults=[
        codes.faults.REQUIRED,
        codes.faults.WRONG_TYPE,
        codes.faults.NOT_A_DATE,
        codes.faults.NOT_ALLOWED,
        codes.faults.REPEATED,
        codes.faults.UNKNOWN_FIELD,
    ],
)
async def save_eligibility_mapping(app: App, request: Request) -> Response:
    """Store a mapping, or replace it.

    It counts for the files that come from now on; files that came before keep the one that they
    had. Sending it again is safe. An account has 50 mappings at most.
    """
    default = request.parameters.get("default")
    key = _key(request)
    requester = requester_of(app, request)
    content: dict[str, Any] = parse_json_object(await request.body())

    def save(tx: Tx) -> tuple[bool, StoredMapping]:
        is_new = actions.save_mapping(tx, key, content, requester, default=default)
        return is_new, actions.get_mapping(tx, key)

    async with app.fair_share.admitted(key.account_id):
        # Before the transaction: the faults of 1,500 columns take 20 ms to find, and SQLite has one
        # writer.
        await asyncio.to_thread(actions.check_mapping, key.name, content)
        is_new, saved = await app.write(save)
    return enveloped(app, request, present.mapping(saved), status=201 if is_new else 200)


@GROUP.delete(
    Path.MAPPING, scope=Scope.ELIGIBILITY_WRITE, answers={204: Answer("The mapping is gone.")}
)
async def delete_eligibility_mapping(app: App, request: Request) -> Response:
    """Delete a mapping.

    Files that came before keep their copy of it.
    """
    key = _key(request)
    requester = requester_of(app, request)
    async with app.fair_share.admitted(key.account_id):
        await app.write(lambda tx: actions.delete_mapping(tx, key, requester))
    return Response(204, b"", (NO_STORE,))


def _key(request: Request) -> MappingName:
    return MappingName(request.account_id, request.path_parameters["mapping_name"])
