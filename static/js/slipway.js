/* Comforts of the frame. Every page works without this file. */
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");

  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Theme: shown at once; the form posts the choice, and the server renders it from then on.
  document.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-theme-choice]");
    if (!choice) return;
    if (choice.value) root.dataset.theme = choice.value;
    else delete root.dataset.theme;
    all("[data-theme-choice][aria-pressed]").forEach((other) =>
      other.setAttribute("aria-pressed", String(other.value === choice.value)));
  });
  // The switch shows the other theme from now on; keyboards stay on it. Only now, as htmx sends the button that has
  // the focus when the form is submitted.
  document.addEventListener("submit", ({ submitter }) => {
    if (submitter?.matches("[data-theme-choice]") && !submitter.checkVisibility())
      all("[data-theme-choice]", submitter.form).find((other) => other.checkVisibility())?.focus();
  });

  // Drawer.
  const setDrawer = (open) => {
    root.classList.toggle("drawer", open);
    all("[data-drawer]").forEach((button) => button.setAttribute("aria-expanded", String(open)));
    if (open) document.querySelector("#rail nav a")?.focus();
  };
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-drawer]")) {
      event.preventDefault();
      setDrawer(!root.classList.contains("drawer"));
    } else if (!event.target.closest("#rail")) setDrawer(false);
    all("details[data-menu][open]").forEach((menu) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    if (event.target.closest("[data-close]")) event.target.closest("[data-problem], .banner").remove();
  });

  // Search: "/", Ctrl-K, a click or typing opens it, arrows walk the results, Escape leaves. Tab passes by.
  const openSearch = (search) => {
    search.closest(".jump").classList.add("open");
    search.dispatchEvent(new Event("jump"));
  };
  document.addEventListener("pointerdown", (event) => {
    if (event.target.matches("[data-jump]")) openSearch(event.target);
  });
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-jump]")) event.target.closest(".jump").classList.add("open");
  });
  document.addEventListener("focusout", (event) => {
    const jump = event.target.closest?.(".jump");
    if (jump && !jump.contains(event.relatedTarget)) jump.classList.remove("open");
  });
  const isTyping = (target) => target.matches("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    const search = document.querySelector("[data-jump]");
    const asksForSearch = (event.key === "k" && (event.ctrlKey || event.metaKey)) ||
      (event.key === "/" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey);
    if (search && asksForSearch) {
      event.preventDefault();
      search.focus();
      search.select();
      openSearch(search);
      return;
    }
    if (event.key === "Escape") {
      setDrawer(false);
      all("details[data-menu][open]").forEach((menu) => {
        menu.open = false;
        menu.querySelector("summary").focus();
      });
      if (event.target.closest(".jump")) event.target.blur();
      return;
    }
    if (event.target.closest?.(".jump") && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      const stops = [search, ...all("#jump-results a")];
      const step = event.key === "ArrowDown" ? 1 : -1;
      stops[(stops.indexOf(document.activeElement) + step + stops.length) % stops.length].focus();
    }
  });

  // The cause of a toast while the portal answers with errors, or not at all.
  const UNREACHABLE = "unreachable";

  // Copy buttons: data-copy is the text, or "#id" of the element with the text.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = button.dataset.copy;
    const text = source.startsWith("#") ? document.querySelector(source).textContent : source;
    try {
      await navigator.clipboard.writeText(text.trim());
      button.classList.add("copied");
      button.setAttribute("aria-label", "Copied");
      setTimeout(() => button.classList.remove("copied"), 1500);
    } catch {
      toast("The browser blocked access to the clipboard. Select the text and copy it.");
    }
  });

  // Spare rows of a form are shown one at a time.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add-row]");
    if (!button) return;
    const spare = all(".spare:not(.shown)", button.closest(".rows, .card"));
    spare[0]?.classList.add("shown");
    spare[0]?.querySelector("input")?.focus();
    button.hidden = spare.length < 2;
  });

  // The heading of a fold tells the values that the page came with, so it counts the fields that were changed since.
  const isChanged = (field) => {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (!field.matches("select")) return field.value !== field.defaultValue;
    const options = [...field.options];
    return field.selectedIndex !== Math.max(options.findIndex((one) => one.defaultSelected), 0);
  };
  const countChanges = (fold) => {
    const label = fold.querySelector(":scope > summary > [data-fold-values]");
    if (!label) return;
    label.dataset.foldValues ||= label.textContent;
    const count = new Set(all("input, select, textarea", fold).filter(isChanged).map(({ name }) => name)).size;
    label.textContent = count ? `${count} changed` : label.dataset.foldValues;
  };
  document.addEventListener("change", ({ target }) => {
    const fold = target.closest("details.fold");
    if (fold) countChanges(fold);
  });
  document.addEventListener("reset", ({ target }) => setTimeout(() => all("details.fold", target).forEach(countChanges)));

  // Relative times stay true while the page is open. The format is that of portal/ui/formats.py.
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const since = (at) => {
    const gap = (Date.now() - at) / 1000;
    if (Math.abs(gap) < 5) return "just now";
    const [size, name] = units.find(([size]) => Math.abs(gap) >= size);
    const text = `${Math.floor(Math.abs(gap) / size)} ${name}`;
    return gap > 0 ? `${text} ago` : `in ${text}`;
  };
  const refreshTimes = () => all("time[data-since]").forEach((element) => {
    const at = Date.parse(element.dateTime);
    if (Math.abs(Date.now() - at) < 60 * 86400 * 1000) element.textContent = since(at);
  });
  setInterval(refreshTimes, 15000);

  // Errors of htmx requests as messages. One cause has one: a newer one replaces it, the same text stays as it is,
  // and it goes when a request shows that the cause is gone.
  const toastsOf = (cause) => all("#toasts > *").filter((child) => (child.dataset.cause ?? child.dataset.problem) === cause);
  const clearToasts = (cause) => toastsOf(cause).forEach((child) => child.remove());
  const toast = (text, cause = text) => {
    const box = document.getElementById("toasts");
    if (!box || toastsOf(cause).some((child) => child.textContent.includes(text))) return;
    clearToasts(cause);
    const banner = document.createElement("div");
    banner.className = "banner bad";
    banner.dataset.cause = cause;
    const label = document.createElement("span");
    label.textContent = text;
    const close = document.createElement("button");
    close.className = "close";
    close.type = "button";
    close.dataset.close = "";
    close.setAttribute("aria-label", "Dismiss");
    close.textContent = "×";
    banner.append(label, close);
    box.append(banner);
  };
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { requestConfig, xhr } = event.detail;
    if (xhr.getResponseHeader("HX-Retarget") !== "#toasts") return;
    const news = new DOMParser().parseFromString(xhr.responseText, "text/html").querySelector("[data-problem]");
    const cause = news?.dataset.problem;
    const isSame = toastsOf(cause).some((child) => child.textContent.trim() === news.textContent.trim());
    if (!isSame) clearToasts(cause);
    problems.set(cause, requestConfig.path);
    event.detail.shouldSwap = !isSame;
  });
  // What was refused, by the problem: once it is answered, its toast is over.
  const problems = new Map();
  document.addEventListener("htmx:afterRequest", (event) => {
    const { requestConfig, successful } = event.detail;
    if (!successful) return;
    clearToasts(UNREACHABLE);
    problems.forEach((path, cause) => {
      if (path !== requestConfig.path) return;
      clearToasts(cause);
      problems.delete(cause);
    });
  });
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    // 401: session.js says it.
    if (xhr.status === 401 || xhr.getResponseHeader("HX-Retarget")) return;
    toast(`The portal answered with an error (${xhr.status}). What you typed is still here: try again, and contact a platform admin if it keeps happening.`, UNREACHABLE);
  });
  document.addEventListener("htmx:sendError", () =>
    toast("The portal is not responding. This page retries automatically.", UNREACHABLE));

  document.addEventListener("htmx:load", refreshTimes);

  // A form is sent once, however often somebody clicks while its answer is on the way. Not for ever: the browser may
  // have given up.
  const GIVEN_UP_AFTER = 20_000;
  document.addEventListener("submit", (event) => {
    const { target, submitter, defaultPrevented } = event;
    if (defaultPrevented || target.method !== "post") return;
    if (Date.now() - (target.dataset.sentAt ?? 0) < GIVEN_UP_AFTER) {
      event.preventDefault();
      return;
    }
    target.dataset.sentAt = Date.now();
    submitter?.setAttribute("aria-busy", "true");
  });
  // Also for a page that comes back from the browser's memory.
  addEventListener("pageshow", () => all("form[data-sent-at]").forEach((form) => {
    delete form.dataset.sentAt;
    all("[aria-busy]", form).forEach((button) => button.removeAttribute("aria-busy"));
  }));

  // Forms that are rendered again at each change: the answer to an earlier change would undo this one.
  const abort = (event) => {
    const form = event.target.closest?.('form[hx-trigger^="change"]');
    if (form) globalThis.htmx?.trigger(form, "htmx:abort");
  };
  document.addEventListener("change", abort);
  document.addEventListener("input", abort);

  // Their parts: one that the server renders as before stays as it is, and what the reader opened stays open.
  const rendered = new Map(all("[data-steady]").map((part) => [part.id, part.outerHTML]));
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    const fresh = fragment.firstElementChild;
    if (!target.matches("[data-steady]") || !fresh) return;
    if (rendered.get(target.id) === fresh.outerHTML) {
      event.detail.shouldSwap = false;
      return;
    }
    rendered.set(target.id, fresh.outerHTML);
    [fresh, ...all("details[id]", fresh)].forEach((one) => {
      const before = one.matches("details") && document.getElementById(one.id);
      if (before) one.open = before.open || (one.open && one.querySelector("[aria-invalid]") !== null);
    });
  });

  // A row of tabs that is wider than a phone starts at the tab that is open.
  all(".tabs [aria-current], .segments [aria-current]").forEach((tab) => {
    const row = tab.parentElement;
    const hidden = tab.getBoundingClientRect().right - row.getBoundingClientRect().right;
    if (hidden > 0) row.scrollLeft = hidden + 24;
  });

  // The first wrong field of a form that came back; else that of a form people come for, if they see it at once.
  const wrong = document.querySelector("main [aria-invalid='true']:not(.gallery *)");
  const first = document.querySelector("main [data-first-field] :is(input:not([type=hidden]), select)");
  if (wrong) wrong.focus();
  else if (first && !location.hash && first.getBoundingClientRect().bottom < innerHeight) first.focus();
})();
