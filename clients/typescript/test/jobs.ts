/** Each job of the client against a served instance, as a customer uses it. */
import assert from "node:assert/strict";
import { createReadStream, writeFileSync } from "node:fs";
import { test } from "node:test";
import { FileNotFinished, FileNotLoaded, type Plan } from "frontdesk-client";
import { csv, memberOf, numbers, open, refused } from "./service.ts";

const desk = open();
const [first, second, third, fourth] = (await desk.plans().all()) as [Plan, Plan, Plan, Plan];
const plan = first.id;

test("a plan is listed, read and changed unless it has changed since", async () => {
  assert.equal((await desk.plans({ external_id: second.external_id }).first())?.id, second.id);
  assert.equal(await desk.plans({ external_id: "none" }).first(), undefined);
  assert.ok((await desk.plans({ queue_interval: true }).first())?.queue_interval);
  const { plan: read, etag } = await desk.versionedPlan(plan);
  assert.equal(read.name, (await desk.plan(plan)).name);
  assert.equal((await desk.changePlan(plan, { name: "Gold 2" }, { ifMatch: etag })).name, "Gold 2");
  await refused(desk.changePlan(plan, { name: "Silver" }, { ifMatch: etag }), "precondition_failed");
  await refused(desk.plan(10 ** 9), "not_found");
});

test("a member is created, changed, moved, ended and renamed", async () => {
  const [n = 0] = numbers(1);
  const created = await desk.enrol(plan, memberOf(n));
  assert.deepEqual([created.outcome, created.invitation, created.invitationReason], ["created", "none", "no_email"]);
  const { id, external_id } = created.member;
  // @ts-expect-error A field that does not exist is a fault of the compiler, too.
  const changed = await desk.enrol(plan, { external_id, city: "Salem", state: "Oz", favourite: 1 });
  assert.deepEqual([changed.outcome, changed.changed.toSorted()], ["updated", ["city", "state"]]);
  assert.deepEqual([changed.warnings, changed.ignoredFields], [["state_not_recognised"], ["favourite"]]);
  // @ts-expect-error The field is zipcode.
  const strict = open({ strict: true }).enrol(plan, { external_id, zip_code: "02134" });
  assert.deepEqual((await refused(strict, "invalid", "unknown_field")).faults[0]?.field, "zip_code");
  // @ts-expect-error As above.
  assert.deepEqual((await desk.enrol(plan, { external_id, zip_code: "02134" })).didYouMean, { zip_code: "zipcode" });
  const moved = await desk.enrol(second.id, { external_id });
  assert.deepEqual([moved.outcome, moved.leftPlan, moved.member.id], ["moved", first.external_id, id]);
  assert.equal((await desk.endMember(second.id, id, "2026-06-30")).outcome, "ended");
  assert.equal((await desk.endMember(second.id, id, "2026-06-30")).outcome, "unchanged");
  const renamed = await desk.renameMember(second.id, id, { external_id: `N-${n}`, member_id: `NM-${n}` });
  assert.deepEqual([renamed.member.external_id, renamed.member.member_id], [`N-${n}`, `NM-${n}`]);
});

test("a write with a condition is refused where it does not hold", async () => {
  const [n = 0] = numbers(1);
  await refused(desk.enrol(plan, memberOf(n), { only: "update" }), "not_found", "no_such_member");
  assert.equal((await desk.enrol(plan, memberOf(n), { only: "create", move: false })).outcome, "created");
  await refused(desk.enrol(plan, memberOf(n), { only: "create" }), "precondition_failed", "member_exists");
  await refused(desk.enrol(second.id, memberOf(n), { move: false }), "conflict", "other_plan");
});

test("a family shares an address, and a batch moves only if asked", async () => {
  const [n = 0, child = 0] = numbers(2);
  const email = `family.${n}@example.com`;
  await desk.enrol(plan, memberOf(n, { email }));
  const made = await desk.enrol(plan, memberOf(child, { email }), { emailTaken: "drop" });
  assert.deepEqual([made.outcome, made.warnings], ["created", ["email_taken"]]);
  const batch = [memberOf(child)];
  assert.deepEqual((await desk.enrolBatch(second.id, batch)).data.map((each) => each.status), [409]);
  const moved = await desk.enrolBatch(second.id, batch, { move: true });
  assert.deepEqual(moved.data.map((each) => each.outcome), ["moved"]);
});

test("a refusal has every fault, and no value that was sent", async () => {
  const dob = "Feb 30";
  // @ts-expect-error The field is expiry_date.
  const error = await refused(desk.enrol(plan, { external_id: "E-new", dob, expiration_date: "x" }), "invalid");
  assert.deepEqual([error.status, [...error.codes].toSorted()], [422, ["not_a_date", "required"]]);
  assert.ok(error.faults.some((fault) => fault.field === "dob" && fault.code === "not_a_date"));
  assert.deepEqual({ ...error.didYouMean }, { expiration_date: "expiry_date" });
  assert.ok(error.requestId && error.message.includes(error.requestId) && !error.message.includes(dob));
  // @ts-expect-error The codes are those of the interface.
  assert.equal(error.codes.has("no_such_code"), false);
});

