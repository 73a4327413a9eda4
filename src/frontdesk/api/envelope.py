"""The envelope of answers of /v2: what was asked for under `data`, beside its addresses under
`links`; pages with the address of the next one; reads with an ETag.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from frontdesk.app import App
from frontdesk.web.request import Request
from frontdesk.web.response import Header, Response, json_response, large_json_response

_REVALIDATE: Header = (b"cache-control", b"private, no-cache")


def enveloped(app: App, request: Request, data: object, *, status: int = 200) -> Response:
    """What was asked for, with the request's address."""
    return json_response({"links": links_of(app, request), "data": data}, status=status)


async def enveloped_page(
    app: App, request: Request, data: Sequence[object], *, size: int = 0, after: Any = None
) -> Response:
    """A page. It may have megabytes, so it is written in slices."""
    time_slice = app.slices.begin()
    links = orjson.dumps(links_of(app, request, size=size, after=after))
    pieces = [b'{"links":', links, b',"data":[']
    for index, each in enumerate(data):
        pieces += (b"," if index else b"", orjson.dumps(each, option=orjson.OPT_UTC_Z))
        await time_slice.pause_if_due()
    return large_json_response([*pieces, b"]}"])


def enveloped_read(
    app: App, request: Request, data: bytes, tag: bytes, *, size: int = 0, after: Any = None
) -> Response:
    """JSON that was read, with its ETag: 304 for a caller that has this version."""
    headers = ((b"etag", tag), _REVALIDATE)
    if request.knows(tag):
        return Response(304, b"", headers)
    links = orjson.dumps(links_of(app, request, size=size, after=after))
    return Response(200, b'{"links":%s,"data":%s}' % (links, data), headers)


def digest_of(data: bytes, *, after: int | None = None) -> bytes:
    """The digest of JSON for an ETag. `links.next` depends on rows that are not on the page, so the
    digest stands for `after` too.
    """
    hashed = hashlib.sha256(data if after is None else data + b"%d" % after)
    return hashed.hexdigest()[:16].encode()


def links_of(app: App, request: Request, *, size: int = 0, after: Any = None) -> dict[str, str]:
    """The request's address, and that of the next page if one follows `after`. `size` is 0 where
    callers do not choose it.
    """
    links = {"self": app.config.base_url + request.target}
    if after is not None:
        following = {"page[size]": size, "page[after]": after} if size else {"page[after]": after}
        links["next"] = address_with(app, request, request.parameters | following)
    return links


def address_with(app: App, request: Request, query: Mapping[str, Any]) -> str:
    """The address of the same path with these parameters."""
    sent = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in query.items()
    }
    return f"{app.config.base_url}{request.path}?{urlencode(sent)}"
