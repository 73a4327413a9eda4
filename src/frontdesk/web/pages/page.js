// The one script of the pages: refresh of a region, and the end of the session.
// Everything works without it; then a reload shows what is new.
"use strict";

(() => {
  const REFRESH_SECONDS = 5;
  const OFFER_SECONDS = 120; // before the session ends

  // Not location.reload(): on the answer of a form that would send the form again, with nobody's hand.
  const openAnew = () => location.replace(location.href);

  // A page that comes back from the back-forward cache may show what its session may see no more.
  addEventListener("pageshow", (event) => {
    if (event.persisted && document.body.classList.contains("framed")) {
      document.body.replaceChildren();
      openAnew();
    }
  });

  // Regions that are fetched anew, each by its id. What is open and what has the focus stay: a region
  // is replaced only if the page has changed, and not while something is typed or pressed in it.
  const regions = () => [...document.querySelectorAll("[data-refresh]")];
  let tag = document.querySelector("[data-tag]")?.dataset.tag || "";
  let isPaused = false;

  function replace(region, fresh) {
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    if (focused && !focused.matches("a[href]")) return false;
    const link = focused && focused.getAttribute("href");
    region.innerHTML = fresh.innerHTML;
    const same = [...region.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === link);
    if (same) same.focus({ preventScroll: true });
    return true;
  }

  async function refresh() {
    if (isPaused || document.hidden || regions().length === 0) return;
    const headers = { "X-Frontdesk-Refresh": "timer" };
    if (tag) headers["If-None-Match"] = tag;
    let answer;
    try {
      answer = await fetch(location.href, { headers, credentials: "same-origin", cache: "no-store" });
    } catch {
      return; // the old numbers stay, with their time
    }
    if (answer.status >= 500) return; // as without an answer
    if (answer.status !== 304) {
      if (answer.redirected || !answer.ok) return openAnew();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (isPaused) return;
      const changes = regions().map((region) => [region, page.getElementById(region.id)]);
      const isWhole = changes.map(([region, fresh]) => !fresh || replace(region, fresh)).every(Boolean);
      tag = (isWhole && answer.headers.get("ETag")) || "";
      if (!isWhole) return;
    }
    const asOf = answer.headers.get("X-Frontdesk-As-Of");
    if (asOf) document.querySelectorAll("[data-as-of]").forEach((text) => (text.textContent = asOf));
  }

  if (regions().length > 0) {
    setInterval(refresh, REFRESH_SECONDS * 1000);
    // What holds while the page refreshes itself, and what holds while it does not.
    document.querySelectorAll("[data-live]").forEach((text) => (text.hidden = !text.hidden));
    const pause = document.querySelector("[data-pause]");
    if (pause) {
      pause.hidden = false;
      pause.addEventListener("click", () => {
        isPaused = !isPaused;
        pause.textContent = isPaused ? "Go on" : "Pause";
        pause.setAttribute("aria-pressed", String(isPaused));
      });
    }
  }

  // A file is sent with its progress. The answer takes the place of the page, as without script.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("[data-upload]")) return;
    event.preventDefault();
    const line = form.querySelector("[data-progress]");
    if (!line.hidden) return; // it is on its way
    const brokeOff = form.querySelector("[data-broke-off]");
    const tooLarge = form.querySelector("[data-most-bytes]");
    const [file] = form.querySelector("[type=file]").files;
    tooLarge.hidden = file.size <= Number(tooLarge.dataset.mostBytes);
    if (!tooLarge.hidden) return; // a connection that the service ends says nothing
    const words = line.querySelector("span");
    const mib = (bytes) => (bytes / 1048576).toFixed(1);
    line.hidden = false;
    brokeOff.hidden = true;
    isPaused = true; // a page that opens anew would end the upload
    words.textContent = "";
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      line.querySelector("progress").value = (100 * loaded) / total;
      const isSent = loaded === total;
      words.textContent = isSent ? "Sent. It is being stored." : `${mib(loaded)} of ${mib(total)} MiB are sent.`;
    });
    const breakOff = async () => {
      // What the service said has not arrived: this page tells whether the session or the right has ended.
      const headers = { "X-Frontdesk-Refresh": "timer" };
      const options = { headers, credentials: "same-origin", cache: "no-store" };
      const answer = await fetch(location.href, options).catch(() => null);
      if (answer && answer.status < 500 && (answer.redirected || !answer.ok)) return openAnew();
      line.hidden = true;
      brokeOff.hidden = false;
      isPaused = false;
    };
    request.addEventListener("error", breakOff);
    request.addEventListener("load", () => {
      if (request.status < 400) return location.assign(request.responseURL);
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      if (!page.body.classList.contains("framed")) return breakOff(); // a proxy's own page
      document.title = page.title;
      document.body.replaceWith(page.body);
    });
    request.open("POST", form.action);
    request.send(new FormData(form));
  });

  // The session's end: two minutes before it the page offers to stay.
  const end = document.querySelector("[data-seconds-left]");
  if (end) {
    const left = Number(end.dataset.secondsLeft);
    const offer = () => {
      end.hidden = false;
      end.setAttribute("role", "alert");
    };
    setTimeout(offer, Math.max(0, left - OFFER_SECONDS) * 1000);
    end.querySelector("form").addEventListener("submit", async (event) => {
      event.preventDefault();
      const answer = await fetch(event.target.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(event.target)),
        credentials: "same-origin",
        redirect: "manual",
      });
      if (answer.type !== "opaqueredirect" && !answer.ok) return openAnew();
      end.hidden = true;
      setTimeout(offer, Math.max(0, left - OFFER_SECONDS) * 1000);
    });
  }
})();
