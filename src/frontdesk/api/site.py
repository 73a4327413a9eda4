"""The documentation at /docs: its pages from Markdown, their layout with a side bar, the index of
their search, /llms.txt.

assets/docs has a link to each published file, pictures too. A link to a file that isn't published, such as a
decision, becomes plain text.
"""

import json
import posixpath
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from markupsafe import Markup

from frontdesk.web.markdown import add_anchors, make_reader
from frontdesk.web.page import page_template

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

HOME = "start"


def _source(slug: str) -> str:
    return files("frontdesk.api").joinpath("assets/docs", f"{slug}.md").read_text(encoding="utf-8")


# The guides are those of the home page's table, in its order.
SECTIONS = {
    "Guides": (HOME, *re.findall(r"\| \[[^]]+\]\(([\w-]+)\.md\) \|", _source(HOME))),
    "Details": (
        *("interface", "files", "file-formats", "834", "invitations", "wait-estimate"),
        *(
            "console",
            "webhook-delivery",
            "sandbox",
            "clients",
            "python-client",
            "typescript-client",
        ),
    ),
    "More": ("states", "glossary", "changelog"),
}
# Files whose slugs are not their names, seen from docs.
SLUGS = {
    "webhooks.md": "webhook-delivery",  # named like a guide
    "../clients/python/README.md": "python-client",
    "../clients/typescript/README.md": "typescript-client",
}
SNIPPET_LETTERS = 120
EXAMPLE_BASE_URL = "https://api.example.com"

_REASONS = re.compile(r"^Why: decisions? \[(?:.|\n)*?\n\n", re.MULTILINE)
_LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#]*\.md)(#[^)]*)?\)")
_PICTURE = re.compile(r"(!\[[^][]*\])\((?:\.\./)?pictures/([\w-]+\.png)\)")
_DARK = "-dark.png"  # ends the name of a picture's dark twin
_SHOWN_PICTURE = Markup(
    '<picture><source media="(prefers-color-scheme: dark)" srcset="/docs/{dark}">'
    '<img src="/docs/{light}" alt="{alt}" width="{width}" height="{height}" loading="lazy"></picture>'
)


def picture_content(name: str) -> bytes:
    """A picture of the documentation (PNG). Raises KeyError for another name."""
    if name not in _picture_names():
        raise KeyError(name)
    return files("frontdesk.api").joinpath("assets/docs", name).read_bytes()


