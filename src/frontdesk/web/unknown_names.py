"""Fields and query parameters that the service does not know: every response names them, and the known name that is near.

A response without them costs nothing for it.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from frontdesk.errors import Fault, Invalid, unknown_faults
from frontdesk.text import SHOWN_NAMES, nearest_name, shown_name
from frontdesk.web.request import Request
from frontdesk.web.response import name_list


def note_ignored_fields(
    request: Request, names: Sequence[str], likely_name: Callable[[str], str | None]
) -> None:
    """Name the body's unknown fields in whatever response follows, a refusal too. With `Prefer: handling=strict` they are faults,
    not ignored. `likely_name` is the known name that may have been meant."""
    _note_likely_names(request, names, likely_name)
    if not request.prefers_strict():
        request.extra_headers += ((b"ignored-fields", name_list(names)),)


def check_parameters(request: Request, known: Collection[str], *, strict: bool) -> None:
    """Name the query's unknown parameters in whatever response follows. Raises Invalid for them and for known ones that are
    repeated, if `strict` or with `Prefer: handling=strict`."""
    sent = Counter(name for name, _ in request.query_pairs)
    unknown = [name for name in sent if name not in known]
    if not unknown:
        return
    _note_likely_names(request, unknown, lambda name: nearest_name(name, known))
    if strict or request.prefers_strict():
        repeated = [name for name in known if sent[name] > 1]
        faults = [Fault(name, "repeated", "must be given once") for name in repeated]
        raise Invalid([*faults, *unknown_faults(unknown, what="parameter")])
    request.extra_headers += ((b"ignored-parameters", name_list(unknown)),)


def _note_likely_names(
    request: Request, names: Sequence[str], likely_name: Callable[[str], str | None]
) -> None:
    likely = {shown_name(name): likely_name(name) for name in names[:SHOWN_NAMES]}
    near = {name: known for name, known in likely.items() if known is not None}
    request.did_you_mean = {**request.did_you_mean, **near}
