"""What the service can be asked: each function makes a call and reads its answer. Both clients have
them as methods.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from time import monotonic
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict
from urllib.parse import quote, unquote

import httpx

from frontdesk_client.content import Content, Progress, Source
from frontdesk_client.core import Call, Core, Operation, Pages, Pause, content_of, given, list_page
from frontdesk_client.errors import FileNotFinished, FileNotLoaded
from frontdesk_client.models import (
    BatchResults,
    Caller,
    Eligibility,
    EligibilityChange,
    EligibilityRecord,
    EligibleMember,
    Event,
    File,
    MappingSuggestion,
    Plan,
    PlanPatch,
    StoredMapping,
    WebhookEndpointPatch,
    WebhookTarget,
)

FileFormat: TypeAlias = Literal["csv", "jsonl", "json", "834", "xlsx"]
FileState: TypeAlias = Literal[
    "receiving", "waiting", "running", "held", "done", "failed", "cancelled"
]

WEBHOOKS = "/v2/webhook-endpoints"
ENDED_STATES = {"done", "held", "failed", "cancelled"}
FIRST_WAIT_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 5.0
PAGE_OF_PLANS = 1000
PAGE_OF_MEMBERS = 1000
PAGE_OF_FILES = 100
PAGE_OF_LINES = 5000


class VersionedPlan(NamedTuple):
    """A plan and its ETag, which `change_plan` takes as `if_match`."""

    plan: Plan
    etag: str


class Enrolment(NamedTuple):
    """What became of the record of a member."""

    outcome: str
    """`created`, `updated`, `unchanged` or `moved`; of `end_member` `ended` too"""
    member: Eligibility
    changed: tuple[str, ...]
    """Names of the changed fields"""
    invitation: str
    """`immediate`, `queued` or `none`"""
    invitation_reason: str | None
    """Why there is none, such as `no_email`"""
    left_plan: str | None
    """`external_id` of the plan that a moved member left"""
    warnings: tuple[str, ...]
    """Codes of likely mistakes; the record is written"""
    ignored_fields: tuple[str, ...]
    """Unknown fields of the record"""
    did_you_mean: dict[str, str]
    """Those of them that are like a field, with its name"""


class BatchEnrolment(BatchResults):
    """The results of a batch, and the unknown fields of all its records. A result has those of its
    own record as `ignored_fields`.
    """

    ignored_fields: list[str]
    did_you_mean: dict[str, str]


class ReportLine(TypedDict):
    """A line of the report of a file: a row has one for its outcome, and one for each fault and
    each warning.
    """

    row: int | None
    external_id: str | None
    outcome: str
    code: str
    field: str
    hint: str
    changed: list[str]
    left_plan: str | None


class Reconciliation(NamedTuple):
    """How a file differs from the members of a plan, by `external_id`. Nothing was written."""

    missing_there: list[str]
    """In the file, and not in the service: a load would create these members"""
    missing_here: list[str]
    """Members of the plan with access that the file does not list: a load of a full file would end
    their access
    """
    differs: dict[str, list[str]]
    """Members of the plan with the names of the fields that differ"""
    other_plan: dict[str, str | None]
    """Members of another plan of the account, with its `external_id`: a load would move them"""
    refused: dict[str, list[str]]
    """Rows that can't be compared, with their faults as `field: code`; a row without `external_id`
    is `row 7`
    """
    unchanged: int
    """Number of rows that equal the stored member"""

    @property
    def is_equal(self) -> bool:
        return not (
            self.missing_there
            or self.missing_here
            or self.differs
            or self.other_plan
            or self.refused
        )


# The caller


def me(core: Core) -> Operation[Caller]:
    """The account, the client and its scopes, the environment, and what is left of the limit of
    requests.
    """
    content = yield from core.json(Call("GET", "/v2/me"))
    found: Caller = content["data"]
    return found


# Plans


def plans(
    *,
    external_id: str | None = None,
    queue_interval: bool | None = None,
    patient_class: str | None = None,
) -> Pages[Plan]:
    """The account's plans in the order of `id`, or only the one with this `external_id`.

    `patient_class`: the waits are estimated for a patient of this class.
    """
    wanted = given(external_id=external_id, queue_interval=queue_interval)
    wanted |= given(**{"class": patient_class}) | {"page[size]": str(PAGE_OF_PLANS)}
    return Pages(Call("GET", "/v2/plans", wanted), list_page)


def plan(core: Core, plan_id: int) -> Operation[Plan]:
    """One plan with the values of its queue. Raises NotFound."""
    return (yield from versioned_plan(core, plan_id)).plan


def versioned_plan(core: Core, plan_id: int) -> Operation[VersionedPlan]:
    """One plan and its ETag. Raises NotFound."""
    response = yield from core.request(Call("GET", f"/v2/plans/{plan_id:d}"))
    return VersionedPlan(content_of(response)["data"][0], response.headers.get("ETag", ""))


def change_plan(
    core: Core,
    plan_id: int,
    changes: PlanPatch,
    *,
    if_match: str | None = None,
    idempotency_key: str | None = None,
) -> Operation[Plan]:
    """Change fields of a plan; absent fields keep their values. With `if_match`, PreconditionFailed
    if the plan has changed since it was read. Raises NotFound, Invalid.
    """
    headers = keyed(idempotency_key) | ({"If-Match": if_match} if if_match else {})
    content = yield from core.json(
        Call("PATCH", f"/v2/plans/{plan_id:d}", json=changes, headers=headers)
    )
    changed: Plan = content["data"][0]
    return changed


# Members


def enrol(
    core: Core,
    plan_id: int,
    member: EligibleMember,
    *,
    only: Literal["create", "update"] | None = None,
    move: bool | None = None,
    email_taken: Literal["drop"] | None = None,
    idempotency_key: str | None = None,
) -> Operation[Enrolment]:
    """Create the member, or update the one that has the `external_id`. Raises Invalid with every
    fault, NotFound.

    `only="create"`: PreconditionFailed (`member_exists`) for a stored member. `only="update"`:
    NotFound (`no_such_member`) for a new one. `move=False`: Conflict (`other_plan`) for a member of
    another plan of the account. `email_taken="drop"` writes a member without an e-mail that another
    one has, instead of refusing it.
    """
    call = Call("POST", members_path(plan_id), json=member, headers=keyed(idempotency_key))
    call = conditional(call, only, move=move, email_taken=email_taken)
    return read_enrolment((yield from core.request(call)))


def enrol_batch(
    core: Core,
    plan_id: int,
    members: Sequence[EligibleMember],
    *,
    only: Literal["create", "update"] | None = None,
    move: bool | None = None,
    email_taken: Literal["drop"] | None = None,
    idempotency_key: str | None = None,
) -> Operation[BatchEnrolment]:
    """Write up to 1,000 members in this order, each by the rules of `enrol`. A refused one stops no
    other: look at the `status` of each result. Members of another plan move with `move=True` only.
    Raises Invalid (`too_many_records`), TooLarge above
    8 MiB, NotFound; for more members upload a file.
    """
    headers = keyed(idempotency_key)
    call = Call("POST", f"{members_path(plan_id)}/batch", json=list(members), headers=headers)
    call = conditional(call, only, move=move, email_taken=email_taken)
    response = yield from core.request(call)
    results: Any = content_of(response)
    results["ignored_fields"] = [*listed(response, "Ignored-Fields")]
    results["did_you_mean"] = meant_fields(response)
    written: BatchEnrolment = results
    return written


def keyed(idempotency_key: str | None) -> dict[str, str]:
    """The header of the caller's own key. Without it the client makes one for the call."""
    return {"Idempotency-Key": idempotency_key} if idempotency_key else {}


