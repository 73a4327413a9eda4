"""The service gives every answer that the OpenAPI document describes, as the document describes it.

The test fails for a described answer that no call brings about, and for an answer with anything
that is not described.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import frontdesk
from frontdesk.access.accounts import set_state
from frontdesk.access.model import AccountState, Scope
from frontdesk.api.paths import Path as UrlPath
from frontdesk.api.routes import ENDPOINTS
from frontdesk.db import Database
from frontdesk.files import set_file_settings
from frontdesk.files.model import EligibilityFile
from frontdesk.formats.model import Format
from frontdesk.interface.document import read_examples
from frontdesk.interface.operations import FILE_TYPES, Operation
from tests.api.conftest import Files
from tests.api.reference import DOCUMENT, operations, schema_validator
from tests.conftest import Api, SetClock
from tests.factories import NOW, Customer, make_customer, make_operator, member_body, second_token
from tests.files.loading import Desk, csv_of, row
from tests.interface.made import BASE_URL, resolved

EXAMPLES = read_examples(BASE_URL)
UPLOADS = {
    name: example["value"]
    for name, example in EXAMPLES["requests"]["uploadEligibilityFile"].items()
}
CSV = UPLOADS["csv"]

OPERATIONS = {
    operation["operationId"]: (path, method, operation) for path, method, operation in operations()
}
ACCEPT = "acceptEligibilityFileMapping"


def those(is_one: Callable[[Operation], bool]) -> set[str]:
    """The ids of the operations for which this is true."""
    return {operation.id for operation in ENDPOINTS if is_one(operation)}


def that_name(parameter: str) -> set[str]:
    """The ids of the operations with this parameter in their path."""
    return those(lambda each: f"{{{parameter}}}" in each.path)


OF_V2 = those(lambda each: each.is_of_v2)
OF_TOKENS = those(lambda each: each.asks_token)
OF_JSON = those(lambda each: each.takes_json and not each.takes_lines)
METADATA = "describeAuthorizationServer"
OF_OAUTH = those(lambda each: "oauth_errors" in each.contract)
POSTS = those(lambda each: each.method == "POST")
OF_FILES = that_name("file_id")
OF_DECISIONS = OF_FILES & POSTS
OF_LISTS = those(lambda each: each.path.endswith("/eligibility-files")) - POSTS
OF_ONE_MAPPING = that_name("mapping_name")
OF_MAPPINGS = those(lambda each: each.group == "Mappings")
OF_MEMBERS = those(lambda each: each.group == "Members")
OF_CHANGES = that_name("eligibility_id") & POSTS
OF_EVENTS = those(lambda each: each.scope is Scope.EVENTS_READ)
OF_ENDPOINT = that_name("endpoint_id")
OF_WEBHOOKS = those(lambda each: each.scope is Scope.WEBHOOKS_MANAGE)

# that their paths don't have
OTHER_METHODS = dict.fromkeys(OF_MAPPINGS, "PATCH") | dict.fromkeys(OF_WEBHOOKS, "PUT")

# These need a fault, a race or ten seconds, and have tests of their own; a test below looks their
# words up in the code.
NOT_CALLED = {"408/slow", "409/raced", "409/in_flight", "500/internal", "503/busy"}
# Members of a problem that are the request's own.
REQUEST_MEMBERS = {"instance", "request_id"}
# Headers that OpenAPI leaves to HTTP.
OF_HTTP = {"content-type", "content-length", "date", "server"}


class OperationCaller:
    """Sends requests to one operation."""

    def __init__(
        self, name: str, api: Api, db: Database, customer: Customer, clock: SetClock
    ) -> None:
        self.name = name
        self.path, self.method, self.operation = OPERATIONS[name]
        self.db = db
        self.customer = customer
        self.desk = Desk(db, customer, clock)
        # One that the operation takes.
        needed = {"metrics": Scope.OPERATOR} | dict.fromkeys(OF_MEMBERS, Scope.ELIGIBILITY_READ)
        needed |= dict.fromkeys(OF_EVENTS, Scope.EVENTS_READ) | dict.fromkeys(
            OF_WEBHOOKS, Scope.WEBHOOKS_MANAGE
        )
        self.scope = needed.get(name, Scope.CUSTOMER)
        self.api = self.as_client(Scope.OPERATOR, api) if name == "metrics" else api
        if name in OF_MEMBERS | OF_EVENTS | OF_WEBHOOKS:
            self.api = api.as_(second_token(db, customer.account_id, Scope.CUSTOMER, self.scope))
        self.member = self.endpoint = 0
        if name in OF_CHANGES:
            self.member = self.enrol("AB 123356", email=None).json()["id"]
        if name in OF_MEMBERS:
            self.member = self.enrol("AB 123356").json()["id"]
        if name in OF_WEBHOOKS - {"createWebhookEndpoint"}:
            made = self.api.post("/v2/webhook-endpoints", request("createWebhookEndpoint"))
            self.endpoint = made.json()["data"]["id"]
        self.file = self.load(CSV).id if name in OF_FILES else 0
        self.secret = {"client_id": customer.client_id, "client_secret": customer.client_secret}

    def as_client(self, scope: Scope, api: Api, *, limit: int | None = None) -> Api:
        if scope is Scope.OPERATOR:
            return api.as_(make_operator(self.db, requests_per_minute=limit).token)
        name = f"Client {scope} {limit}"
        scopes = frozenset({scope})
        return api.as_(
            make_customer(self.db, name=name, scopes=scopes, requests_per_minute=limit).token
        )

    def send(
        self, *, method: str = "", query: str = "", api: Api | None = None, **options: Any
    ) -> Any:
        plan = options.pop("plan", self.customer.plan_ids[0])
        asset = options.pop("asset", "site.js")
        path = self.path.replace("{plan_id}", str(plan)).replace("{asset}", asset)
        path = path.replace("{eligibility_id}", str(options.pop("member", self.member)))
        path = path.replace("{endpoint_id}", str(options.pop("endpoint", self.endpoint)))
        path = path.replace("{file_id}", str(options.pop("file", self.file)))
        path = path.replace("{mapping_name}", options.pop("mapping", "hr-export"))
        return (api or self.api).request(method or self.method, path + query, **options)

    def enrol(self, external_id: str, **fields: Any) -> Any:
        body = request("enrolMember", "new_member") | {"external_id": external_id} | fields
        if external_id != "AB 123356":
            body |= {"member_id": external_id, "email": None}
        return self.api.post(f"/v2/plans/{self.customer.plan_ids[0]}/eligibility", body)

    def raw(self, body: bytes, content_type: str = "application/json") -> Any:
        return self.send(content=body, headers={"Content-Type": content_type})

    def load(self, content: str, *, full: bool = False) -> EligibilityFile:
        return self.desk.load(content.encode(), full=full, format=Format.CSV)

    def form(self, **parameters: str) -> Any:
        """A request to /oauth with these parameters and the client's."""
        form = {"grant_type": "client_credentials", "token": "unknown"} | self.secret | parameters
        return self.send(data=form)

    def again(self, **options: Any) -> Any:
        """A second read, with the ETag of the first."""
        return self.send(headers={"If-None-Match": self.send().headers["ETag"]}, **options)