test("a batch has a result for each member", async () => {
  const [n = 0, next = 0] = numbers(2);
  const { data, counts } = await desk.enrolBatch(plan, [memberOf(n), { external_id: `E-${n}-new` }, memberOf(next)]);
  assert.deepEqual(data.map(({ status, outcome }) => [status, outcome]), [[201, "created"], [422, undefined], [201, "created"]]);
  assert.deepEqual([counts.created, counts.refused], [2, 1]);
  const again = await desk.enrolBatch(plan, [memberOf(n)], { only: "create" });
  assert.equal(again.data[0]?.errors?.[0]?.code, "member_exists");
  const many = Array.from({ length: 1001 }, () => ({ external_id: "E-1" }));
  await refused(desk.enrolBatch(plan, many), "invalid", "too_many_records");
});

test("members are listed, found and read with their history", async () => {
  const [n = 0, other = 0] = numbers(2);
  const since = new Date(Date.now() - 60_000);
  const { member: { id } } = await desk.enrol(plan, memberOf(n, { email: `noor.${n}@example.com` }));
  await desk.enrol(plan, memberOf(n, { expiry_date: "2026-02-01" }));
  await desk.enrol(plan, memberOf(other));
  const listed = await desk.members(plan, { updated_since: since }).all();
  assert.deepEqual(listed.slice(-2).map((member) => member.external_id), [`E-${n}`, `E-${other}`]);
  assert.deepEqual(await desk.members(plan, { updated_since: new Date(Date.now() + 86_400_000) }).all(), []);
  const eligible = await desk.members(plan, { eligible_on: "2026-03-01" }).all();
  assert.ok(eligible.every((member) => member.id !== id) && eligible.length > 0);
  const member = await desk.member(plan, id);
  assert.deepEqual([member.eligible, member.invitation.state], [false, null]);
  assert.deepEqual(await desk.findMember({ external_id: `E-${n}` }), member);
  assert.deepEqual(await desk.findMember({ email: `NOOR.${n}@example.com` }, plan), member);
  assert.equal(await desk.findMember({ member_id: `M-${n}` }, second.id), undefined);
  const people = await desk.findMembers({ last_name: `SAMPLE-${n}`, dob: "1977-01-11" }).all();
  assert.deepEqual(people, [member]);
  const history = await desk.memberHistory(plan, id).all();
  assert.deepEqual(history.map((change) => change.outcome), ["created", "updated"]);
  assert.deepEqual(history[1]?.changed, { expiry_date: [null, "2026-02-01"] });
  await refused(desk.member(second.id, id), "not_found");
  await assert.rejects(desk.findMember({ external_id: "a", email: "b" }), /one of/);
});

test("a client reads who it is, and no member without the scope", async () => {
  const narrow = open({ scope: "customer" });
  const { scopes, limits, environment } = await narrow.me();
  assert.ok(!scopes.includes("eligibility:read") && (await desk.me()).scopes.includes("eligibility:read"));
  assert.ok(limits.remaining < limits.requests_per_minute && environment === "sandbox");
  await refused(narrow.findMember({ external_id: "E-1" }), "forbidden");
});

test("a file is uploaded with progress, awaited, reported by line and by page, and undone", async () => {
  const members = numbers(5100).map((n) => memberOf(n));
  const bytes = Buffer.concat([csv(...members), Buffer.from("E-bad,M-1\n")]);
  writeFileSync("members.csv", bytes);
  const sent: number[] = [];
  const progress = (done: number, size: number | undefined) => sent.push(done) && assert.equal(size, bytes.length);
  const file = await desk.upload(plan, "members.csv", { file_name: "members", progress });
  await assert.rejects(file.wait(0), FileNotFinished);
  assert.equal((await file.wait(60)).state, "done");
  assert.deepEqual({ ...file.counts }, { created: 5100, refused: 1 });
  assert.ok(sent.length > 1 && sent.at(-1) === bytes.length);
  const bad = await file.report({ outcome: "refused" }).all();
  assert.deepEqual([...new Set(bad.map((line) => [line.row, line.external_id].join()))], ["5102,E-bad"]);
  const rows = [];
  for await (const line of file.report({ outcome: "created" })) rows.push(line.row);
  assert.deepEqual(rows, members.map((_, index) => index + 2));
  assert.equal((await desk.files(plan, { state: "done" }).first())?.id, file.id);
  assert.equal((await desk.file(plan, file.id)).data.file_name, "members");
  await refused(file.cancel(), "wrong_state");
  const held = await (await file.undo()).wait(60);
  assert.deepEqual([held.state, held.problem?.code], ["held", "too_many_lose_access"]);
  const undo = await (await held.approve()).wait(60);
  assert.deepEqual([undo.state, undo.counts.withdrawn], ["done", 5100]);
});