def conditional(
    call: Call, only: str | None, *, move: bool | None, email_taken: str | None
) -> Call:
    """The call under the conditions of the caller."""
    headers = call.headers | ({"If-None-Match": "*"} if only == "create" else {})
    only_update = "update" if only == "update" else None
    params = given(only=only_update, move=move, email_taken=email_taken)
    return replace(call, headers=headers, params=params)


def end_member(
    core: Core,
    plan_id: int,
    eligibility_id: int,
    on: str | date,
    *,
    idempotency_key: str | None = None,
) -> Operation[Enrolment]:
    """Let the access of a member end; `on` is its last day, past or to come. Raises NotFound,
    Invalid.
    """
    path = f"{members_path(plan_id)}/{eligibility_id:d}/end"
    call = Call("POST", path, json={"on": on}, headers=keyed(idempotency_key))
    return read_enrolment((yield from core.request(call)))


def rename_member(
    core: Core,
    plan_id: int,
    eligibility_id: int,
    external_id: str,
    *,
    member_id: str | None = None,
    idempotency_key: str | None = None,
) -> Operation[Enrolment]:
    """Give a member another identifier; its record, history and invitation stay. Raises NotFound,
    Invalid (`not_unique`).
    """
    path = f"{members_path(plan_id)}/{eligibility_id:d}/rename"
    wanted = given(external_id=external_id, member_id=member_id)
    call = Call("POST", path, json=wanted, headers=keyed(idempotency_key))
    return read_enrolment((yield from core.request(call)))


