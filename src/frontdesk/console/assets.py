"""What the console's pages load: the script, under a name that changes with it, so that browsers keep
it; and the icon.
"""

import hashlib

from frontdesk.web.page import read_page_part

_DIGEST_LETTERS = 16
_SCRIPT = read_page_part("page.js").encode()
_SCRIPT_NAME = f"page-{hashlib.sha256(_SCRIPT).hexdigest()[:_DIGEST_LETTERS]}.js"

SCRIPT_PATH = f"/console/assets/{_SCRIPT_NAME}"
ICON_PATH = "/console/assets/favicon.svg"

# Content and content type by name.
ASSETS = {
    _SCRIPT_NAME: (_SCRIPT, b"text/javascript; charset=utf-8"),
    "favicon.svg": (read_page_part("favicon.svg").encode(), b"image/svg+xml"),
}
