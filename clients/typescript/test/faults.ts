/** What goes wrong on the way: a relay before the served instance loses answers and refuses, and the client carries on. */
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { createReadStream, truncateSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { AddressInfo } from "node:net";
import { after, afterEach, beforeEach, mock, test } from "node:test";
import timers from "node:timers/promises";
import { type ApiError, BadSignature, Frontdesk, UnexpectedAnswer, Unreachable, verifyWebhook } from "frontdesk-client";
import { csv, id, memberOf, numbers, open, refused, secret, url } from "./service.ts";

/** Requests as the relay saw them, and the headers of the service's answers. */
let seen: { method: string; path: string; key: string; token: string; answered: IncomingMessage["headers"] }[] = [];
/** Handles a request instead of the service, if it answers true. */
let fault: (path: string, response: ServerResponse, count: number) => boolean = () => false;
/** Whether the service's answer to the request is lost. */
let loses: (path: string, count: number) => boolean = () => false;

const relay = createServer((incoming, response) => {
  const { method = "", url: path = "", headers } = incoming;
  const [key, token] = [String(headers["idempotency-key"] ?? ""), headers.authorization ?? ""];
  const entry: (typeof seen)[number] = { method, path, key, token, answered: {} };
  seen.push(entry);
  const count = seen.filter((one) => one.method === method && one.path === path).length;
  if (fault(path, response, count)) return void incoming.resume();
  const forwarded = request(url + path, { method, headers }, (answer) => {
    entry.answered = answer.headers;
    if (loses(path, count)) return void answer.resume().on("end", () => response.destroy());
    response.writeHead(answer.statusCode ?? 0, answer.headers);
    answer.pipe(response);
  });
  incoming.pipe(forwarded);
});
await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
const address = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
after(() => relay.close());
beforeEach(() => {
  [seen, fault, loses] = [[], () => false, () => false];
});
afterEach(() => {
  mock.restoreAll();
  syncBuiltinESMExports();
});

/** The pauses in seconds, which are not waited for. */
function pauses(): number[] {
  const found: number[] = [];
  mock.method(timers, "setTimeout", (milliseconds: number) => Promise.resolve(void found.push(milliseconds / 1000)));
  syncBuiltinESMExports();
  return found;
}
const between = (from: number, value: number | undefined, to: number) =>
  assert.ok(value !== undefined && from <= value && value <= to, `${value} is not in ${from}…${to}`);

const desk = open({}, address);
const plan = (await desk.plans().first())?.id ?? 0;

function answer(response: ServerResponse, status: number, kind: string, headers: Record<string, string> = {}): true {
  response.writeHead(status, { "Content-Type": "application/problem+json", ...headers });
  response.end(JSON.stringify({ type: `${url}/problems#${kind}`, title: kind, status }));
  return true;
}

test("a lost answer to a write is the first one again", async () => {
  loses = (_, count) => count === 1;
  const [n = 0] = numbers(1);
  assert.equal((await desk.enrol(plan, memberOf(n), { only: "create" })).outcome, "created");
  const { etag } = await desk.versionedPlan(plan);
  await desk.changePlan(plan, { name: "Gold 2" }, { ifMatch: etag });
  const writes = seen.filter((one) => one.key);
  assert.deepEqual(writes.map((one) => one.answered["idempotency-replayed"]), [undefined, "true", undefined, "true"]);
  const keys = writes.map((one) => one.key);
  assert.ok(keys[0] === keys[1] && keys[1] !== keys[2] && keys[2] === keys[3]);
});

test("a lost answer makes no second file, and a stream is sent once", async () => {
  const bytes = csv(...numbers(3000).map((n) => memberOf(n)));
  loses = (path, count) => path.includes("/eligibility-files") && count === 1;
  const file = await (await desk.upload(plan, bytes, { dry_run: true })).wait(60);
  assert.deepEqual((await desk.files(plan).all()).map((found) => found.id), [file.id]);
  writeFileSync("stream.csv", bytes);
  const stream = createReadStream("stream.csv");
  loses = () => true;
  await assert.rejects(desk.upload(plan, stream), (error) => error instanceof Unreachable && error.cause instanceof Error);
  assert.equal(seen.filter((one) => one.path.endsWith("/eligibility-files") && one.method === "POST").length, 1);
});

test("your own key counts across two clients", async () => {
  const [n = 0] = numbers(1);
  const options = { only: "create", idempotencyKey: `load-${n}` } as const;
  const outcomes = [await desk.enrol(plan, memberOf(n), options), await open().enrol(plan, memberOf(n), options)];
  assert.deepEqual(outcomes.map((enrolment) => enrolment.outcome), ["created", "created"]);
  await refused(desk.enrol(plan, memberOf(n + 1), options), "invalid", "idempotency_key_reused");
});

test("429 and 503 are waited for as Retry-After says, a longer wait is thrown, and a refusal is not repeated", async () => {
  fault = (_, response, count) =>
    (count === 1 && answer(response, 429, "rate_limited", { "Retry-After": "3" })) ||
    (count === 2 && answer(response, 503, "unavailable"));
  const waited = pauses();
  assert.equal((await desk.plan(plan)).id, plan);
  assert.deepEqual([seen.length, waited.length], [3, 2]);
  between(3, waited[0], 3.3);
  between(0.5, waited[1], 1);
  fault = (_, response) => answer(response, 429, "rate_limited", { "Retry-After": "7200" });
  assert.equal((await refused(desk.plan(plan), "rate_limited")).retryAfter, 7200);
  fault = (_, response) => answer(response, 503, "unavailable", { "Retry-After": new Date(Date.now() + 90_000).toUTCString() });
  assert.ok(Number((await refused(desk.plan(plan), "unavailable")).retryAfter) > 60);
  fault = (_, response) => answer(response, 500, "internal");
  await refused(desk.enrol(plan, { external_id: "E-1" }), "internal");
  assert.deepEqual([seen.length, waited.length], [7, 3]); // a fault of the service is met with one more attempt
  fault = (path, response, count) => path.endsWith("/eligibility") && count === 3 && answer(response, 500, "internal");
  await refused(desk.enrol(plan, { external_id: "E-1" }), "invalid");
});

test("a change is sent with the key of its caller", async () => {
  fault = (_, response) => response.end(JSON.stringify({ data: [{ id: 7, plan_id: plan }] })) !== undefined;
  const own = { idempotencyKey: "mine" };
  const file = await desk.file(plan, 7);
  file.data = { ...file.data, id: 7, plan_id: plan };
  await file.approve(own);
  await file.cancel(own);
  await file.undo(own);
  await file.acceptMapping({}, { keep: false, ...own });
  await desk.changePlan(plan, {}, own);
  await desk.enrol(plan, { external_id: "E-1" }, own);
  await desk.enrolBatch(plan, [], own);
  await desk.endMember(plan, 7, "2026-06-30", own);
  await desk.renameMember(plan, 7, { external_id: "E-2" }, own);
  await desk.upload(plan, csv(memberOf(1)), own);
  await desk.createWebhookEndpoint({ url }, own);
  await desk.changeWebhookEndpoint(7, {}, own);
  await desk.rotateWebhookSecret(7, own);
  await desk.testWebhookEndpoint(7, own);
  await desk.replayWebhookEndpoint(7, { event_id: "evt_1" }, own);
  const changes = seen.filter((one) => one.method !== "GET");
  assert.deepEqual(changes.map((one) => one.key), Array.from({ length: 15 }, () => "mine"));
  assert.ok(!changes.some((one) => one.path.includes("idempotencyKey")));
});

test("a batch names the unknown fields of its records, and what was meant", async () => {
  const data = [{ index: 0, status: 201, ignored_fields: ["zip code"] }];
  fault = (_, response) => {
    response.setHeader("Ignored-Fields", "zip%20code,colour").setHeader("Did-You-Mean", "zip%20code=zipcode");
    return response.writeHead(207).end(JSON.stringify({ data, counts: {} })) !== undefined;
  };
  const found = await desk.enrolBatch(plan, [{ external_id: "E-1" }]);
  assert.deepEqual(found.ignoredFields, ["zip code", "colour"]);
  assert.deepEqual(found.didYouMean, { "zip code": "zipcode" });
  assert.deepEqual(found.data, data);
});

test("the last failure is thrown when no attempt is left", async () => {
  fault = (_, response) => response.destroy() !== undefined;
  const waited = pauses();
  await assert.rejects(desk.plan(plan), Unreachable);
  assert.deepEqual([seen.length, waited.length], [6, 5]);
  waited.forEach((seconds, index) => between(0.25 * 2 ** index, seconds, 0.5 * 2 ** index));
  fault = () => true; // no answer
  await assert.rejects(open({ attempts: 1, timeoutSeconds: 0.2 }, address).plan(plan), /too long/);
});

test("a revoked token is replaced once, also for an upload", async () => {
  for (const work of [() => desk.plan(plan), () => desk.upload(plan, csv(memberOf(1)), { dry_run: true })]) {
    seen = [];
    await desk.me();
    const token = String(seen[0]?.token.slice("Bearer ".length));
    const body = new URLSearchParams({ token, client_id: id, client_secret: secret });
    assert.equal((await fetch(`${url}/oauth/revoke`, { method: "POST", body })).status, 200);
    // Another process may know the token for 5 s; the relay refuses it at once.
    const revoked = seen[0]?.token;
    const isRevoked = (path: string) => path !== "/oauth/token" && seen.at(-1)?.token === revoked;
    fault = (path, response) => isRevoked(path) && answer(response, 401, "unauthorized");
    seen = [];
    await work();
    assert.deepEqual(seen.map((one) => one.path === "/oauth/token"), [false, true, false]);
  }
  fault = (path, response) => path !== "/oauth/token" && answer(response, 401, "unauthorized");
  seen = [];
  await refused(desk.plan(plan), "unauthorized");
  assert.equal(seen.length, 3);
});

test("concurrent calls share a token, and it is renewed a minute before its end", async () => {
  const fresh = open({}, address);
  let now = performance.now();
  await Promise.all([fresh.me(), fresh.plan(plan), fresh.plans().first()]);
  const renewals = () => seen.filter((one) => one.path === "/oauth/token").length;
  assert.equal(renewals(), 1);
  const lifetime = Date.parse((await fresh.me()).token_expires_at) - Date.now();
  mock.method(performance, "now", () => now);
  now += lifetime - 65_000;
  await fresh.me();
  assert.equal(renewals(), 1);
  now += 10_000;
  await Promise.all([fresh.me(), fresh.plan(plan)]);
  assert.equal(renewals(), 2);
});

test("wrong credentials, wrong scopes and other servers are told from each other", async () => {
  const wrong = await refused(new Frontdesk(url, id, "not-the-secret").plan(plan), "invalid_client");
  assert.ok(!wrong.message.includes("not-the-secret"));
  await refused(open({ scope: "x" }).plan(plan), "invalid_scope");
  fault = (_, response) => response.end("<html>") !== undefined;
  await assert.rejects(desk.plan(plan), UnexpectedAnswer);
  await assert.rejects(open({}, address).plan(plan), UnexpectedAnswer);
  fault = (_, response) => response.writeHead(302, { Location: "http://127.0.0.1:9/" }).end() !== undefined;
  assert.equal((await desk.plan(plan).catch((error: ApiError) => error) as ApiError).status, 302);
  for (const other of ["http://api.example.com", "api.example.com", "ftp://localhost", ""]) {
    assert.throws(() => open({}, other), /https/);
  }
  assert.ok(!JSON.stringify(desk).includes(secret));
});

test("a next page is never another address", async () => {
  const next = "https://elsewhere.example.com/other?page%5Bsize%5D=1&page%5Bafter%5D=9";
  fault = (_, response) => response.end(JSON.stringify({ links: seen.length === 1 ? { next } : {}, data: [{}] })) !== undefined;
  assert.equal((await desk.plans().all()).length, 2);
  const paths = seen.map((one) => decodeURIComponent(one.path));
  assert.deepEqual(paths, ["/v2/plans?page[size]=1000", "/v2/plans?page[size]=1&page[after]=9"]);
});

test("a file that becomes shorter while it is sent is not loaded", async () => {
  writeFileSync("members.csv", csv(...numbers(3000).map((n) => memberOf(n))));
  const progress = () => truncateSync("members.csv", 70_000);
  await assert.rejects(desk.upload(plan, "members.csv", { progress }), /became shorter/);
  const stops = new Error("stop");
  await assert.rejects(desk.upload(plan, csv(memberOf(1)), { progress: () => assert.fail(stops) }), stops);
});

// Made with the library `standardwebhooks` 1.1.0.
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"type": "file.done", "timestamp": "2026-11-23T20:00:00Z", "data": {"file_id": 7}}';
const SIGNATURE = "v1,iHtaR8UhXrOnlUIhUnTlW/CMI5L+HL7QpUQaFC5JcQo=";
const SIGNED = { "Webhook-Id": "msg_1", "webhook-timestamp": "1795464000", "webhook-signature": SIGNATURE };

