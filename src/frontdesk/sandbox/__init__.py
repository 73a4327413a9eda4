"""A sandbox installation: a demo account, moving queues, invented members, and what acts for tests of integrators.

No other part of the product imports this package. The command line and the doors load its modules by name.
"""

ACCOUNT = "Demo Health"  # the name of the demo's account
