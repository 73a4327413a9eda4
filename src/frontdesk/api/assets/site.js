// The search, the menu of narrow windows, and a button that copies each example.
const search = document.getElementById("search");
const found = document.getElementById("found");
const menu = document.getElementById("menu");
const pages = document.getElementById("pages");
const SHOWN = 12;
let index;

const words = (text) => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

// Each part has the page's title, its heading and its text; a word counts where another word begins with it.
async function load() {
  const parts = await (await fetch("/docs/search.json")).json();
  return parts.map(([path, title, heading, start, rest]) => {
    const weighed = [[heading, 9], [title, 4], [`${start} ${rest}`, 1]];
    return { path, title, heading, start, weighed: weighed.map(([text, weight]) => [` ${words(text).join(" ")}`, weight]) };
  });
}

function score(part, asked) {
  let total = 0;
  for (const word of asked) {
    const hits = part.weighed.filter(([text]) => text.includes(` ${word}`)).map(([, weight]) => weight);
    if (hits.length === 0) return 0;
    total += Math.max(...hits);
  }
  return total;
}

async function show() {
  const asked = words(search.value);
  index ??= load();
  const parts = await index.catch(() => ((index = undefined), []));
  if (asked.join() !== words(search.value).join()) return;
  const scored = parts.map((part) => [score(part, asked), part]).filter(([points]) => points > 0);
  const best = scored.sort((one, other) => other[0] - one[0]).slice(0, SHOWN);
  found.replaceChildren(...best.map(([, part]) => entry(part)));
  if (best.length === 0) {
    const none = document.createElement("p");
    none.textContent = "Nothing matches. Try another word, or a code such as not_unique.";
    found.append(none);
  }
  found.hidden = asked.length === 0;
}

function entry({ path, title, heading, start }) {
  const link = document.createElement("a");
  link.href = path;
  link.textContent = heading === title ? title : `${title} › ${heading}`;
  const small = document.createElement("small");
  small.textContent = start;
  link.append(small);
  return link;
}

function close() {
  found.hidden = true;
}

search.addEventListener("input", show);
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter") found.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key === "Escape") close();
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    search.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[role=search]") || event.target.closest("#found a")) close();
});
menu?.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(pages.classList.toggle("open")));
});
for (const example of document.querySelectorAll("main > pre")) {
  const box = document.createElement("div");
  box.className = "code";
  const copy = document.createElement("button");
  copy.type = "button";
  copy.textContent = "Copy";
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(example.textContent);
    copy.textContent = "Copied";
  });
  example.replaceWith(box);
  box.append(example, copy);
}
