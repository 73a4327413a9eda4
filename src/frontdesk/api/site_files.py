"""The files of the documentation: pages, pictures, the index of their search, the reference, assets, the
packages of the clients.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files

from frontdesk.api import site
from frontdesk.api.codes import codes_content, sections
from frontdesk.api.collection import postman_collection
from frontdesk.errors import NotFound
from frontdesk.interface.schema import Schema
from frontdesk.web.page import TOKENS, page_template, read_page_part

_SCRIPT = b"text/javascript; charset=utf-8"
_STYLE = b"text/css; charset=utf-8"
_HTML = b"text/html; charset=utf-8"
_JSON = b"application/json"
_ICON = b"image/svg+xml"
_PICTURE = b"image/png"
_MARKDOWN = b"text/markdown; charset=utf-8"
_TEXT = b"text/plain; charset=utf-8"
_PACKAGE = b"application/octet-stream"
# What clients/pack.py has made, while the program is packed or set up.
PACKAGES = files("frontdesk.api").joinpath("assets/clients")
ASSETS = {
    "site.css": ("site.css", _STYLE),
    "site.js": ("site.js", _SCRIPT),
    "reference.css": ("reference.css", _STYLE),
    "reference.js": ("reference.js", _SCRIPT),
    "scalar.js": ("scalar/standalone.js", _SCRIPT),
}


def site_file(
    name: str, document: Schema, base_url: str, *, is_production: bool
) -> tuple[bytes, bytes]:
    """Content type and content of the file of this name. Raises NotFound."""
    pages = site.pages(base_url)
    # In production its changing calls are off until the reader allows them.
    reference = page_template("frontdesk.api", "reference.html")
    made: dict[str, tuple[bytes, Callable[[], bytes]]] = {
        "reference": (_HTML, lambda: reference.render(is_production=is_production).encode()),
        "problems": (
            _HTML,
            lambda: site.layout(base_url, "Codes of errors", codes_content(base_url)),
        ),
        "search.json": (
            _JSON,
            lambda: site.search_index(base_url, [*_operation_parts(document), *_code_parts()]),
        ),
        "openapi.json": (_JSON, lambda: json.dumps(document, ensure_ascii=False).encode()),
        "collection.json": (
            _JSON,
            lambda: json.dumps(postman_collection(document), indent=1).encode(),
        ),
        "favicon.svg": (_ICON, lambda: read_page_part("favicon.svg").encode()),
        "llms.txt": (_TEXT, lambda: site.llms_text(base_url, package_names())),
    }
    if name in made:
        content_type, make = made[name]
        return content_type, make()
    if name in ASSETS:
        path, content_type = ASSETS[name]
        content = files("frontdesk.api").joinpath("assets", path).read_bytes()
        return content_type, TOKENS.encode() + content if name == "site.css" else content
    with suppress(KeyError):
        return _PICTURE, site.picture_content(name)
    if name in package_names():
        return _PACKAGE, PACKAGES.joinpath(name).read_bytes()
    if name in pages:
        page = pages[name]
        return _HTML, site.layout(base_url, page.title, page.content, current=page)
    if name.removesuffix(".md") in pages:
        return _MARKDOWN, pages[name.removesuffix(".md")].markdown.encode()
    raise NotFound("address", "There is nothing at this address.")


def package_names() -> list[str]:
    """The packages of clients that this installation has: a wheel, and a tarball for npm."""
    if not PACKAGES.is_dir():
        return []
    names = (each.name for each in PACKAGES.iterdir())
    return sorted((name for name in names if name.endswith((".whl", ".tgz"))), reverse=True)


def _operation_parts(document: Schema) -> list[tuple[str, str, str, str]]:
    return [
        (
            f"/docs/reference#tag/{each['tags'][0].lower()}/{each['operationId']}",
            "Reference",
            f"{method.upper()} {path}",
            f"{each['summary']}. {each['description']}",
        )
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    ]


def _code_parts() -> list[tuple[str, str, str, str]]:
    return [
        (f"/problems#{section.prefix}{entry.word}", "Codes of errors", entry.word, entry.text)
        for section in sections("")
        for entry in section.entries
    ]