def listed(response: httpx.Response, name: str) -> tuple[str, ...]:
    """The parts of a header of the answer."""
    parts = response.headers.get(name, "").split(",")
    return tuple(unquote(part.strip()) for part in parts if part.strip())


def meant_fields(response: httpx.Response) -> dict[str, str]:
    """Unknown fields, each with the similar name that exists."""
    pairs = response.headers.get("Did-You-Mean", "").split(",")
    split = (pair.strip().partition("=") for pair in pairs)
    return {unquote(name): meant for name, _, meant in split if meant}


def read_enrolment(response: httpx.Response) -> Enrolment:
    invitation, _, reason = response.headers.get("Invitation", "").partition(";")
    member: Any = content_of(response)
    left_plan = response.headers.get("Eligibility-Left-Plan")
    return Enrolment(
        outcome=response.headers.get("Eligibility-Outcome", ""),
        member=member,
        changed=listed(response, "Eligibility-Changed"),
        invitation=invitation,
        invitation_reason=reason.strip().removeprefix("reason=") or None,
        left_plan=None if left_plan is None else unquote(left_plan),
        warnings=listed(response, "Eligibility-Warnings"),
        ignored_fields=listed(response, "Ignored-Fields"),
        did_you_mean=meant_fields(response),
    )


# Members as they are stored


def members(
    plan_id: int,
    *,
    updated_since: str | datetime | None = None,
    eligible_on: str | date | None = None,
) -> Pages[EligibilityRecord]:
    """The members of a plan in the order of `id`. Needs the scope `eligibility:read`.

    `updated_since`: only those that were created or changed then or later; let it begin some
    minutes before the last reading. `eligible_on`: only those with access on this day.
    """
    since = wire_time(updated_since) if isinstance(updated_since, datetime) else updated_since
    wanted = given(updated_since=since, eligible_on=eligible_on) | {
        "page[size]": str(PAGE_OF_MEMBERS)
    }
    return Pages(Call("GET", members_path(plan_id), wanted), list_page)


def member(core: Core, plan_id: int, eligibility_id: int) -> Operation[EligibilityRecord]:
    """One member by the `id` of its record. Needs the scope `eligibility:read`. Raises NotFound."""
    content = yield from core.json(Call("GET", f"{members_path(plan_id)}/{eligibility_id:d}"))
    found: EligibilityRecord = content["data"]
    return found


def find_member(
    core: Core,
    *,
    external_id: str | None = None,
    member_id: str | None = None,
    email: str | None = None,
    plan_id: int | None = None,
) -> Operation[EligibilityRecord | None]:
    """The member with exactly this identifier, under any plan of the account or under one. Give one
    of the three. Needs the scope `eligibility:read`.
    """
    wanted = given(external_id=external_id, member_id=member_id, email=email)
    path = "/v2/eligibility" if plan_id is None else members_path(plan_id)
    if len(wanted) != 1:
        raise TypeError("Give one of external_id, member_id and email.")
    content = yield from core.json(Call("GET", path, wanted))
    found: list[EligibilityRecord] = content["data"]
    return found[0] if found else None


def find_members(last_name: str, dob: str | date) -> Pages[EligibilityRecord]:
    """The members of the account, under any plan, with this last name in any letter case and this
    date of birth. Needs the scope `eligibility:read`.
    """
    return Pages(Call("GET", "/v2/eligibility", given(last_name=last_name, dob=dob)), list_page)


