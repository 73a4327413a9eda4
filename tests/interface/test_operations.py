"""Declarations of operations: what is refused at the start of the program, and that none is missing."""

import importlib
import inspect
import io
import pkgutil
from typing import Any

import pytest
from starlette.testclient import TestClient

import frontdesk.api
import frontdesk.operator
from frontdesk.api.routes import ENDPOINTS, ENTRANCE, PAGES
from frontdesk.app import App
from frontdesk.interface.operations import Answer, Contract, Group, arranged
from frontdesk.liveness import RequestsInWork
from frontdesk.operator.routes import ENDPOINTS as OPERATORS
from frontdesk.web.endpoint import Handler, routed
from frontdesk.web.request import Request
from frontdesk.web.response import Response
from frontdesk.web.telemetry import Telemetry
from tests.conftest import Api

CONTRACT: Contract = {"answers": {200: Answer("It is so.")}}


async def list_things(_app: App, _request: Request) -> Response:
    """List things."""
    return Response(200, b"list")


async def show_thing(_app: App, request: Request) -> Response:
    """Show a thing."""
    return Response(200, str(request.path_parameters).encode())


async def delete_thing(_app: App, _request: Request) -> Response:
    """Delete a thing."""
    return Response(200)


async def without_docstring(_app: App, _request: Request) -> Response:
    return Response(200)


def group(*declared: tuple[str, str, Handler], **changes: Any) -> Group:
    """A group with these operations: method, path, handler."""
    made = Group("Things", "Things.")
    for method, path, handler in declared:
        getattr(made, method)(path, **CONTRACT | changes)(handler)
    return made


def test_operations_are_arranged() -> None:
    things = group(("get", "/things", list_things), ("get", "/things/{thing_id}", show_thing))
    found = [(each.id, each.method, each.path, each.group) for each in arranged([things])]
    assert found == [
        ("listThings", "GET", "/things", "Things"),
        ("showThing", "GET", "/things/{thing_id}", "Things"),
    ]


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (group(), "the group Things has no operation"),
        (group(("get", "/a", list_things), ("get", "/a", show_thing)), "GET /a: declared twice"),
        (group(("get", "/a", list_things), ("post", "/a", list_things)), "listThings: the id of"),
        (
            group(("get", "/a/{b}", list_things), ("get", "/a/{c}/d", show_thing)),
            "/a/{}: a parameter with two names",
        ),
        (group(("get", "/a", without_docstring)), "GET /a has a handler without a docstring"),
        (group(("get", "/a", list_things), answers={}), "GET /a has no answer"),
    ],
)
def test_a_wrong_declaration_is_refused_at_start(refused: Group, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        arranged([refused])


def test_the_order_of_declarations_means_nothing(app: App) -> None:
    """A literal part of a path counts before a parameter, and the methods of a path belong
    together wherever they are declared.
    """
    declared = [
        ("get", "/things/{thing_id}", show_thing),
        ("get", "/things/all", list_things),
        ("delete", "/things/{thing_id}", delete_thing),
    ]
    for order in (declared, declared[::-1]):
        endpoints = arranged([group(*order)])
        asgi = routed(app, Telemetry(io.StringIO()), endpoints, RequestsInWork(), {})
        with TestClient(asgi) as http:
            api = Api(http, None, io.StringIO())
            assert api.get("/things/all").text == "list"
            assert api.get("/things/7").text == "{'thing_id': '7'}"
            assert api.request("DELETE", "/things/7").status_code == 200
            assert api.request("PUT", "/things/7").headers["Allow"] == "DELETE, GET, HEAD"


def handlers(package: Any) -> set[Handler]:
    """The public functions of the package's modules that answer a request."""
    found = set()
    for part in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(part.name)
        for name, value in vars(module).items():
            if name.startswith("_") or not inspect.iscoroutinefunction(value):
                continue
            parameters = [each.lstrip("_") for each in inspect.signature(value).parameters]
            if value.__module__ == part.name and parameters == ["app", "request"]:
                found.add(value)
    return found


def test_every_public_handler_is_in_a_group() -> None:
    declared = {each.handler for each in (*ENDPOINTS, *ENTRANCE, *PAGES, *OPERATORS)}
    found = handlers(frontdesk.api) | handlers(frontdesk.operator)
    assert len(found) > 50
    assert found - declared == set()