test("records, bytes and streams are uploaded too, and a file that can't be read is refused", async () => {
  const members = numbers(2).map((n) => memberOf(n));
  const options = { dry_run: true } as const;
  const { format, size_bytes } = (await desk.upload(plan, members, options)).data;
  assert.deepEqual([format, size_bytes], ["jsonl", members.map((member) => `${JSON.stringify(member)}\n`).join("").length]);
  writeFileSync("stream.csv", csv(...members));
  const web = new Response(String(csv(...members))).body ?? assert.fail();
  for (const source of [csv(...members), createReadStream("stream.csv"), web]) {
    assert.deepEqual({ ...(await (await desk.upload(plan, source, options)).wait(60)).counts }, { created: 2 });
  }
  await refused(desk.upload(plan, csv(...members), { format: "xlsx" }), "unsupported_media_type");
  await assert.rejects(desk.upload(plan, "no such file.csv"), { code: "ENOENT" });
});

test("a held file is approved", async () => {
  const members = numbers(40).map((n) => memberOf(n));
  await (await desk.upload(third.id, csv(...members))).wait(60);
  const held = await (await desk.upload(third.id, csv(...members.slice(0, 1)), { mode: "full" })).wait(60);
  assert.deepEqual([held.state, held.problem?.code], ["held", "too_many_lose_access"]);
  assert.equal((await (await held.approve()).wait(60)).counts.ended, 39);
});

test("reconcile says who is missing there and here and who differs, and writes nothing", async () => {
  const [here = 0, there = 0, same = 0, other = 0, moved = 0] = numbers(5);
  await desk.enrolBatch(fourth.id, [memberOf(here), memberOf(same), memberOf(other)]);
  await desk.enrol(plan, memberOf(moved));
  const rows = [memberOf(there), memberOf(same), memberOf(moved), memberOf(other, { last_name: "Renamed" })];
  const found = await desk.reconcile(fourth.id, [...rows, { external_id: "E-bad" }], { timeoutSeconds: 60 });
  assert.deepEqual([found.missingThere, found.missingHere], [[`E-${there}`], [`E-${here}`]]);
  assert.deepEqual([...found.differs], [[`E-${other}`, ["last_name"]]]);
  assert.deepEqual([...found.otherPlan], [[`E-${moved}`, first.external_id]]);
  assert.ok(found.refused.get("E-bad")?.includes("member_id: required"));
  assert.deepEqual([found.unchanged, found.isEqual], [1, false]);
  assert.ok((await desk.reconcile(fourth.id, csv(...[here, same, other].map((n) => memberOf(n))))).isEqual);
  const unreadable = desk.reconcile(fourth.id, Buffer.from("a,b\n1,2\n"));
  await assert.rejects(unreadable, (error) => error instanceof FileNotLoaded && error.problem?.code === "no_header");
});

test("mappings are suggested, stored and deleted", async () => {
  const suggestion = await desk.suggestMapping(plan, Buffer.from("Employee No,Birth Date,First Name\n7,01/11/1977,Noor\n"));
  assert.equal(suggestion.columns.find((found) => found.fields.includes("external_id"))?.column, "Employee No");
  assert.equal((await desk.saveMapping("hr", suggestion.mapping, { isDefault: true })).is_default, true);
  assert.deepEqual((await desk.mapping("hr")).mapping, suggestion.mapping);
  assert.deepEqual((await desk.mappings().all()).map((mapping) => mapping.name), ["hr"]);
  await desk.deleteMapping("hr");
  await refused(desk.mapping("hr"), "not_found");
});

test("events are read on from the last one, and webhook endpoints are kept", async () => {
  const [n = 0] = numbers(1);
  const known = (await desk.events().all()).at(-1)?.id;
  const { member: { id } } = await desk.enrol(plan, memberOf(n));
  const after = known === undefined ? {} : { after: known };
  const created = await desk.events(after).first();
  assert.deepEqual([created?.type, created?.data.eligibility_id], ["member.created", id]);
  await desk.enrol(plan, memberOf(n, { city: "Salem" }));
  const updated = await desk.events({ after: created?.id ?? "" }).all();
  assert.deepEqual(updated.map((event) => event.data.fields), [["city"]]);
  const endpoint = await desk.createWebhookEndpoint({ url: "http://127.0.0.1:9/hook", event_types: ["file.done"] });
  assert.match(endpoint.secret ?? "", /^whsec_/);
  assert.deepEqual((await desk.webhookEndpoints().all()).map((found) => found.id), [endpoint.id]);
  assert.notEqual((await desk.rotateWebhookSecret(endpoint.id)).secret, endpoint.secret);
  assert.equal((await desk.testWebhookEndpoint(endpoint.id)).id, endpoint.id);
  const replayed = await desk.replayWebhookEndpoint(endpoint.id, { since: new Date(Date.now() - 60_000).toISOString() });
  assert.equal(replayed.id, endpoint.id);
  assert.equal((await desk.changeWebhookEndpoint(endpoint.id, { state: "paused" })).state, "paused");
  await refused(desk.testWebhookEndpoint(endpoint.id), "wrong_state");
  await desk.deleteWebhookEndpoint(endpoint.id);
  await refused(desk.webhookEndpoint(endpoint.id), "not_found");
});
