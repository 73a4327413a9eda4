"""A sandbox: scripted outcomes for tests of integrators, the reset of an account, and invented data:
a demo account, members, files, moving queues.

Only the root (`installation`) and the commands `demo`, `sample` and `queue simulate` import this
package, and only when they are called.
"""

ACCOUNT = "Demo Health"  # the name of the demo's account
# How the sample 834s name their members.
SAMPLE_MAPPING = {"834": {"identify": "REF*0F+person_code"}}
