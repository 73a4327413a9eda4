"""What each serving process loads: an App from the environment, as an ASGI application made by `make_asgi`."""

import gc
import os
import sys
from pathlib import Path

from frontdesk.api import Asgi, build_asgi
from frontdesk.api.telemetry import Telemetry
from frontdesk.app import App
from frontdesk.config import read_config
from frontdesk.db import open_database

# Where the processes of one server add up their counts; `frontdesk serve` makes the folder.
METRICS_FOLDER = "FRONTDESK_METRICS_FOLDER"

# A lane of the group commit that comes back from the database should not wait 5 ms for a busy event loop to let go.
SWITCH_SECONDS = 0.005

# Requests make few cycles; with the default thresholds a third of the time went into looking for them.
COLLECT_AFTER = (50_000, 20, 50)


def make_asgi() -> Asgi:
    """The application of one serving process."""
    sys.setswitchinterval(SWITCH_SECONDS)
    config = read_config(os.environ)
    app = App(config, open_database(config.database_url))
    folder = os.environ.get(METRICS_FOLDER)
    asgi = build_asgi(app, Telemetry(folder=Path(folder) if folder else None))
    gc.collect()
    gc.freeze()  # what is loaded now stays: later collections need not look at it
    gc.set_threshold(*COLLECT_AFTER)
    return asgi
