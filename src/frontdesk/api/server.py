"""What each serving process loads: an App from the environment, as an ASGI application named `asgi`."""

import gc
import os
import sys

from frontdesk.api import build_asgi
from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database

# A lane of the group commit that comes back from the database should not wait 5 ms for a busy event loop to let go.
SWITCH_SECONDS = 0.0005


def make_asgi():  # type: ignore[no-untyped-def]
    sys.setswitchinterval(SWITCH_SECONDS)
    config = read_config(os.environ)
    app = App(config, open_database(config.database_url))
    asgi = build_asgi(app)
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    return asgi
