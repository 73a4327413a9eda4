"""The script of the console's pages, under a name that changes with it, so that browsers keep it."""

import hashlib

from frontdesk.web.page import read_page_part

SCRIPT = read_page_part("page.js").encode()
_DIGEST_LETTERS = 16
SCRIPT_NAME = f"page-{hashlib.sha256(SCRIPT).hexdigest()[:_DIGEST_LETTERS]}.js"
SCRIPT_PATH = f"/console/assets/{SCRIPT_NAME}"
