"""A worker of eligibility files as a process of its own, to be killed: forked from a server that has loaded everything."""

import multiprocessing
import time
from multiprocessing.process import BaseProcess

from frontdesk.clock import system_clock
from frontdesk.config import Uniqueness
from frontdesk.db import open_database
from frontdesk.errors import Unavailable
from frontdesk.files.claims import RunOptions
from frontdesk.files.run import FileTurns

LEASE_SECONDS = 0.2
CHUNK_ROWS = 50

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([__name__])


def start_loader(url: str) -> BaseProcess:
    """A worker that takes one file after the other until it is killed."""
    process = _context.Process(target=work_forever, args=(url,), daemon=True)
    process.start()
    return process


def work_forever(url: str) -> None:
    db = open_database(url)
    options = RunOptions(Uniqueness.SERVICE, chunk_rows=CHUNK_ROWS, lease_seconds=LEASE_SECONDS)
    turns = FileTurns(db, system_clock, options, slice_seconds=0.0)
    while True:
        try:
            worked = turns.take()
        except Unavailable:
            worked = False
        if not worked:
            time.sleep(LEASE_SECONDS / 4)
