/* Follows a log while its end is in sight: not while the tab is hidden, the reader scrolled up or switched it off. */
(() => {
  "use strict";
  const part = () => document.getElementById("logs");
  const box = () => document.getElementById("log");
  const isAtEnd = () => {
    const log = box();
    return !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 2;
  };
  const showEnd = () => {
    const log = box();
    log?.scrollTo({ top: log.scrollHeight, behavior: "instant" });
  };

  const describe = () => {
    if (!document.querySelector("[data-follow]")?.checked) return "off";
    if (!isAtEnd()) return "paused: scroll to the end";
    return document.hidden ? "paused" : "";
  };
  const update = () => {
    const state = document.querySelector("[data-follow-state]");
    const polled = part();
    if (!polled) return;
    const reason = describe();
    if (state && state.textContent !== reason) state.textContent = reason;
    const wasPaused = polled.dataset.paused !== undefined;
    if (reason) polled.dataset.paused = "";
    else delete polled.dataset.paused;
    if (wasPaused && !reason) globalThis.htmx?.trigger(polled, "resume");
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt } = event.detail;
    if (elt.id === "logs" && elt.dataset.paused !== undefined) event.preventDefault();
  });
  // A longer log shows its end if that was in sight, and always when something else was chosen.
  let staysAtEnd = true;
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.target.id === "logs") staysAtEnd = detail.requestConfig.elt.id !== "logs" || isAtEnd();
  });
  document.addEventListener("htmx:afterSettle", ({ detail }) => {
    if (detail.target.id !== "logs") return;
    if (staysAtEnd) showEnd();
    update();
  });
  document.addEventListener("scroll", ({ target }) => {
    if (target.id === "log") update();
  }, { capture: true, passive: true });
  document.addEventListener("visibilitychange", update);
  window.addEventListener("resize", () => {
    if (part()?.dataset.paused === undefined) showEnd();
  });
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("[data-follow]")) return;
    if (target.checked) showEnd();
    update();
  });
  showEnd();
  update();
})();
