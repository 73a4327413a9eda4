// The one script of the pages: refresh of a region, progress of an upload, the end of the session.
// Everything works without it; then a reload shows what is new.
"use strict";

(() => {
  const REFRESH_SECONDS = 5;
  const OFFER_SECONDS = 120; // before the session ends

  // A page that comes back from the back-forward cache may show what its session may see no more.
  addEventListener("pageshow", (event) => {
    if (event.persisted && document.body.classList.contains("framed")) {
      document.body.replaceChildren();
      location.reload();
    }
  });

  // Regions that are fetched anew. Focus and what is open stay: only a region that has changed is
  // replaced, and none in which something has the focus.
  const regions = () => [...document.querySelectorAll("[data-refresh]")];
  let tag = document.querySelector("[data-tag]")?.dataset.tag || "";
  let isPaused = false;

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
    if (answer.status === 304) return;
    if (answer.redirected || !answer.ok) return location.reload();
    tag = answer.headers.get("ETag") || "";
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const region of regions()) {
      const fresh = page.getElementById(region.id);
      if (fresh && !region.contains(document.activeElement)) region.innerHTML = fresh.innerHTML;
    }
  }

  if (regions().length > 0) {
    setInterval(refresh, REFRESH_SECONDS * 1000);
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
      if (answer.type !== "opaqueredirect" && !answer.ok) return location.reload();
      end.hidden = true;
      setTimeout(offer, Math.max(0, left - OFFER_SECONDS) * 1000);
    });
  }

  // An upload with its progress.
  const upload = document.querySelector("form[data-upload]");
  if (upload) {
    upload.addEventListener("submit", (event) => {
      event.preventDefault();
      const bar = upload.querySelector("progress");
      const said = upload.querySelector("[data-said]");
      const request = new XMLHttpRequest();
      request.upload.addEventListener("progress", (sent) => {
        bar.hidden = false;
        bar.max = sent.total;
        bar.value = sent.loaded;
      });
      request.addEventListener("load", () => {
        if (request.responseURL && request.status < 400) return location.assign(request.responseURL);
        document.open();
        document.write(request.responseText);
        document.close();
      });
      request.addEventListener("error", () => {
        bar.hidden = true;
        said.textContent = "The upload broke off. Nothing was stored: choose the file again.";
      });
      request.open("POST", upload.action);
      request.send(new FormData(upload));
    });
  }
})();
