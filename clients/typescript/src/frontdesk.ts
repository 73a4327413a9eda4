import {
  type Answer, type Call, Connection, keyed, type Keyed, type List, objectOf, type Options, type Query, readPage,
} from "./connection.js";
import { contentOf, type Progress, type Source } from "./content.js";
import { FileHandle, readFile } from "./file.js";
import { type Reconciliation, reconciliationOf } from "./reconciliation.js";
import type {
  BatchResults, Caller, components, Eligibility, EligibilityChange, EligibilityRecord, EligibleMember, Event, File, Mapping,
  MappingSuggestion, MemberRename, NewWebhookEndpoint, operations, Plan, PlanPatch, StoredMapping, WebhookEndpointPatch,
  WebhookReplay, WebhookTarget,
} from "./schema.js";

/** What became of the record of a member. */
export interface Enrolment {
  outcome: components["headers"]["Eligibility-Outcome"];
  member: Eligibility;
  /** Names of the changed fields. */
  changed: string[];
  invitation: "immediate" | "queued" | "none";
  /** Why there is none, such as `no_email`. */
  invitationReason: string | undefined;
  /** `external_id` of the plan that a moved member left. */
  leftPlan: string | undefined;
  /** Codes of likely mistakes; the record is written. */
  warnings: string[];
  /** Unknown fields of the record. */
  ignoredFields: string[];
  /** Those of them that are like a field, with its name. */
  didYouMean: Record<string, string>;
}

/** The results of a batch, and the unknown fields of all its records. A result has those of its own record. */
export type BatchEnrolment = BatchResults & Pick<Enrolment, "ignoredFields" | "didYouMean">;

export interface EnrolOptions extends Keyed {
  /** `create` refuses a stored member (`member_exists`), `update` a new one (`no_such_member`). */
  only?: "create" | "update";
  /** Whether a member of another plan of the account moves; else it is refused (`other_plan`). Without it one alone does, those of a batch don't. */
  move?: boolean;
  /** `drop` writes a member without an e-mail that another one has, instead of refusing it. */
  emailTaken?: "drop";
}

type UploadQuery = NonNullable<operations["uploadEligibilityFile"]["parameters"]["query"]>;
export interface UploadOptions extends Omit<UploadQuery, "mapping" | "suggest_mapping">, Keyed {
  /** The name of a stored mapping, or a mapping. */
  mapping?: string | Mapping;
  progress?: Progress;
}
export type SuggestOptions = Pick<UploadOptions, "format" | "encoding" | "sheet">;
export type ReconcileOptions = Omit<UploadOptions, "mode" | "dry_run"> & { timeoutSeconds?: number };

const PAGE = { "page[size]": 1000 };
const PAGE_OF_FILES = { "page[size]": 100 };
const MAPPINGS = "/v2/eligibility-mappings";
const WEBHOOKS = "/v2/webhook-endpoints";

/** A client of the service. Concurrent calls may share it. A comment names the kinds of the ApiError that it throws. */
export class Frontdesk {
  readonly #connection: Connection;

  /** Throws TypeError unless `baseUrl` is https or local. */
  constructor(baseUrl: string, clientId: string, clientSecret: string, options: Options = {}) {
    this.#connection = new Connection(baseUrl, clientId, clientSecret, options);
  }