Call = Callable[[OperationCaller], Any]


def request(operation: str, name: str = "example") -> Any:
    """The body of a request that the document shows."""
    return EXAMPLES["requests"][operation][name]["value"]


def before_a_migration(caller: OperationCaller) -> Any:
    with caller.db.write() as tx:
        tx.exec_driver_sql("UPDATE alembic_version SET version_num = '0' || version_num")
    return caller.send()


def with_two_tokens(caller: OperationCaller) -> Any:
    path = re.sub(r"{\w+}", "1", caller.path)
    return caller.api.http.request(caller.method, path, headers=[("Authorization", "Bearer x")] * 2)


def with_too_narrow_a_token(caller: OperationCaller) -> Any:
    other = Scope.CUSTOMER if caller.scope is Scope.OPERATOR else Scope.OPERATOR
    return caller.send(api=caller.as_client(other, caller.api))


def of_a_suspended_account(caller: OperationCaller) -> Any:
    suspended = make_customer(caller.db, name="Suspended")
    with caller.db.write() as tx:
        set_state(tx, suspended.account_id, AccountState.SUSPENDED, now=NOW)
    return caller.send(api=caller.api.as_(suspended.token))


def beyond_the_limit(caller: OperationCaller) -> Any:
    limited = caller.as_client(caller.scope, caller.api, limit=1)
    caller.send(api=limited)
    return caller.send(api=limited)


