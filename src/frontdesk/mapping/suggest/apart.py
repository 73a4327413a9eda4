"""Makes the suggestion for a file that somebody has sent in a process of its own, with limits of
memory and time.

The process's standard input is the file, which can be sought in; its argument has the options as
JSON. Its standard output gets the suggestion as JSON, or `[code, message]` of what makes the file
unreadable.
"""

import json
import os
import resource
import subprocess
import sys
from typing import IO, Any

from frontdesk import codes
from frontdesk.codes import Where
from frontdesk.errors import Unavailable
from frontdesk.formats.model import Format, Unreadable
from frontdesk.formats.workbook import DETACHED, OF_THE_FILE
from frontdesk.mapping.suggest.suggestion import suggest_mapping

MEMORY_BYTES = 512 * 1024 * 1024
PROCESSOR_SECONDS = 20
NICENESS = 10  # the service itself goes first
SECONDS = 8  # less than an answer may take
_COMMAND = [sys.executable, "-m", "frontdesk.mapping.suggest.apart"]
_TOO_LARGE = (
    "The file takes too long or too much memory to be looked at. "
    "Send a copy with its first 100 rows."
)


def suggest_apart(file: IO[bytes], **options: Any) -> dict[str, Any]:
    """`suggest_mapping(file, **options)`, for a file that can be sought in.

    Raises Unreadable, also for a file that takes more memory or time than there is; Unavailable if
    the process was ended from outside.
    """
    command = [*_COMMAND, json.dumps(options)]
    try:
        # The process that reads a workbook for this one ends with the pipe between them.
        ended = subprocess.run(  # noqa: S603 - our own
            command, stdin=file, stdout=subprocess.PIPE, timeout=SECONDS, check=False, **DETACHED
        )
    except subprocess.TimeoutExpired:
        raise Unreadable(codes.files.TOO_LARGE, _TOO_LARGE) from None
    if ended.returncode in OF_THE_FILE:
        raise Unreadable(codes.files.TOO_LARGE, _TOO_LARGE)
    if ended.returncode:
        raise Unavailable("The process that makes the suggestion ended early.")
    answer = json.loads(ended.stdout)
    if isinstance(answer, dict):
        return answer
    code, message = answer
    raise (
        Unavailable(message)
        if code == Unavailable.kind
        else Unreadable(codes.CODES[Where.FILE, code], message)
    )


def main() -> None:
    os.nice(NICENESS)
    # The process that reads a workbook sets limits of its own, so only those that it may raise are
    # set here.
    if sys.platform == "linux":
        for kind, limit in (
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_CPU, PROCESSOR_SECONDS),
        ):
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    options = json.loads(sys.argv[1])
    options["format"] = options["format"] and Format(options["format"])
    try:
        answer: object = suggest_mapping(sys.stdin.buffer, **options)
    except (Unreadable, Unavailable) as error:
        answer = [error.code, error.detail]
    except MemoryError:
        answer = ["too_large", _TOO_LARGE]
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