  /** The account, the client and its scopes, the environment, and what is left of the limit of requests. */
  me(): Promise<Caller> { return this.#get("/v2/me"); }

  /** The account's plans in the order of `id`, or only the one with this `external_id`. `class`: the waits are estimated for a
   * patient of this class. */
  plans(wanted: { external_id?: string; queue_interval?: boolean; class?: string } = {}): List<Plan> {
    return this.#connection.list("/v2/plans", { ...wanted, ...PAGE });
  }

  /** One plan with the values of its queue. Throws `not_found`. */
  async plan(planId: number): Promise<Plan> { return (await this.versionedPlan(planId)).plan; }

  /** One plan and its ETag, which `changePlan` takes as `ifMatch`. Throws `not_found`. */
  async versionedPlan(planId: number): Promise<{ plan: Plan; etag: string }> {
    const answer = await this.#connection.request({ method: "GET", path: `/v2/plans/${planId}` });
    const [plan] = objectOf(answer).data as [Plan];
    return { plan, etag: answer.response.headers.get("etag") ?? "" };
  }

  /** Change fields of a plan; with `ifMatch` only if it is as it was read (else `precondition_failed`). Throws `invalid`. */
  async changePlan(planId: number, changes: PlanPatch, options: Keyed & { ifMatch?: string } = {}): Promise<Plan> {
    const change = { body: JSON.stringify(changes), headers: { "If-Match": options.ifMatch, ...keyed(options) } };
    const [plan] = await this.#connection.data<[Plan]>({ method: "PATCH", path: `/v2/plans/${planId}`, ...change });
    return plan;
  }

  /** Create the member, or update the one that has the `external_id`. Throws `invalid` with every fault, `not_found`. */
  async enrol(planId: number, member: EligibleMember, options: EnrolOptions = {}): Promise<Enrolment> {
    return this.#enrolment({ path: membersOf(planId), body: JSON.stringify(member), ...conditions(options) });
  }

  /**
   * Write up to 1,000 members in this order, each by the rules of `enrol`. A refused one stops no other: look at the `status`
   * of each result. Throws `invalid` (`too_many_records`), `too_large` above 8 MiB. For more members upload a file.
   */
  async enrolBatch(planId: number, members: readonly EligibleMember[], options: EnrolOptions = {}): Promise<BatchEnrolment> {
    const call = { path: `${membersOf(planId)}/batch`, body: JSON.stringify(members), ...conditions(options) };
    const answer = await this.#connection.request({ method: "POST", ...call });
    return { ...(objectOf(answer) as BatchResults), ...ignoredOf(answer) };
  }

  /** Let the access of a member end; `on` is its last day (YYYY-MM-DD), past or to come. Throws `not_found`, `invalid`. */
  endMember(planId: number, eligibilityId: number, on: string, options: Keyed = {}): Promise<Enrolment> {
    const path = `${membersOf(planId)}/${eligibilityId}/end`;
    return this.#enrolment({ path, body: JSON.stringify({ on }), headers: keyed(options) });
  }

  /** Give a member another identifier; its record and history stay. Throws `not_found`, `invalid` (`not_unique`). */
  renameMember(planId: number, eligibilityId: number, names: MemberRename, options: Keyed = {}): Promise<Enrolment> {
    const path = `${membersOf(planId)}/${eligibilityId}/rename`;
    return this.#enrolment({ path, body: JSON.stringify(names), headers: keyed(options) });
  }

  /**
   * The members of a plan in the order of `id`. Needs the scope `eligibility:read`. `updated_since`: those that were changed
   * then or later; let it begin some minutes before the last reading. `eligible_on`: those with access on this day.
   */
  members(planId: number, wanted: { updated_since?: string | Date; eligible_on?: string } = {}): List<EligibilityRecord> {
    const { updated_since: since, ...rest } = wanted;
    const updated = since instanceof Date ? since.toISOString().replace(/\.\d+/, "") : since;
    return this.#connection.list(membersOf(planId), { ...rest, updated_since: updated, ...PAGE });
  }

  /** One member by the `id` of its record. Needs the scope `eligibility:read`. Throws `not_found`. */
  member(planId: number, eligibilityId: number): Promise<EligibilityRecord> {
    return this.#get(`${membersOf(planId)}/${eligibilityId}`);
  }

  /** The member with exactly this identifier, under any plan of the account or under one. Needs `eligibility:read`. */
  async findMember(
    by: { external_id: string } | { member_id: string } | { email: string },
    planId?: number,
  ): Promise<EligibilityRecord | undefined> {
    const path = planId === undefined ? "/v2/eligibility" : membersOf(planId);
    // Without an identifier the path would list every member.
    if (Object.values(by).length !== 1 || Object.values(by)[0] === undefined) {
      throw new TypeError("Give one of external_id, member_id and email.");
    }
    return (await this.#get<EligibilityRecord[]>(path, by))[0];
  }

  /** The members of any plan with this last name in any letter case and this date of birth. Needs `eligibility:read`. */
  findMembers(by: { last_name: string; dob: string }): List<EligibilityRecord> {
    return this.#connection.list("/v2/eligibility", by);
  }

  /** The changes of a member, the oldest first. Needs the scope `eligibility:read`. */
  memberHistory(planId: number, eligibilityId: number): List<EligibilityChange> {
    return this.#connection.list(`${membersOf(planId)}/${eligibilityId}/history`, PAGE);
  }

  /** Send a file of members, which a worker of the service then loads. Throws `invalid`, `too_large`, `rate_limited`. */
  async upload(planId: number, source: Source, options: UploadOptions = {}): Promise<FileHandle> {
    return readFile(this.#connection, await uploadCall(planId, source, options));
  }

  /** A mapping that would read the file; nothing is loaded. Answer its `questions` before you store or send it. */
  async suggestMapping(planId: number, source: Source, options: SuggestOptions = {}): Promise<MappingSuggestion> {
    return this.#connection.data(await uploadCall(planId, source, { ...options, suggest_mapping: true }));
  }

  /** The files of a plan, or of the account, the newest first. */
  files(planId?: number, wanted: { state?: File["state"]; sha256?: string } = {}): List<FileHandle> {
    const path = planId === undefined ? "/v2/eligibility-files" : filesOf(planId);
    return this.#connection.list(path, { ...wanted, ...PAGE_OF_FILES }, (answer) => {
      const { items, next } = readPage<File>(answer);
      return { items: items.map((data) => new FileHandle(this.#connection, data)), next };
    });
  }

  /** A file by its id. Throws `not_found`. */
  file(planId: number, fileId: number): Promise<FileHandle> {
    return readFile(this.#connection, { method: "GET", path: `${filesOf(planId)}/${fileId}` });
  }

  /**
   * Compare a full file, or records, with the members of a plan, and write no member. The service compares, in a dry run, so
   * every format and mapping works. Throws FileNotLoaded if the file can't be read, FileNotFinished, and what `upload` throws.
   */
  async reconcile(planId: number, source: Source, options: ReconcileOptions = {}): Promise<Reconciliation> {
    const { timeoutSeconds, ...rest } = options;
    const file = await this.upload(planId, source, { ...rest, mode: "full", dry_run: true });
    return reconciliationOf(await file.wait(timeoutSeconds));
  }

  /** What has happened, the oldest first. Keep the `id` of the last event and give it as `after`. Needs `events:read`. */
  events(wanted: { after?: string } = {}): List<Event> {
    return this.#connection.list("/v2/events", { "page[after]": wanted.after });
  }

  /** Every webhook endpoint of the account, by id. This and what follows needs the scope `webhooks:manage`. */
  webhookEndpoints(): List<WebhookTarget> { return this.#connection.list(WEBHOOKS, {}); }

  /** One webhook endpoint. Throws `not_found`. */
  webhookEndpoint(id: number): Promise<WebhookTarget> { return this.#get(`${WEBHOOKS}/${id}`); }

  /** A new webhook endpoint. Keep its `secret`, which is not shown again. Throws `invalid`. */
  createWebhookEndpoint(endpoint: NewWebhookEndpoint, options: Keyed = {}): Promise<WebhookTarget> {
    return this.#change("POST", WEBHOOKS, options, endpoint);
  }

  /** Change a webhook endpoint, pause it or let it go on. Throws `not_found`, `invalid`. */
  changeWebhookEndpoint(id: number, changes: WebhookEndpointPatch, options: Keyed = {}): Promise<WebhookTarget> {
    return this.#change("PATCH", `${WEBHOOKS}/${id}`, options, changes);
  }

  /** Delete a webhook endpoint. Throws `not_found`. */
  async deleteWebhookEndpoint(id: number): Promise<void> {
    await this.#connection.request({ method: "DELETE", path: `${WEBHOOKS}/${id}` });
  }

  /** The endpoint with a new `secret`. The one before signs too, for 24 hours. Throws `not_found`. */
  rotateWebhookSecret(id: number, options: Keyed = {}): Promise<WebhookTarget> {
    return this.#change("POST", `${WEBHOOKS}/${id}/rotate`, options);
  }

  /** Send the endpoint an event `webhook.test`, behind those that wait. Throws `wrong_state` while it is paused. */
  testWebhookEndpoint(id: number, options: Keyed = {}): Promise<WebhookTarget> {
    return this.#change("POST", `${WEBHOOKS}/${id}/test`, options);
  }

  /**
   * Send the endpoint one event again, behind those that wait, or all since a time, in their order. Each has the `webhook-id`
   * that it had. Throws `not_found`, `invalid`.
   */
  replayWebhookEndpoint(id: number, wanted: WebhookReplay, options: Keyed = {}): Promise<WebhookTarget> {
    return this.#change("POST", `${WEBHOOKS}/${id}/replay`, options, wanted);
  }

  /** Every mapping of the account, by name. */
  mappings(): List<StoredMapping> { return this.#connection.list(MAPPINGS, {}); }

  /** The mapping of this name. Throws `not_found`. */
  mapping(name: string): Promise<StoredMapping> { return this.#get(mappingOf(name)); }

  /** Store a mapping, or replace it. `isDefault` makes it the one for files without a mapping. Throws `invalid`. */
  saveMapping(name: string, mapping: Mapping, { isDefault }: { isDefault?: boolean } = {}): Promise<StoredMapping> {
    const body = JSON.stringify(mapping);
    return this.#connection.data({ method: "PUT", path: mappingOf(name), query: { default: isDefault }, body });
  }

  /** Delete a mapping; files keep their copy of it. Throws `not_found`. */
  async deleteMapping(name: string): Promise<void> {
    await this.#connection.request({ method: "DELETE", path: mappingOf(name) });
  }

  #get<T>(path: string, query: Query = {}): Promise<T> { return this.#connection.data({ method: "GET", path, query }); }

  #change<T>(method: "POST" | "PATCH", path: string, options: Keyed, json?: unknown): Promise<T> {
    const body = json === undefined ? {} : { body: JSON.stringify(json) };
    return this.#connection.data({ method, path, headers: keyed(options), ...body });
  }

  async #enrolment(call: Omit<Call, "method">): Promise<Enrolment> {
    return enrolmentOf(await this.#connection.request({ method: "POST", ...call }));
  }
}

const membersOf = (planId: number) => `/v2/plans/${planId}/eligibility`;
const filesOf = (planId: number) => `/v2/plans/${planId}/eligibility-files`;
const mappingOf = (name: string) => `${MAPPINGS}/${encodeURIComponent(name)}`;

function conditions({ only, move, emailTaken, ...own }: EnrolOptions): Pick<Call, "headers" | "query"> {
  const headers = { "If-None-Match": only === "create" ? "*" : undefined, ...keyed(own) };
  return { headers, query: { only: only === "update" ? only : undefined, move, email_taken: emailTaken } };
}

type UploadCallOptions = UploadOptions & { suggest_mapping?: boolean };
async function uploadCall(planId: number, source: Source, options: UploadCallOptions): Promise<Call> {
  const { mapping, progress, idempotencyKey: _, ...rest } = options;
  const body = await contentOf(source, progress);
  const named = typeof mapping === "object" ? JSON.stringify(mapping) : mapping;
  const query = { format: body.isRecords ? "jsonl" : undefined, ...rest, mapping: named };
  return { method: "POST", path: filesOf(planId), query, headers: keyed(options), body };
}

function enrolmentOf(answer: Answer): Enrolment {
  const text = (name: string) => answer.response.headers.get(name) ?? "";
  const listed = (name: string) => partsOf(answer, name).map(decodeURIComponent);
  const [invitation = "", reason] = text("Invitation").split(/;\s*reason=/);
  return {
    outcome: text("Eligibility-Outcome") as Enrolment["outcome"],
    member: objectOf(answer) as Enrolment["member"],
    changed: listed("Eligibility-Changed"),
    invitation: invitation as Enrolment["invitation"],
    invitationReason: reason,
    leftPlan: listed("Eligibility-Left-Plan")[0],
    warnings: listed("Eligibility-Warnings"),
    ...ignoredOf(answer),
  };
}

/** The parts of a header of the answer. */
function partsOf(answer: Answer, name: string): string[] {
  return (answer.response.headers.get(name) ?? "").split(",").map((part) => part.trim()).filter(Boolean);
}

/** The unknown fields of what was sent, and what was meant by them. */
function ignoredOf(answer: Answer): Pick<Enrolment, "ignoredFields" | "didYouMean"> {
  const meant = partsOf(answer, "Did-You-Mean").map((pair) => pair.split("=").map(decodeURIComponent));
  return { ignoredFields: partsOf(answer, "Ignored-Fields").map(decodeURIComponent), didYouMean: Object.fromEntries(meant) };
}