def after_many_failures(caller: OperationCaller) -> Any:
    for _ in range(10):
        caller.form(client_secret="wrong")
    return caller.form(client_secret="wrong")


def with_invalid_fields(caller: OperationCaller) -> Any:
    if caller.name == ACCEPT:
        return with_a_file_that_needs_a_mapping(caller, {"834": {"verify": "full"}})
    query, body = INVALID.get(caller.name, ("?plan=gold", {}))
    headers = {} if caller.name in INVALID else {"Prefer": "handling=strict"}
    return caller.send(query=query, headers=headers, **({"json": body} if body else {}))


def under_another_plan(caller: OperationCaller) -> Any:
    return caller.send(
        query="?move=false", plan=caller.customer.plan_ids[1], json={"external_id": "AB 123356"}
    )


def with_a_waiting_file(caller: OperationCaller) -> Any:
    return caller.send(file=caller.desk.hand_in(CSV.encode(), format=Format.CSV).id)


def with_a_held_file(caller: OperationCaller) -> Any:
    # of the 40 members `CSV` names one
    caller.load(csv_of(row(number) for number in range(39)).decode())
    return caller.send(file=caller.load(CSV, full=True).id)


def with_a_file_of_the_same_person(caller: OperationCaller) -> Any:
    with caller.db.write() as tx:
        set_file_settings(tx, caller.customer.account_id, second_approver=True)
    caller.desk.client = caller.customer.client_id
    return with_a_held_file(caller)


def with_a_file_that_needs_a_mapping(
    caller: OperationCaller, mapping: dict[str, Any] | None = None
) -> Any:
    return caller.send(
        file=caller.desk.load(UPLOADS["834"].encode(), mapping={}).id, json=mapping or {}
    )


def with_a_mapping(caller: OperationCaller) -> Any:
    body = request("saveEligibilityMapping")
    caller.api.request("PUT", "/v2/eligibility-mappings/hr-export", json=body)
    return caller.send(json=body) if caller.method == "PUT" else caller.send()


def of_two_members(caller: OperationCaller) -> Any:
    caller.enrol("AB 123357")
    return caller.send(query="?page[size]=1")


def with_two_changes(caller: OperationCaller) -> Any:
    body = {"external_id": "AB 123356", "city": "Salem"}
    caller.api.post(f"/v2/plans/{caller.customer.plan_ids[0]}/eligibility", body)
    return caller.send(query="?page[size]=1")


def with_two_events(caller: OperationCaller) -> Any:
    assert caller.send().status_code == 200  # begins the feed
    for number in range(2):
        caller.api.post(f"/v2/plans/{caller.customer.plan_ids[0]}/eligibility", member_body(number))
    return caller.send(query="?page[size]=1")


def with_a_paused_endpoint(caller: OperationCaller) -> Any:
    caller.api.patch(f"/v2/webhook-endpoints/{caller.endpoint}", {"state": "paused"})
    return caller.send()


