// Shows /openapi.json. Nothing leaves this service, and a changing call asks first.
const SAFE = ["GET", "HEAD", "OPTIONS"];
const changes = document.getElementById("changes");
const send = window.fetch.bind(window);

window.fetch = async (input, options) => {
  const method = (options?.method ?? input.method ?? "GET").toUpperCase();
  const path = new URL(input.url ?? input, location.href).pathname;
  const isChanging = !SAFE.includes(method) && !path.startsWith("/oauth/");
  if (isChanging && !changes.checked) {
    alert("Changing calls are off on this page. Tick “Changing calls” at the top to allow them.");
    throw new Error("Changing calls are off on this page.");
  }
  if (isChanging && !confirm(`Send ${method} ${path}? It changes stored data.`)) {
    throw new Error("Not sent.");
  }
  return send(input, options);
};

// Headers and parameters that most operations share are explained once, at the start.
function withSharedPartsOnce(description) {
  const { headers, parameters } = description.components;
  const operations = Object.values(description.paths).flatMap((methods) => Object.values(methods));
  const described = [...operations.flatMap((each) => Object.values(each.responses)), ...Object.values(description.components.responses)];
  const responses = described.filter((each) => !each.$ref);
  const name = (part) => part.$ref?.split("/").at(-1);
  const count = (names) => names.reduce((counts, each) => counts.set(each, (counts.get(each) ?? 0) + 1), new Map());
  const shared = (counts, total) => new Set([...counts].filter(([, uses]) => uses > total / 3).map(([each]) => each));
  const sharedHeaders = shared(count(responses.flatMap((each) => Object.keys(each.headers ?? {}))), responses.length);
  const sharedParameters = shared(count(operations.flatMap((each) => each.parameters.map(name))), operations.length);
  for (const response of responses) {
    response.headers = Object.fromEntries(Object.entries(response.headers ?? {}).filter(([each]) => !sharedHeaders.has(each)));
  }
  for (const operation of operations) {
    operation.parameters = operation.parameters.filter((each) => !sharedParameters.has(name(each)) || parameters[name(each)].in === "path");
  }
  const rows = [
    ...[...sharedParameters].map((each) => parameters[each]).filter((each) => each.in === "header").map((each) => [`${each.name} (request)`, each.description]),
    ...[...sharedHeaders].map((each) => [each, headers[each].description]),
  ];
  const table = rows.map(([each, text]) => `- \`${each}\`: ${text}`).join("\n");
  description.info.description += `\n\n## Headers of every operation\n\nMost answers can have these headers.\n\n${table}\n`;
  return description;
}

const description = withSharedPartsOnce(await (await send("/openapi.json")).json());
// Some parts of Scalar lack a name or a state that screen readers need.
const REPAIRS = [
  [".scalar-code-copy:not([aria-label])", (button) => button.setAttribute("aria-label", "Copy")],
  [".show-more[aria-label]", (button) => button.removeAttribute("aria-label")],
  ["button[role=none]", (button) => button.removeAttribute("role")],
  ['#reference a[target="_blank"]:not([aria-label])', (link) => link.setAttribute("aria-label", link.textContent.trim() || link.href)],
  [".scalar-card-content:not([tabindex])", (card) => card.setAttribute("tabindex", "0")],
  ["[role=combobox]:not([aria-expanded])", (field) => field.setAttribute("aria-expanded", "false")],
  [".cm-content:not([aria-label])", (field) => field.setAttribute("aria-label", "Body")],
  ["button[class*=copy-button]:not([aria-label])", (button) => button.setAttribute("aria-label", "Copy")],
  ['.cm-scroller[tabindex="-1"]', (text) => text.setAttribute("tabindex", "0")],
  ["button[class*=copy-button][aria-controls]", (button) => document.getElementById(button.getAttribute("aria-controls")) || button.removeAttribute("aria-controls")],
  ["button[role=alert]", (button) => button.removeAttribute("role")],
  ["button[aria-haspopup=menu]:not([aria-label])", (button) => button.textContent.trim() || button.setAttribute("aria-label", "Choose a value")],
  ["[role=dialog] section[aria-label^=Notifications]", (section) => section.setAttribute("aria-label", "Notifications of the request")],
  // What is behind the open request editor can't be reached, as of any dialog.
  [".references-rendered", (page) => (page.inert = document.querySelector(".scalar-client--open") !== null)],
];
function repair() {
  for (const [parts, change] of REPAIRS) document.querySelectorAll(parts).forEach(change);
}
new MutationObserver(repair).observe(document.body, { childList: true, subtree: true, attributeFilter: ["class"] });

Scalar.createApiReference("#reference", {
  content: description,
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: "",
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  hideSearch: true,
  hideDarkModeToggle: true,
  persistAuth: false,
  showDeveloperTools: "never",
  orderRequiredPropertiesFirst: true,
  operationTitleSource: "summary",
  generateOperationSlug: (operation) => operation.operationId,
});
