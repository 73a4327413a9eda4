"""The process that makes a suggestion. Standard input is the file, which can be sought in; the argument has the options as JSON.

Standard output gets the suggestion as JSON, or `[code, message]` of what makes the file unreadable.
"""

import json
import os
import resource
import signal
import sys

from frontdesk.errors import Unavailable
from frontdesk.files.model import Format, Unreadable
from frontdesk.files.suggest.suggestion import serialize_suggestion, suggest_mapping

MEMORY_BYTES, PROCESSOR_SECONDS = 512 * 1024 * 1024, 20


def _limit() -> None:
    """The process that reads a workbook sets limits of its own, so only those that it may raise are set here."""
    if sys.platform == "linux":
        for kind, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, PROCESSOR_SECONDS)):
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    # An exit that ends the process which reads a workbook, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    _limit()
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


if __name__ == "__main__":
    main()
