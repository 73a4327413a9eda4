"""Makes a suggestion in a process of its own, with limits of memory and time: files of any customer come over HTTP."""

import json
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any

from frontdesk.errors import Unavailable
from frontdesk.files.model import Unreadable
from frontdesk.files.readers.workbook import OF_THE_FILE

SECONDS, STOP_SECONDS = 8, 1  # less than an answer may take


def suggest_apart(file: IO[bytes], **options: Any) -> dict[str, Any]:
    """`serialize_suggestion` of `suggest_mapping(file, **options)`, for a file that can be sought in.

    Raises Unreadable, also for a file that takes more memory or time than there is; Unavailable if the process was ended
    from outside.
    """
    command = [sys.executable, "-m", "frontdesk.files.suggest", json.dumps(options)]
    # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
    detached: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    with subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, **detached) as child:  # noqa: S603 - our own
        try:
            output, _ = child.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise _too_large() from None
        finally:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(STOP_SECONDS)
            child.kill()
    if child.returncode in OF_THE_FILE:
        raise _too_large()
    if child.returncode:
        raise Unavailable("The process that makes the suggestion ended early.")
    answer = json.loads(output)
    if isinstance(answer, dict):
        return answer
    code, message = answer
    raise Unavailable(message) if code == Unavailable.kind else Unreadable(code, message)


def _too_large() -> Unreadable:
    message = (
        "The file takes too long or too much memory to be looked at. Send a copy with its first 100 rows."
    )
    return Unreadable("too_large", message)
