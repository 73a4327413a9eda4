"""Schemathesis against a live server: whatever it makes of the OpenAPI document, the service
answers as the document says.

It sends the examples, every limit and every violated rule, random requests, and chains of them,
each with every check that Schemathesis has. The seed is fixed, so that an ordinary run is the same
each time.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from itertools import count
from pathlib import Path
from typing import Any

from hypothesis import strategies
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, HookContext, openapi
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder
from schemathesis.generation.meta import TestPhase
from schemathesis.schemas import BaseSchema

from frontdesk.api.paths import Path as UrlPath
from frontdesk.api.routes import ENDPOINTS, GROUPS, REMEDIES
from frontdesk.clock import system_clock
from frontdesk.db import Database
from frontdesk.interface.document import openapi_document
from tests.factories import EVERY_SCOPE, Customer, make_customer, member_body
from tests.faults.callers import LEVEL, SEED, times
from tests.faults.server import Server

# On each of the two databases; the random ones are per operation, beside those of every run.
CASES = 2_000
RANDOM_REQUESTS = times(8, long=3_600)
CHAINS = times(4, long=600)

# Values of optional parameters with which more than a refusal can be got.
EXAMPLES = {"if_match": "*", "external_id": "plan-0", "page_size": 1, "prefer": "handling=strict"}

FEW_NAMES = 20
NUMBERS = count()  # of requests with a key

ACCEPTED = ("2xx", "3xx", "401", "403", "404", "429")
REJECTED = ("400", "401", "403", "404", "405", "406", "415", "422", "429")


def test_the_service_answers_as_its_document_says(
    database_url: str, db: Database, tmp_path: Path
) -> None:
    customer = make_customer(db, scopes=EVERY_SCOPE, now=system_clock())
    statuses: Counter[int] = Counter()
    failures: list[str] = []
    with Server(database_url, tmp_path / "log") as server:
        for event in from_schema(live_schema(server.port, customer)).execute():
            if isinstance(event, events.ScenarioFinished):
                answers = [
                    interaction.response for interaction in event.recorder.interactions.values()
                ]
                statuses.update(answer.status_code if answer else 0 for answer in answers)
                failures += told(event.recorder)
            elif isinstance(event, events.NonFatalError | events.FatalError):
                failures.append(
                    str(getattr(event, "value", None) or getattr(event, "exception", event))
                )
    assert not failures, f"{len(failures)} failures:\n\n" + "\n\n".join(failures[:10])
    assert statuses.total() >= CASES
    assert {200, 201, 202, 400, 401, 404, 405, 415, 422} <= set(statuses)


def live_schema(port: int, customer: Customer) -> BaseSchema:
    address = f"http://127.0.0.1:{port}"
    basic = {"username": customer.client_id, "password": customer.client_secret}
    settings: dict[str, Any] = {
        "seed": 20_261_121 + SEED,
        "base-url": address,
        "request-timeout": 60,
        "continue-on-failure": True,
        "suppress-health-check": ["all"],
        "auth": {"openapi": {"token": {"bearer": customer.token}, "basic": basic}},
        "generation": {
            "max-examples": RANDOM_REQUESTS,
            "no-shrink": LEVEL == "",
            "database": "none",
        },
        "phases": {
            "coverage": {"generate-duplicate-query-parameters": True},
            # What answers teach would make the requests depend on times and ids, and the fields
            # that a new member needs pass for needed everywhere.
            "fuzzing": {
                "extra-data-sources": {"responses": False},
                "error-feedback": {"enabled": False},
            },
            "stateful": {"generation": {"max-examples": CHAINS}},
        },
        "operations": list(exceptions()),
    }
    # A copy: examples are written into it, and its parts are the tables of the package.
    document = deepcopy(openapi_document(address, GROUPS, ENDPOINTS, REMEDIES))
    for name, example in EXAMPLES.items():
        document["components"]["parameters"][name]["example"] = example
    contents = document["paths"][UrlPath.FILES]["post"]["requestBody"]["content"]
    csv = contents["text/csv"]["examples"]["csv"]["value"]
    # A strategy belongs to a media type everywhere, and all other bodies of JSON follow their
    # schemas.
    contents.pop("application/json", None)
    for media_type, content in contents.items():
        # Schemathesis takes examples of such bodies from a strategy only.
        shown = content.pop("examples", {}).values()
        openapi.media_type(
            media_type, file_contents([example["value"] for example in shown] or [csv])
        )
    schema = openapi.from_dict(document, config=SchemathesisConfig.from_dict(settings))
    schema.hook("map_case")(completed)
    return schema


def file_contents(examples: list[str]) -> SearchStrategy[bytes]:
    """Files as they should be, and any bytes."""
    good = [example.encode() for example in examples]
    return strategies.one_of(
        strategies.sampled_from([*good, gzip.compress(good[0])]), strategies.binary()
    )


def exceptions() -> Iterator[dict[str, Any]]:
    """What a schema can't tell: that a value is taken, that a new member needs more, how a client
    proves itself, that a version is stale, in which state a file is, under which plan a member is.
    Such requests are refused although they fit the schema. All other checks hold everywhere.
    """
    yield expecting("enrolMember", "409 422")  # move=false, and the member is under another plan
    yield expecting("listEligibleMembers", "422")  # an identifier stands alone, a date exists
    yield expecting("findEligibleMembers", "422")
    # An address is judged by more than its letters, an event and a time too.
    for name in ("createWebhookEndpoint", "changeWebhookEndpoint"):
        yield expecting(name, "422")
    # A place in the feed may be unknown, or deleted already.
    yield expecting("replayWebhookEndpoint", "410 422")
    yield expecting("listEvents", "410")
    yield expecting("enrolMembers", "422", "207")  # each record has its own status
    for name in ("endMember", "renameMember"):
        yield expecting(name, "422")
    yield expecting("changePlan", "412 422", "412")
    # A file is judged by its content, which no schema tells: by the worker, or where a mapping is
    # asked for at once.
    yield expecting("uploadEligibilityFile", "400 409 415 422", "200 202")
    on_state = (
        "approveEligibilityFile",
        "cancelEligibilityFile",
        "undoEligibilityFile",
        "testWebhookEndpoint",
    )
    for operation in on_state:
        yield expecting(operation, "409")
    for operation in ("issueToken", "revokeToken"):
        yield expecting(operation, "400")
    few = {"phases": {"fuzzing": {"generation": {"max-examples": 5}}}}
    for operation in [
        "document",
        "referencePage",
        "referenceFile",
        "listProblems",
        "listDocumentation",
        "isAlive",
        "isReady",
        "metrics",
    ]:
        yield expecting(operation) | few


def expecting(operation: str, accepted: str = "", rejected: str = "") -> dict[str, Any]:
    checks = {
        "positive_data_acceptance": {"expected-statuses": [*ACCEPTED, *accepted.split()]},
        "negative_data_rejection": {"expected-statuses": [*REJECTED, *rejected.split()]},
    }
    return {"include-operation-id": operation, "checks": checks}


def completed(_context: HookContext, case: Case[Any]) -> Case[Any]:
    """Half of the good random members become complete ones, of whom most are new; nothing random
    has all that it takes. Good mappings get few names, because an account has 50 at most.
    """
    is_random = case.meta is not None and case.meta.phase.name in (
        TestPhase.FUZZING,
        TestPhase.STATEFUL,
    )
    is_good = case.meta is not None and case.meta.generation.mode.is_positive
    if is_random and is_good and case.path.endswith("/eligibility") and isinstance(case.body, dict):
        number = zlib.crc32(repr(sorted(case.body.items(), key=repr)).encode("utf-8", "replace"))
        if number % 2:
            given = case.body
            complete = member_body(number)
            names = {
                name for name in given if name.endswith("_name") and str(given[name]).isprintable()
            }
            case.body = complete | {
                name: given[name] for name in names | (given.keys() - complete.keys())
            }
    # Members have no versions, and conditions exclude each other.
    if is_good and "/eligibility" in case.path:
        for name in {"If-Match", "If-None-Match"} & {*case.headers}:
            del case.headers[name]
    # Of another request it would be refused.
    if is_good and "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = f"key-{next(NUMBERS)}"
    # Among the values of a wrong type are numbers, and a header is text.
    for name, value in (case.headers or {}).items():
        case.headers[name] = value if isinstance(value, str) else str(value)
    if is_good and "mapping_name" in case.path_parameters:
        name = str(case.path_parameters["mapping_name"])
        case.path_parameters["mapping_name"] = f"m{zlib.crc32(name.encode()) % FEW_NAMES}"
    return case


def told(recorder: ScenarioRecorder) -> list[str]:
    """Each failed check with the request that brought it about, as a curl command without the
    token.
    """
    return [
        f"{check.name}: {info.failure.title}. {info.failure.message}\n{info.code_sample}"
        for checks in recorder.checks.values()
        for check in checks
        if (info := check.failure_info) is not None
    ]
