"""Makes a suggestion in a process of its own, with limits of memory and time: files of any customer come over HTTP.

The process's standard input is the file, which can be sought in; its argument has the options as JSON. Its standard output
gets the suggestion as JSON, or `[code, message]` of what makes the file unreadable.
"""

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from typing import IO, Any

from frontdesk.errors import Unavailable
from frontdesk.files.model import Format, Unreadable
from frontdesk.files.readers.workbook import OF_THE_FILE
from frontdesk.files.suggest.suggestion import serialize_suggestion, suggest_mapping

MEMORY_BYTES, PROCESSOR_SECONDS = 512 * 1024 * 1024, 20
SECONDS, STOP_SECONDS = 8, 1  # less than an answer may take
_COMMAND = [sys.executable, "-c", f"from {__name__} import main; main()"]


def suggest_apart(file: IO[bytes], **options: Any) -> dict[str, Any]:
    """`serialize_suggestion` of `suggest_mapping(file, **options)`, for a file that can be sought in.

    Raises Unreadable, also for a file that takes more memory or time than there is; Unavailable if the process was ended
    from outside.
    """
    # A session of its own, so that Ctrl-C reaches this process only; no stderr, which could hold a value of a member.
    detached: dict[str, Any] = {"stderr": subprocess.DEVNULL, "start_new_session": True}
    command = [*_COMMAND, json.dumps(options)]
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


def main() -> None:
    """What the process does."""
    # An exit that ends the process which reads a workbook, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # The process that reads a workbook sets limits of its own, so only those that it may raise are set here.
    if sys.platform == "linux":
        for kind, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, PROCESSOR_SECONDS)):
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = json.loads(sys.argv[1])
    options["format"] = options["format"] and Format(options["format"])
    with open(0, "rb", closefd=False) as stream:
        try:
            answer: object = serialize_suggestion(suggest_mapping(stream, **options))
        except (Unreadable, Unavailable) as error:
            answer = [error.code, error.detail]
        except MemoryError:
            os.kill(os.getpid(), signal.SIGABRT)
            raise
    sys.stdout.write(json.dumps(answer))
