"""The reference: /openapi.json, the page at /docs with its assets, and the list of problems."""

import json

from frontdesk.api.exchange import Answer, Exchange
from frontdesk.app import App


async def document(app: App, exchange: Exchange) -> Answer:
    return Answer(200, json.dumps({}).encode())


async def page(app: App, exchange: Exchange) -> Answer:
    return Answer(200, b"", (), b"text/html")


async def asset(app: App, exchange: Exchange) -> Answer:
    return Answer(200, b"", (), b"text/html")


async def problems(app: App, exchange: Exchange) -> Answer:
    return Answer(200, b"", (), b"text/html")
