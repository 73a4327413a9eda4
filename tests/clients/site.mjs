// What a reader of the site needs: axe finds nothing in its pages, the search finds, and a changing call asks first.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, folder] = process.argv.slice(2);
const require = createRequire(join(modules, "node_modules/"));
const { JSDOM } = require("jsdom");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const read = (name) => readFileSync(join(folder, name), "utf8");
const open = (name) => new JSDOM(read(name), { runScripts: "outside-only", url: "https://api.example.com/docs" }).window;
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

// jsdom has no layout, so contrast is checked in a browser only.
const rules = { "color-contrast": { enabled: false } };
for (const name of readdirSync(folder).filter((each) => each.endsWith(".html"))) {
  const window = open(name);
  window.eval(axe);
  const { violations } = await window.axe.run(window.document, { rules });
  assert.deepEqual([...violations].map(({ id, nodes }) => [name, id, nodes[0].html]), []);
}

const window = open("start.html");
window.fetch = async () => ({ json: async () => JSON.parse(read("search.json")) });
window.eval(read("site.js"));
async function found(text) {
  const search = window.document.getElementById("search");
  search.value = text;
  search.dispatchEvent(new window.Event("input"));
  await settled();
  return [...window.document.querySelectorAll("#found a")].map((link) => link.getAttribute("href"));
}
assert.equal((await found("not_unique"))[0], "/problems#not_unique");
assert.equal((await found("dry run"))[0].split("#")[0], "/docs/daily-file");
assert.ok((await found("post eligibility")).includes("/docs/reference#tag/eligibility/enrolMember"));
assert.deepEqual(await found("xyzzy"), []);
assert.match(window.document.getElementById("found").textContent, /Nothing matches/);
const menu = window.document.getElementById("menu");
menu.click();
assert.equal(menu.getAttribute("aria-expanded"), "true");

async function reference(page) {
  const opened = open(page);
  const log = { sent: [], asked: [], told: [], answer: true, shown: undefined };
  const request = (input, options) => log.sent.push(`${options?.method ?? input.method ?? "GET"} ${input.url ?? input}`);
  opened.fetch = async (input, options) => (request(input, options), { json: async () => JSON.parse(read("openapi.json")) });
  opened.confirm = (text) => (log.asked.push(text), log.answer);
  opened.alert = (text) => log.told.push(text);
  opened.Scalar = { createApiReference: (_place, options) => (log.shown = options) };
  opened.eval(`(async () => {${read("reference.js")}})()`);
  await settled();
  log.sent.length = 0;
  return [opened, log];
}
const MEMBER = "https://api.example.com/v2/plans/1/eligibility";
const post = (opened) => opened.fetch({ url: MEMBER, method: "POST" });

const [sandbox, log] = await reference("reference.html");
await sandbox.fetch("/v2/plans");
await sandbox.fetch("/oauth/token", { method: "POST" });
assert.deepEqual([log.asked, log.sent], [[], ["GET /v2/plans", "POST /oauth/token"]]);
await post(sandbox);
assert.deepEqual([log.asked.length, log.sent.length], [1, 3]);
log.answer = false;
await assert.rejects(post(sandbox));
await assert.rejects(sandbox.fetch(MEMBER, { method: "delete" }));
assert.deepEqual([log.asked.length, log.sent.length], [3, 3]);
assert.deepEqual([log.shown.telemetry, log.shown.proxyUrl, log.shown.withDefaultFonts], [false, "", false]);
const { info, paths } = log.shown.content;
assert.match(info.description, /`X-Request-Id`/);
assert.equal(paths["/v2/plans"].get.responses["200"].headers["X-Request-Id"], undefined);
assert.ok(paths["/v2/plans"].get.responses["200"].headers.ETag);

const [production, quiet] = await reference("production.html");
await assert.rejects(post(production));
assert.deepEqual([quiet.asked, quiet.sent, quiet.told.length], [[], [], 1]);
production.document.getElementById("changes").click();
await post(production);
assert.deepEqual([quiet.asked.length, quiet.sent.length], [1, 1]);

// The parts of Scalar's request editor that axe finds fault with, as Scalar writes them.
const main = sandbox.document.createElement("main");
main.className = "references-rendered";
const editor = sandbox.document.createElement("div");
editor.className = "scalar-client--open";
editor.innerHTML = `<div role="dialog" aria-label="API Client"><section aria-label="Notifications alt+T"></section>
  <main><button class="group/copy-button" aria-controls="gone"></button><button aria-haspopup="menu"></button>
  <button role="alert" aria-label="Input is invalid"></button><div class="cm-scroller" tabindex="-1">{}</div></main></div>`;
sandbox.document.body.append(main, editor);
await settled();
const part = (selector) => editor.querySelector(selector);
assert.equal(main.inert, true);
assert.equal(part("section").getAttribute("aria-label"), "Notifications of the request");
assert.ok(part("[aria-haspopup]").getAttribute("aria-label"));
assert.deepEqual([part(".cm-scroller").tabIndex, part("[role=alert]"), part("[aria-controls]")], [0, null, null]);
assert.equal(part("[class*=copy-button]").getAttribute("aria-label"), "Copy");
editor.className = "";
await settled();
assert.equal(main.inert, false);