WRONG = {"dob": "1977-02-30", "phone": "555", "metadata": {"color": 7}}
# Query and body that are answered with the faults of the operation's example.
INVALID: dict[str, tuple[str, Any]] = {
    "listEligibleMembers": ("?updated_since=yesterday&page[size]=0", {}),
    "listEligibleMemberHistory": ("?page[size]=0", {}),
    "findEligibleMembers": ("", {}),
    "createWebhookEndpoint": ("", {"url": "http://hooks.example.com", "state": "off"}),
    "changeWebhookEndpoint": ("", {"event_types": "all"}),
    "replayWebhookEndpoint": ("", {"event_id": "evt_1", "since": "2026-11-20"}),
    "listEvents": ("?page[size]=0", {}),
    "listPlans": ("?page[size]=0&page[after]=first", {}),
    "changePlan": ("", {"name": " ", "active": False}),
    "enrolMember": ("", request("enrolMember", "new_member") | WRONG),
    "enrolMembers": ("?only=all&move=no", request("enrolMembers")),
    "endMember": ("", {"on": "2027-02-30"}),
    "renameMember": ("", {"external_id": " ", "member_id": 7}),
    "uploadEligibilityFile": ("?mode=all&dry_run=yes&format=pdf", {}),
    "listEligibilityFiles": ("?state=open&sha256=none", {}),
    "listEligibilityFilesOfPlan": ("?state=open&sha256=none", {}),
    "reportEligibilityFile": ("?format=pdf", {}),
    "saveEligibilityMapping": (
        "",
        {"columns": {"Sex": "sex"}, "fields": {"dob": {"dates": ["MM/DD/YY"]}}},
    ),
}

