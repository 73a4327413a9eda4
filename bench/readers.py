"""`python -m bench.readers`: members a second of processor time, beside what does the inner work, and in what memory."""

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from frontdesk.formats.model import Format
from frontdesk.mapping.model import read_rows
from frontdesk.mapping.opening import open_unread
from frontdesk.mapping.parser import parse_mapping
from frontdesk.sandbox.sample_files import SAMPLE_FORMATS, SAMPLE_MAPPING, write_sample
from frontdesk.sandbox.sample_members import sample_members

# A child reads the file, so that its peak memory is the reader's own.
_CHILD = "import sys, bench.readers; bench.readers.report(sys.argv[1])"
_X12_GOAL = 8_000


def main() -> None:
    """Write a sample of each format, read it in a process of its own, print a line for each."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.readers", description="Example: python -m bench.readers"
    )
    parser.add_argument("--members", type=int, default=200_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for format_ in SAMPLE_FORMATS:
            path = Path(folder) / f"members.{format_}"
            began = time.process_time()
            with path.open("wb") as out:
                for _ in write_sample(sample_members(options.members, seed=1), format_, out):
                    pass
            written = options.members / (time.process_time() - began)
            ran = subprocess.run(
                [sys.executable, "-c", _CHILD, str(path)], check=True, capture_output=True, text=True
            )
            told = json.loads(ran.stdout)
            limit = options.members / _seconds(_LIMITS[format_], path)
            print(
                f"{format_:6} read {told['per_second']:>9,.0f}/s in {told['peak_mib']:.0f} MiB; "
                f"{_LIMIT_NAMES[format_]} {limit:>9,.0f}/s; sample written {written:>9,.0f}/s"
            )
            if format_ is Format.X12:
                print(
                    f"834: wanted {_X12_GOAL:,}/s, {'reached' if told['per_second'] >= _X12_GOAL else 'NOT reached'}"
                )


def report(path: str) -> None:
    """Read one file to its end and print members a second and the peak of memory."""
    began = time.process_time()
    with Path(path).open("rb") as stream:
        _, rows = open_unread(stream, mapping=parse_mapping(SAMPLE_MAPPING))
        count = sum(1 for _ in read_rows(rows))
    seconds = time.process_time() - began
    # Not getrusage: it would tell the parent's peak, from before the exec.
    [peak] = re.findall(r"VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    print(json.dumps({"per_second": count / seconds, "peak_mib": int(peak) / 1024}))


def _seconds(drain: Callable[[Path], Iterator[object]], path: Path) -> float:
    began = time.process_time()
    for _ in drain(path):
        pass
    return time.process_time() - began


def _csv_dicts(path: Path) -> Iterator[object]:
    with path.open(newline="", encoding="utf-8") as text:
        reader = csv.reader(text)
        names = next(reader)
        for cells in reader:
            yield dict(zip(names, cells, strict=True))


def _json_loads(path: Path) -> Iterator[object]:
    with path.open(encoding="utf-8") as text:
        yield from map(json.loads, text)


def _split(path: Path) -> Iterator[object]:
    """No parser at all: the whole text split at once, so that nothing can be faster."""
    for segment in path.read_text(encoding="utf-8").replace("\n", "").split("~"):
        yield segment.split("*")


_LIMITS = {Format.CSV: _csv_dicts, Format.JSON_LINES: _json_loads, Format.X12: _split}
_LIMIT_NAMES = {Format.CSV: "csv.reader and dict", Format.JSON_LINES: "json.loads", Format.X12: "str.split"}

if __name__ == "__main__":
    main()