test("a webhook is verified as the library of Standard Webhooks does", () => {
  let now = 1_795_464_000_000;
  mock.method(Date, "now", () => now);
  const other = "whsec_AAAA";
  assert.equal(verifyWebhook(BODY, SIGNED, SECRET).type, "file.done");
  assert.equal(verifyWebhook(Buffer.from(BODY), new Headers(SIGNED), [other, SECRET]).data.file_id, 7);
  const two = { ...SIGNED, "webhook-signature": `v1,AAAA v2,x ${SIGNATURE}` };
  assert.equal(verifyWebhook(BODY, two, SECRET).type, "file.done");
  const forged: [string, Record<string, string | undefined>, string][] = [
    [BODY.replace("7", "8"), SIGNED, SECRET],
    [BODY, SIGNED, other],
    [BODY, { ...SIGNED, "Webhook-Id": "msg_2" }, SECRET],
    [BODY, { ...SIGNED, "webhook-timestamp": "1795464001" }, SECRET],
    [BODY, { ...SIGNED, "webhook-timestamp": "x" }, SECRET],
    [BODY, { ...SIGNED, "webhook-signature": undefined }, SECRET],
    [BODY, {}, SECRET],
  ];
  for (const given of forged) assert.throws(() => verifyWebhook(...given), BadSignature);
  now += 301_000;
  assert.throws(() => verifyWebhook(BODY, SIGNED, SECRET), /five minutes/);
  for (const bad of ["whsec_", "whsec_%%", ""]) assert.throws(() => verifyWebhook(BODY, SIGNED, bad), TypeError);
});
