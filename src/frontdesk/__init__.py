"""The front desk of a virtual-care platform: plans, their queues, eligible members, invitations."""

from pathlib import Path

__version__ = "0.1.0"
_revision = Path(__file__).with_name("revision")  # that `make wheel` writes
_found = _revision.read_text().strip() if _revision.exists() else "unknown"
# The sandbox is a wheel of its own, which production does without.
HAS_SANDBOX = Path(__file__).with_name("sandbox").joinpath("__init__.py").exists()
SANDBOX_WHEEL = f"frontdesk_sandbox-{__version__}-py3-none-any.whl"
PROGRAM = {"version": __version__, "revision": _found}
