"""Our own documents, which are Markdown, as HTML for pages: examples and tables that scroll by themselves,
and headings that can be linked.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_EXAMPLE = Markup('<pre tabindex="0"><code>{}</code></pre>')
_TABLE = '<div class="table scroll" tabindex="0" role="region" aria-label="Table {}"><table>'


def make_reader() -> "MarkdownIt":
    """A reader of CommonMark with tables. HTML of the source is escaped."""
    from markdown_it import MarkdownIt  # a process that shows no page does without it

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule(
        "fence", lambda _self, tokens, at, *_rest: _EXAMPLE.format(tokens[at].content)
    )
    reader.add_render_rule(
        "table_open", lambda _self, tokens, at, *_rest: _TABLE.format(tokens[at].map[0] + 1)
    )
    reader.add_render_rule("table_close", lambda *_arguments: "</table></div>")
    return reader


def add_anchors(tokens: Sequence["Token"]) -> Iterator[tuple[int, str]]:
    """Give each heading the anchor that it has on GitHub; the position and anchor of each."""
    seen = Counter[str]()
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = re.sub(r"[^\w\- ]", "", tokens[at + 1].content.lower()).replace(" ", "-")
            seen[anchor] += 1
            anchor += f"-{seen[anchor] - 1}" if seen[anchor] > 1 else ""
            token.attrSet("id", anchor)
            yield at, anchor