# Operations, the answer as `status/example`, and the call that brings it about, or what is sent.
CALLS: tuple[tuple[set[str], str, Call | dict[str, Any]], ...] = (
    ({"listPlans"}, "200/every_plan", {}),
    ({"listPlans"}, "200/first_page", {"query": "?page[size]=1"}),
    ({"listPlans"}, "200/no_match", {"query": "?external_id=bronze"}),
    ({"listPlans", "showPlan"}, "304/", OperationCaller.again),
    ({"showPlan", "showCaller", "isAlive", "isReady"}, "200/example", {}),
    ({"changePlan"}, "200/example", {"json": request("changePlan")}),
    ({"enrolMember"}, "201/example", {"json": request("enrolMember", "new_member")}),
    ({"enrolMember"}, "200/example", {"json": request("enrolMember", "change")}),
    ({"showEligibleMember"}, "200/example", {}),
    ({"showEligibleMember"}, "304/", OperationCaller.again),
    ({"listEligibleMemberHistory"}, "200/page", with_two_changes),
    ({"listEligibleMembers"}, "200/page", of_two_members),
    (
        {"listEligibleMembers", "findEligibleMembers"},
        "200/found",
        {"query": "?external_id=AB%20123356"},
    ),
    ({"findEligibleMembers"}, "200/no_match", {"query": "?external_id=AB%20999999"}),
    ({"listEvents"}, "200/no_event", {}),
    ({"createWebhookEndpoint"}, "201/example", {"json": request("createWebhookEndpoint")}),
    ({"changeWebhookEndpoint"}, "200/example", {"json": request("changeWebhookEndpoint")}),
    ({"listWebhookEndpoints", "showWebhookEndpoint", "rotateWebhookSecret"}, "200/example", {}),
    ({"testWebhookEndpoint"}, "202/example", {}),
    ({"replayWebhookEndpoint"}, "202/example", {"json": request("replayWebhookEndpoint")}),
    ({"testWebhookEndpoint"}, "409/wrong_state", with_a_paused_endpoint),
    ({"listEvents"}, "410/cursor_unknown", {"query": "?page[after]=evt_871_42"}),
    ({"replayWebhookEndpoint"}, "410/cursor_unknown", {"json": {"event_id": "evt_871_42"}}),
    ({"deleteWebhookEndpoint"}, "204/", {}),
    (OF_ENDPOINT, "404/not_found", {"endpoint": 999_999, "json": {}}),
    ({"listEvents"}, "200/page", with_two_events),
    ({"issueToken"}, "200/example", lambda caller: caller.form(scope="customer")),
    ({"revokeToken"}, "200/", lambda caller: caller.form()),
    ({METADATA}, "200/example", {}),
    (
        {
            "document",
            "referencePage",
            "referenceFile",
            "listProblems",
            "listDocumentation",
            "metrics",
        },
        "200/",
        {},
    ),
    (
        {"uploadEligibilityFile"},
        "200/suggestion",
        {"query": "?suggest_mapping=true", "content": CSV.encode()},
    ),
    ({"uploadEligibilityFile"}, "202/waiting", lambda caller: caller.raw(CSV.encode(), "text/csv")),
    ({"showEligibilityFile"}, "200/waiting", with_a_waiting_file),
    ({"showEligibilityFile"}, "200/done", {}),
    ({"showEligibilityFile"}, "200/held", with_a_held_file),
    (
        {"showEligibilityFile"},
        "200/failed",
        lambda caller: caller.send(file=caller.load("Name,Born on\nRobin Sample,1977-01-11\n").id),
    ),
    ({"approveEligibilityFile"}, "200/approved", with_a_held_file),
    ({"approveEligibilityFile"}, "403/second_person_needed", with_a_file_of_the_same_person),
    ({ACCEPT}, "200/accepted", with_a_file_that_needs_a_mapping),
    ({"cancelEligibilityFile"}, "200/cancelled", with_a_held_file),
    ({"undoEligibilityFile"}, "202/waiting", {}),
    (OF_LISTS, "200/example", {}),
    ({"reportEligibilityFile"}, "200/jsonl", {}),
    ({"reportEligibilityFile"}, "200/csv", {"query": "?format=csv"}),
    ({"saveEligibilityMapping"}, "201/example", {"json": {}}),
    (
        {"listEligibilityMappings", "showEligibilityMapping", "saveEligibilityMapping"},
        "200/example",
        with_a_mapping,
    ),
    ({"deleteEligibilityMapping"}, "204/", with_a_mapping),
    (OF_ONE_MAPPING - {"saveEligibilityMapping"}, "404/not_found", {"mapping": "another"}),
    (OF_TOKENS, "400/two_tokens", with_two_tokens),
    (OF_JSON, "400/not_json", lambda caller: caller.raw(b"{")),
    (OF_JSON, "400/not_an_object", lambda caller: caller.raw(b"[]")),
    (OF_JSON, "400/duplicate_keys", lambda caller: caller.raw(b'{"name": "a", "name": "b"}')),
    (
        OF_OAUTH,
        "400/invalid_request",
        lambda caller: caller.send(json=caller.secret, auth=tuple(caller.secret.values())),
    ),
    ({"issueToken"}, "400/invalid_scope", lambda caller: caller.form(scope="operator")),
    (
        {"issueToken"},
        "400/unsupported_grant_type",
        lambda caller: caller.form(grant_type="password"),
    ),
    (OF_TOKENS, "401/no_token", lambda caller: caller.send(api=caller.api.as_(None))),
    (OF_TOKENS, "401/bad_token", lambda caller: caller.send(api=caller.api.as_("unknown"))),
    (OF_OAUTH, "401/invalid_client", lambda caller: caller.form(client_secret="wrong")),
    (OF_TOKENS - {"showCaller"}, "403/forbidden", with_too_narrow_a_token),
    (OF_V2, "403/suspended", of_a_suspended_account),
    (OF_FILES, "404/not_found", {"file": 999_999, "json": {}}),
    (
        OF_CHANGES,
        "404/not_found",
        {"member": 999_999, "json": {"on": "2027-01-31", "external_id": "N-77"}},
    ),
    ({"enrolMembers"}, "207/example", {"json": request("enrolMembers")}),
    ({"enrolMembers"}, "400/not_an_array", lambda caller: caller.raw(b"{}")),
    ({"enrolMembers"}, "413/large", lambda caller: caller.raw(b" " * (8 * 1024 * 1024 + 1))),
    (OF_CHANGES, "200/example", lambda caller: caller.send(json=request(caller.name))),
    (
        {"enrolMember"},
        "404/no_such_member",
        {"query": "?only=update", "json": {"external_id": "AB unknown"}},
    ),
    ({"enrolMember"}, "409/other_plan", under_another_plan),
    (
        {"enrolMember"},
        "412/member_exists",
        {"json": request("enrolMember", "new_member"), "headers": {"If-None-Match": "*"}},
    ),
    (
        OF_V2
        - OF_FILES
        - OF_MAPPINGS
        - {"listPlans", "listEligibilityFiles", "enrolMembers", "findEligibleMembers", "showCaller"}
        - OF_CHANGES
        - OF_EVENTS
        - OF_WEBHOOKS,
        "404/not_found",
        {"plan": 999_999, "json": {"external_id": "1"}},
    ),
    ({"enrolMembers"}, "404/not_found", {"plan": 999_999, "json": [{}]}),
    ({"referenceFile"}, "404/not_found", {"asset": "page.css"}),
    (
        set(OPERATIONS),
        "405/method",
        lambda caller: caller.send(method=OTHER_METHODS.get(caller.name, "DELETE")),
    ),
    (
        OF_V2 - {"reportEligibilityFile"} | OF_OAUTH | {"document", "isAlive", "isReady", METADATA},
        "406/accept",
        {"headers": {"Accept": "text/html"}},
    ),
    ({"changePlan"}, "412/stale", {"json": {}, "headers": {"If-Match": '"v7"'}}),
    (OF_JSON | OF_OAUTH, "413/large", lambda caller: caller.raw(b" " * 65_537)),
    ({"uploadEligibilityFile"}, "413/large", {"headers": {"Content-Length": str(2**31)}}),
    (
        OF_JSON | OF_OAUTH | {"enrolMembers"},
        "415/type",
        lambda caller: caller.raw(b"{}", "text/plain"),
    ),
    (
        {"uploadEligibilityFile"},
        "415/contradicted",
        lambda caller: caller.raw(b'{"external_id": "1"}', "text/csv"),
    ),
    (
        {"uploadEligibilityFile"},
        "415/form",
        lambda caller: caller.raw(b"x", "multipart/form-data; boundary=x"),
    ),
    (OF_V2, "422/faults", with_invalid_fields),
    (OF_DECISIONS - {"undoEligibilityFile"}, "409/wrong_state", {"json": {}}),
    ({"undoEligibilityFile"}, "409/wrong_state", with_a_waiting_file),
    (set(OPERATIONS), "431/long", {"headers": {"X-Long": "x" * 16_384}}),
    (OF_TOKENS, "429/limited", beyond_the_limit),
    (OF_OAUTH, "429/rate_limited", after_many_failures),
    ({"isReady"}, "503/not_migrated", before_a_migration),
)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_answer_that_is_described_is_given_as_described(
    name: str, api: Api, db: Database, customer: Customer, clock: SetClock
) -> None:
    caller = OperationCaller(name, api, db, customer, clock)
    calls = {what: call for names, what, call in CALLS if name in names}
    assert set(calls) == set(described(caller.operation)) - NOT_CALLED
    for what, call in calls.items():
        status, _, example = what.partition("/")
        answer = caller.send(**call) if isinstance(call, dict) else call(caller)
        assert (what, answer.status_code) == (what, int(status)), answer.text
        response = resolved(caller.operation["responses"][status])
        check_headers(answer, response["headers"])
        check_body(answer, response, example)


