/* A session that ended while the page was open. The page says so once, keeps what was typed, stops
   polling, and continues as soon as the same person has signed in again, here or in another tab. */
(() => {
  "use strict";
  const { user, session, signIn } = document.body.dataset;
  if (!session) return;
  const tabs = new BroadcastChannel("slipway-session");
  let isSignedOut = false;
  const stopped = new Set();

  // Requests of a page that nobody touches do not keep the session open.
  const unattendedAfter = 60_000;
  let touchedAt = Date.now();
  ["pointerdown", "pointermove", "keydown", "wheel", "scroll", "focus"].forEach((name) =>
    window.addEventListener(name, () => { touchedAt = Date.now(); }, { capture: true, passive: true }));
  document.addEventListener("htmx:configRequest", (event) => {
    if (Date.now() - touchedAt > unattendedAfter) event.detail.headers["Slipway-Unattended"] = "1";
  });

  const say = (message, action) => {
    const banner = document.getElementById("signed-out") ?? document.createElement("div");
    banner.id = "signed-out";
    banner.className = "banner warn stuck";
    banner.setAttribute("role", "alert");
    const text = document.createElement("span");
    text.textContent = message;
    banner.replaceChildren(text, action);
    document.getElementById("content").prepend(banner);
  };
  const link = (text, href, isNewTab) => {
    const element = document.createElement("a");
    element.className = "btn";
    element.textContent = text;
    element.href = href;
    if (isNewTab) element.target = "_blank";
    return element;
  };
  const sayEnded = () => {
    const here = encodeURIComponent(location.pathname + location.search);
    say("You've been signed out. What you typed is kept: sign in again to continue.",
      link("Sign in again", `${signIn}?next=${here}`, true));
  };
  const end = () => {
    if (isSignedOut) return;
    isSignedOut = true;
    sayEnded();
  };

  const goOn = (token) => {
    isSignedOut = false;
    document.getElementById("signed-out")?.remove();
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
    document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((field) => { field.value = token; });
    // Request what was chosen meanwhile.
    [...stopped].filter((element) => element.isConnected).forEach((element) => htmx.trigger(element, "change"));
    stopped.clear();
  };
  const check = async () => {
    if (!isSignedOut) return;
    const response = await fetch(session, { cache: "no-store" }).catch(() => undefined);
    if (!response?.ok) return;
    const current = await response.json();
    if (current.user === user) goOn(current.csrf_token);
    else say(`You are now signed in as ${current.user}, but this page was opened by ${user}. Copy what you typed, then reload the page.`,
      link("Reload", location.href));
  };

  tabs.postMessage(user);
  tabs.addEventListener("message", check);
  window.addEventListener("focus", check);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) check(); });

  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status === 401) end();
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (!isSignedOut) return;
    event.preventDefault();
    if (event.detail.requestConfig.triggeringEvent?.type === "change") stopped.add(event.detail.elt);
  });
  // A form that would be lost stays on the page instead.
  document.addEventListener("submit", (event) => {
    if (!isSignedOut || event.target.method !== "post") return;
    event.preventDefault();
    document.querySelector("#signed-out a")?.focus();
    check();
  }, true);
})();