def member_history(plan_id: int, eligibility_id: int) -> Pages[EligibilityChange]:
    """The changes of a member, the oldest first. Needs the scope `eligibility:read`."""
    path = f"{members_path(plan_id)}/{eligibility_id:d}/history"
    return Pages(Call("GET", path, {"page[size]": str(PAGE_OF_MEMBERS)}), list_page)


def members_path(plan_id: int) -> str:
    return f"/v2/plans/{plan_id:d}/eligibility"


def wire_time(time: datetime) -> str:
    """The time as the service reads it. Raises ValueError for one without a zone."""
    if time.tzinfo is None:
        raise ValueError("The time needs a time zone, such as datetime.timezone.utc.")
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# Files


def upload(
    core: Core,
    plan_id: int,
    source: Source,
    *,
    mode: Literal["full", "change"] | None = None,
    dry_run: bool | None = None,
    format: FileFormat | None = None,  # noqa: A002 - the parameter's name
    encoding: str | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    mapping: str | Mapping[str, Any] | None = None,
    file_name: str | None = None,
    idempotency_key: str | None = None,
    progress: Progress | None = None,
) -> Operation[File]:
    """Send a file of members: a path, bytes, a binary stream, or records. A worker of the service
    then loads it.

    `mapping` is the name of a stored mapping, or a mapping. `progress` is called with the bytes
    sent and the size (None for a pipe); it begins again when the upload is repeated. A pipe is not
    repeated. Raises NotFound, Invalid, TooLarge, UnsupportedMediaType, RateLimited.
    """
    named = mapping if mapping is None or isinstance(mapping, str) else json.dumps(mapping)
    with Content(source, progress) as content:
        parameters = given(
            mode=mode,
            dry_run=dry_run,
            format=format or ("jsonl" if content.is_records else None),
            encoding=encoding,
            sheet=sheet,
            header_row=header_row,
            mapping=named,
            file_name=file_name,
        )
        path = f"/v2/plans/{plan_id:d}/eligibility-files"
        return (
            yield from read_file(
                core,
                Call("POST", path, parameters, content=content, headers=keyed(idempotency_key)),
            )
        )


def suggest_mapping(
    core: Core,
    plan_id: int,
    source: Source,
    *,
    format: FileFormat | None = None,  # noqa: A002 - the parameter's name
    encoding: str | None = None,
    sheet: str | None = None,
) -> Operation[MappingSuggestion]:
    """A mapping that would read the file; nothing is loaded. Answer its `questions` before you
    store or send it. Raises NotFound, Invalid, Malformed, RateLimited while another one is made for
    the account.
    """
    with Content(source) as content:
        wanted = given(suggest_mapping=True, format=format, encoding=encoding, sheet=sheet)
        path = f"/v2/plans/{plan_id:d}/eligibility-files"
        answer = yield from core.json(Call("POST", path, wanted, content=content))
    suggestion: MappingSuggestion = answer["data"]
    return suggestion


def files(
    plan_id: int | None = None, *, state: FileState | None = None, sha256: str | None = None
) -> Pages[File]:
    """The files of a plan, or of the account, the newest first."""
    path = (
        "/v2/eligibility-files" if plan_id is None else f"/v2/plans/{plan_id:d}/eligibility-files"
    )
    wanted = given(state=state, sha256=sha256) | {"page[size]": str(PAGE_OF_FILES)}
    return Pages(Call("GET", path, wanted), list_page)


def file(core: Core, plan_id: int, file_id: int) -> Operation[File]:
    """A file by its id. Raises NotFound."""
    return read_file(core, Call("GET", f"/v2/plans/{plan_id:d}/eligibility-files/{file_id:d}"))


def read_file(core: Core, call: Call) -> Operation[File]:
    content = yield from core.json(call)
    found: File = content["data"]
    return found


def file_path(data: File) -> str:
    return f"/v2/plans/{data['plan_id']:d}/eligibility-files/{data['id']:d}"


def refresh(core: Core, data: File) -> Operation[File]:
    return read_file(core, Call("GET", file_path(data)))


def act(
    core: Core, data: File, action: Literal["approve", "cancel", "undo"], key: str | None
) -> Operation[File]:
    return read_file(core, Call("POST", f"{file_path(data)}/{action}", headers=keyed(key)))