def described(operation: dict[str, Any]) -> Iterator[str]:
    """`status/example` of every answer; `status/` where there is no example."""
    for status, response in operation["responses"].items():
        answer = resolved(response)
        contents = answer.get("content", {}).values()
        names = {name for content in contents for name in content.get("examples", {})}
        yield from (f"{status}/{name}" for name in names or {""})


def check_headers(answer: Any, headers: dict[str, Any]) -> None:
    headers = {name.lower(): resolved(header) for name, header in headers.items()}
    assert set(answer.headers) - set(headers) - OF_HTTP == set()
    needed = {name for name, header in headers.items() if header["required"]}
    needed |= {"cache-control", "pragma"} & set(headers) if answer.status_code < 400 else set()
    needed |= {"www-authenticate"} if answer.status_code == 401 else set()
    assert needed - set(answer.headers) == set()
    for name, value in answer.headers.items():
        if name in headers:
            schema = headers[name]["schema"]
            assert schema_validator(schema).is_valid(
                int(value) if schema.get("type") == "integer" else value
            )


def undeclared_members(schema: dict[str, Any], body: Any) -> list[str]:
    """The members of objects in the body that their schemas, which stay open, do not name."""
    schema = resolved(schema)
    if isinstance(body, list):
        return [name for each in body for name in undeclared_members(schema.get("items", {}), each)]
    properties = schema.get("properties")
    if not isinstance(body, dict) or not properties or "additionalProperties" in schema:
        return []
    found = sorted(body.keys() - properties.keys())
    for name, value in body.items():
        if name in properties:
            found += undeclared_members(properties[name], value)
    return found


