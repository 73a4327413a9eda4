"""The front desk of a virtual-care platform: plans, their queues, eligible members, invitations."""

from pathlib import Path

__version__ = "0.1.0"
_revision = Path(__file__).with_name("revision")  # that `make wheel` writes
_found = _revision.read_text().strip() if _revision.exists() else "unknown"
PROGRAM = {"version": __version__, "revision": _found}