def accept_mapping(
    core: Core, data: File, mapping: Mapping[str, Any] | None, *, keep: bool, key: str | None
) -> Operation[File]:
    path = f"{file_path(data)}/mapping"
    body = dict(mapping or {})
    return read_file(core, Call("POST", path, given(keep=keep), json=body, headers=keyed(key)))


def wait(core: Core, data: File, timeout: float | None) -> Operation[File]:
    """The file when it is done, held, failed or cancelled. Raises FileNotFinished after `timeout`
    seconds.
    """
    end = None if timeout is None else monotonic() + timeout
    seconds = FIRST_WAIT_SECONDS
    while data["state"] not in ENDED_STATES:
        if end is not None and monotonic() >= end:
            raise FileNotFinished(f"File {data['id']} is {data['state']} after {timeout} seconds.")
        yield Pause(seconds if end is None else min(seconds, max(end - monotonic(), 0.0)))
        seconds = min(seconds * 1.5, LONGEST_WAIT_SECONDS)
        data = yield from refresh(core, data)
    return data


def report(
    data: File,
    *,
    outcome: str | None = None,
    code: str | None = None,
    external_id: str | None = None,
) -> Pages[ReportLine]:
    """The lines of a file's report in the order of its rows; while the file is loaded, those so
    far.
    """
    wanted = given(outcome=outcome, code=code, external_id=external_id)
    wanted |= {"page[size]": str(PAGE_OF_LINES)}
    return Pages(Call("GET", f"{file_path(data)}/report", wanted), read_report)


def read_report(response: httpx.Response) -> tuple[list[ReportLine], dict[str, str] | None]:
    following = response.links.get("next", {}).get("url")
    lines = [json.loads(line) for line in response.content.splitlines()]
    return lines, dict(httpx.URL(following).params) if following else None


# Reconciliation


def reconcile(
    core: Core,
    plan_id: int,
    source: Source,
    *,
    format: FileFormat | None = None,  # noqa: A002 - the parameter's name
    mapping: str | Mapping[str, Any] | None = None,
    timeout: float | None = None,
) -> Operation[Reconciliation]:
    """Compare a full file, or records, with the members of a plan, and write no member.

    The service compares, in a dry run: so each value is read as a load would read it, and every
    format and mapping works. Raises FileNotLoaded if the file can't be read, FileNotFinished, and
    what `upload` raises.
    """
    data = yield from upload(
        core, plan_id, source, mode="full", dry_run=True, format=format, mapping=mapping
    )
    data = yield from wait(core, data, timeout)
    if data["state"] != "done" or (data["problem"] and not data["rows_done"]):
        raise FileNotLoaded(data["state"], data["problem"])
    found = Reconciliation([], [], {}, {}, {}, data["counts"].get("unchanged", 0))
    following: Pages[ReportLine] | None = report(data)
    while following is not None:
        lines, following = yield from core.page(following)
        for line in lines:
            note(found, line)
    return found


def note(found: Reconciliation, line: ReportLine) -> None:
    """Add what a line of the report of a dry run says."""
    name = line["external_id"] or f"row {line['row']}"
    match line["outcome"]:
        case "created":
            found.missing_there.append(name)
        case "would_end" | "kept":
            found.missing_here.append(name)
        case "moved":
            found.other_plan[name] = line["left_plan"]
        case "updated" | "ended" | "reopened":
            found.differs[name] = line["changed"]
        case "refused":
            found.refused.setdefault(name, []).append(f"{line['field']}: {line['code']}")


# Events and webhooks


def events(*, after: str | None = None) -> Pages[Event]:
    """What has happened to the account's members, invitations, files and queues, the oldest first.
    Keep the `id` of the last event and give it as `after` the next time. Needs the scope
    `events:read`.
    """
    return Pages(Call("GET", "/v2/events", given(**{"page[after]": after})), list_page)


def webhook_endpoints() -> Pages[WebhookTarget]:
    """Every webhook endpoint of the account, by id. This and what follows needs the scope
    `webhooks:manage`.
    """
    return Pages(Call("GET", WEBHOOKS), list_page)


def webhook_endpoint(core: Core, endpoint_id: int) -> Operation[WebhookTarget]:
    """One webhook endpoint. Raises NotFound."""
    return read_endpoint(core, Call("GET", f"{WEBHOOKS}/{endpoint_id:d}"))