def check_body(answer: Any, response: dict[str, Any], example: str) -> None:
    if not response.get("content"):
        assert (answer.content, answer.headers.get("Content-Type")) == (b"", None)
        return
    content = response["content"][answer.headers["Content-Type"].partition(";")[0]]
    is_json = content["schema"].get("type") != "string" and "json" in answer.headers["Content-Type"]
    if is_json and "ndjson" not in answer.headers["Content-Type"]:
        schema_validator(content["schema"]).validate(answer.json())
        assert undeclared_members(content["schema"], answer.json()) == []
    if "examples" not in content:
        return
    shown = content["examples"][example]["value"]
    if isinstance(shown, str):
        assert answer.text == shown
        return
    body = answer.json()
    if answer.status_code >= 400:
        own = {member: shown[member] for member in REQUEST_MEMBERS if member in shown}
        if "remedy" in shown:  # its path has the ids of the request
            own["remedy"] = body["remedy"] | {"path": shown["remedy"]["path"]}
        assert body | own == shown
    elif "member_id" in body:
        assert body == shown | {"id": body["id"]}
    elif "report" in body.get("links", {}):
        ids = {
            name: body["data"][name]
            for name in ("id", "undoes_id", "client")
            if shown["data"][name]
        }
        assert body["data"] == shown["data"] | ids
    else:
        assert set(body) == set(shown)
        links, shown_links = (re.sub(r"\d+", "N", str(each.get("links"))) for each in (body, shown))
        assert links == shown_links


def test_the_words_of_answers_that_no_call_brings_about_are_the_services() -> None:
    package = Path(frontdesk.__file__).parent
    code = "".join(
        path.read_text() for path in package.rglob("*.py") if not path.name.startswith("openapi")
    )
    names = {what.partition("/")[2] for what in NOT_CALLED}
    problems = EXAMPLES["problems"].values()
    words = {text for details in problems for name, text in details.items() if name in names}
    assert len(words) == 6
    assert [text for text in words if text not in code] == []


@pytest.mark.parametrize(("media_type", "kind"), FILE_TYPES.items())
def test_every_file_that_is_shown_can_be_loaded(media_type: str, kind: str, files: Files) -> None:
    shown = DOCUMENT["paths"][UrlPath.FILES]["post"]["requestBody"]["content"][media_type][
        "examples"
    ]
    assert set(shown) == {kind}
    mapping = {"834": {"identify": "REF*0F"}}
    files.api.request("PUT", "/v2/eligibility-mappings/default?default=true", json=mapping)
    any_file = media_type == "application/octet-stream"
    for name in UPLOADS if any_file else shown:
        taken = files.upload(UPLOADS[name].encode(), kind=media_type)
        assert taken.json()["data"]["format"] == (None if any_file else name)
        assert files.work()
        ended = files.file(taken)
        assert (ended["state"], ended["problem"], ended["format"]) == ("done", None, name)
        assert set(ended["counts"]) <= {"created", "updated", "unchanged", "refused", "warned"}
