"""Helpers for a sandbox installation: a demo account, moving queues and invented members.

No other part of the product imports this package. The command line loads its three commands by name.
"""

from frontdesk.sandbox.demo import demo
from frontdesk.sandbox.sample import sample
from frontdesk.sandbox.simulate import simulate

__all__ = ["demo", "sample", "simulate"]