@cache
def _picture_names() -> frozenset[str]:
    names = (each.name for each in files("frontdesk.api").joinpath("assets/docs").iterdir())
    return frozenset(name for name in names if name.endswith(".png"))


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page. `headings` are its level-2 headings by anchor. `sections` have the anchor, heading
    and text of each part.
    """

    slug: str
    title: str
    markdown: str
    content: Markup
    headings: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, str, str]]

    @property
    def path(self) -> str:
        return "/docs" if self.slug == HOME else f"/docs/{self.slug}"

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        text = next(text for _, _, text in self.sections if text)
        return re.split(r"(?<=[.:?]) ", text)[0].rstrip(":")


@cache
def pages(base_url: str) -> dict[str, SitePage]:
    """Every page by its slug, for the service at `base_url`. It takes 0.2 s once: call it in a
    thread.
    """
    slugs = [slug for section in SECTIONS.values() for slug in section]
    return {slug: _read_page(slug, base_url) for slug in slugs}


def layout(base_url: str, title: str, content: Markup, *, current: SitePage | None = None) -> bytes:
    """A whole page of the site. `current` is the open page of the side bar."""
    known = pages(base_url)
    sections = {name: [known[slug] for slug in slugs] for name, slugs in SECTIONS.items()}
    template = page_template("frontdesk.api", "site.html")
    return template.render(
        title=title, content=content, sections=sections, current=current
    ).encode()


def search_index(base_url: str, others: Sequence[tuple[str, str, str, str]]) -> bytes:
    """The index of the search: path, page, heading, first words and other words of each part, as
    JSON. `others` are the parts of other pages: path, page, heading, text.
    """
    own = [
        (f"{page.path}#{anchor}" if anchor else page.path, page.title, heading, text)
        for page in pages(base_url).values()
        for anchor, heading, text in page.sections
    ]
    return json.dumps([_entry(*part) for part in (*own, *others)], ensure_ascii=False).encode()


def llms_text(base_url: str, packages: Sequence[str]) -> bytes:
    """The list of pages for programs that read documentation (llmstxt.org), and of the packages of
    clients, which are named.
    """
    home = pages(base_url)[HOME]
    lines = [f"# {home.title}", "", f"> {home.summary}", ""]
    lines.append(
        f"The OpenAPI 3.1 document: {base_url}/openapi.json. Codes of errors: {base_url}/problems."
    )
    if packages:
        addresses = " and ".join(f"{base_url}/docs/{name}" for name in packages)
        lines.append(f"Clients for pip and npm: {addresses}.")
    for name, slugs in SECTIONS.items():
        lines += ["", f"## {name}", ""]
        listed = [pages(base_url)[slug] for slug in slugs]
        lines += [
            f"- [{page.title}]({base_url}/docs/{page.slug}.md): {page.summary}" for page in listed
        ]
    return "\n".join([*lines, ""]).encode()


def _entry(path: str, title: str, heading: str, text: str) -> tuple[str, str, str, str, str]:
    start = text[:SNIPPET_LETTERS]
    rest = text[SNIPPET_LETTERS:]
    words = dict.fromkeys(re.findall(r"\w[\w.-]*", rest.lower()))
    return path, title, heading, start, " ".join(words)


def _read_page(slug: str, base_url: str) -> SitePage:
    folder = "guides" if slug in SECTIONS["Guides"] else ""
    text = _REASONS.sub("", _source(slug) + "\n")
    markdown = _LINK.sub(lambda link: _site_link(link, folder), text).replace(
        EXAMPLE_BASE_URL, base_url
    )
    markdown = _PICTURE.sub(r"\1(/docs/\2)", markdown)
    reader = _reader()
    tokens = reader.parse(markdown)
    anchors = dict(add_anchors(tokens))
    parts = list(_parts(tokens, anchors))
    headings = [
        (anchors[at], tokens[at + 1].content.replace("`", ""))
        for at in anchors
        if tokens[at].tag == "h2"
    ]
    # HTML of the source is escaped.
    content = Markup(reader.renderer.render(tokens, reader.options, {}))  # noqa: S704
    return SitePage(slug, parts[0][1], markdown, content, headings, parts)


def _site_link(link: re.Match[str], folder: str) -> str:
    """A link to another file of the repository as a link of the site, or its text if that file
    isn't published. `folder` is that of the page's file in docs.
    """
    text, path, anchor = link.groups("")
    file = posixpath.normpath(posixpath.join(folder, path))
    slug = SLUGS.get(file, PurePosixPath(file).stem.lower())
    return (
        f"[{text}](/docs/{slug}{anchor})"
        if any(slug in slugs for slugs in SECTIONS.values())
        else text
    )


@cache
def _reader() -> "MarkdownIt":
    reader = make_reader()
    reader.add_render_rule("image", _show_picture)
    reader.add_render_rule("heading_open", _open_heading)
    reader.add_render_rule("heading_close", _close_heading)
    return reader


def _show_picture(_self: object, tokens: Sequence["Token"], at: int, *_arguments: object) -> str:
    """With its size, so that the text below it does not move, and its dark twin."""
    light = str(tokens[at].attrGet("src")).removeprefix("/docs/")
    width, height = struct.unpack_from(">II", picture_content(light), 16)  # of the header IHDR
    return _SHOWN_PICTURE.format(
        light=light,
        dark=light.replace(".png", _DARK),
        alt=tokens[at].content,
        width=width,
        height=height,
    )


def _open_heading(_self: object, tokens: Sequence["Token"], at: int, *_arguments: object) -> str:
    """A heading below the title leads to itself, so that its address can be copied."""
    token = tokens[at]
    anchor = token.attrGet("id")
    if token.tag == "h1":
        return str(Markup('<h1 id="{}">').format(anchor))
    return str(Markup('<{0} id="{1}"><a href="#{1}">').format(token.tag, anchor))


def _close_heading(_self: object, tokens: Sequence["Token"], at: int, *_arguments: object) -> str:
    tag = tokens[at].tag
    return "</h1>\n" if tag == "h1" else f"</a></{tag}>\n"


def _parts(tokens: Sequence["Token"], anchors: dict[int, str]) -> Iterator[tuple[str, str, str]]:
    """Anchor, heading and text of each part of a page. The first part has no anchor."""
    anchor = ""
    heading = ""
    texts = list[str]()
    for at, token in enumerate(tokens):
        if at in anchors and heading:
            yield anchor, heading, " ".join(texts)
            anchor = anchors[at]
            heading = ""
            texts = []
        text = "".join(each.content or " " for each in token.children or []) or token.content
        if not heading and token.type == "inline":
            heading = text
        elif token.type in ("inline", "fence"):
            texts.append(text)
    yield anchor, heading, " ".join(texts)