def create_webhook_endpoint(
    core: Core, url: str, *, event_types: Sequence[str] = (), idempotency_key: str | None = None
) -> Operation[WebhookTarget]:
    """A new webhook endpoint, for events of these types or of all. Keep its `secret`, which is not
    shown again. Raises Invalid.
    """
    asked = {"url": url, "event_types": list(event_types)}
    call = Call("POST", WEBHOOKS, json=asked, headers=keyed(idempotency_key))
    return read_endpoint(core, call)


def change_webhook_endpoint(
    core: Core,
    endpoint_id: int,
    changes: WebhookEndpointPatch,
    *,
    idempotency_key: str | None = None,
) -> Operation[WebhookTarget]:
    """Change a webhook endpoint, pause it or let it go on. Raises NotFound, Invalid."""
    path = f"{WEBHOOKS}/{endpoint_id:d}"
    call = Call("PATCH", path, json=changes, headers=keyed(idempotency_key))
    return read_endpoint(core, call)


def delete_webhook_endpoint(core: Core, endpoint_id: int) -> Operation[None]:
    """Delete a webhook endpoint. Raises NotFound."""
    yield from core.request(Call("DELETE", f"{WEBHOOKS}/{endpoint_id:d}"))


def rotate_webhook_secret(
    core: Core, endpoint_id: int, *, idempotency_key: str | None = None
) -> Operation[WebhookTarget]:
    """The endpoint with a new `secret`. The one before signs too, for 24 hours. Raises NotFound."""
    path = f"{WEBHOOKS}/{endpoint_id:d}/rotate"
    return read_endpoint(core, Call("POST", path, headers=keyed(idempotency_key)))


def test_webhook_endpoint(
    core: Core,
    endpoint_id: int,
    *,
    idempotency_key: str | None = None,  # noqa: PT028 - no test
) -> Operation[WebhookTarget]:
    """Send the endpoint an event `webhook.test`, behind those that wait. Raises NotFound,
    WrongState while it is paused.
    """
    path = f"{WEBHOOKS}/{endpoint_id:d}/test"
    return read_endpoint(core, Call("POST", path, headers=keyed(idempotency_key)))


def replay_webhook_endpoint(
    core: Core,
    endpoint_id: int,
    *,
    event_id: str | None = None,
    since: datetime | None = None,
    idempotency_key: str | None = None,
) -> Operation[WebhookTarget]:
    """Send the endpoint one event again, behind those that wait, or all since a time, in their
    order. Each has the `webhook-id` that it had. Raises NotFound, Invalid.
    """
    asked = given(event_id=event_id, since=since and wire_time(since))
    path = f"{WEBHOOKS}/{endpoint_id:d}/replay"
    return read_endpoint(core, Call("POST", path, json=asked, headers=keyed(idempotency_key)))


def read_endpoint(core: Core, call: Call) -> Operation[WebhookTarget]:
    content = yield from core.json(call)
    found: WebhookTarget = content["data"]
    return found


# Mappings


def mappings() -> Pages[StoredMapping]:
    """Every mapping of the account, by name."""
    return Pages(Call("GET", "/v2/eligibility-mappings"), list_page)


def mapping(core: Core, name: str) -> Operation[StoredMapping]:
    """The mapping of this name. Raises NotFound."""
    return read_mapping(core, Call("GET", mapping_path(name)))


def save_mapping(
    core: Core, name: str, mapping: Mapping[str, Any], *, default: bool | None = None
) -> Operation[StoredMapping]:
    """Store a mapping, or replace it. `default` makes it the one for files without a mapping, or no
    longer. Raises Invalid with each fault by its place.
    """
    return read_mapping(
        core, Call("PUT", mapping_path(name), given(default=default), json=dict(mapping))
    )


def delete_mapping(core: Core, name: str) -> Operation[None]:
    """Delete a mapping; files keep their copy of it. Raises NotFound."""
    yield from core.request(Call("DELETE", mapping_path(name)))


def mapping_path(name: str) -> str:
    return f"/v2/eligibility-mappings/{quote(name, safe='')}"


def read_mapping(core: Core, call: Call) -> Operation[StoredMapping]:
    content = yield from core.json(call)
    stored: StoredMapping = content["data"]
    return stored
