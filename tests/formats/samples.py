"""A small file of each format, with a name that no message may repeat."""

import io

from frontdesk.formats.model import Format
from frontdesk.sandbox.sample_files import SAMPLE_FORMATS, write_sample
from frontdesk.sandbox.sample_members import sample_members

CANARY = "Canaryperson"


def sample(format_: Format) -> bytes:
    out = io.BytesIO()
    list(write_sample(sample_members(12, seed=3), format_, out))
    return out.getvalue().replace(b"Ivanov", CANARY.encode())


SAMPLES = {format_: sample(format_) for format_ in SAMPLE_FORMATS}
