/* A polled fragment comes back with what the reader had of it: open details, scroll positions,
   and what was typed; any fragment keeps the focus. Values that changed flash once. Polls that fail come more and more seldom, and the page
   says how old it is once it is older than two polls. */
(() => {
  "use strict";
  const all = (selector, from) => [...from.querySelectorAll(selector)];

  // A name for an element that its successor has too: its nearest id, what it is, and which of those.
  const namesOf = (elements, textOf) => {
    const counts = new Map();
    return elements.map((element) => {
      const base = element.id || `${element.parentElement?.closest("[id]")?.id}/${textOf(element)}`;
      const nth = counts.get(base) ?? 0;
      counts.set(base, nth + 1);
      return `${base}/${nth}`;
    });
  };
  const detailsIn = (from) => {
    const elements = all("details", from);
    const names = namesOf(elements, (element) => element.querySelector("summary")?.textContent.trim());
    return elements.map((element, index) => [names[index], element]);
  };
  const boxesIn = (from) => {
    const elements = [from, ...all(".scroll, .code, pre, textarea", from)];
    const names = namesOf(elements, (element) => `${element.tagName}.${element.classList[0]}`);
    return elements.map((element, index) => [names[index], element]);
  };
  const fieldsIn = (from) => {
    const elements = all("input:not([type=hidden]), select, textarea", from);
    const names = namesOf(elements, (element) => `${element.name}=${element.type === "radio" ? element.value : ""}`);
    return elements.map((element, index) => [names[index], element]);
  };
  const isTyped = (field) => {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (field.matches("select")) return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.value !== field.defaultValue;
  };
  const isAtEnd = (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  const remember = (target) => {
    return {
      values: new Map(all("[data-live]", target).map((one) => [one.dataset.live, one.textContent])),
      details: new Map(detailsIn(target).map(([name, one]) => [name, one.open])),
      boxes: new Map(boxesIn(target).filter(([, one]) => one.scrollTop || one.scrollLeft).map(([name, one]) =>
        [name, { top: one.scrollTop, left: one.scrollLeft, isAtEnd: one.scrollTop > 0 && isAtEnd(one) }])),
      fields: new Map(fieldsIn(target).filter(([, one]) => isTyped(one)).map(([name, one]) =>
        [name, { value: one.value, checked: one.checked }])),
    };
  };

  const reopen = (before, target) => detailsIn(target).forEach(([name, one]) => {
    if (before.details.has(name)) one.open = before.details.get(name);
  });
  const restore = (before, target) => {
    all("[data-live]", target).forEach((one) => {
      const old = before.values.get(one.dataset.live);
      if (old !== undefined && old !== one.textContent) one.classList.add("live");
    });
    reopen(before, target);
    fieldsIn(target).forEach(([name, one]) => {
      const typed = before.fields.get(name);
      if (!typed) return;
      if (one.matches("[type=checkbox], [type=radio]")) one.checked = typed.checked;
      else one.value = typed.value;
    });
    boxesIn(target).forEach(([name, one]) => {
      const old = before.boxes.get(name);
      if (old) one.scrollTo({ left: old.left, top: old.isAtEnd ? one.scrollHeight : old.top, behavior: "instant" });
    });
  };

  // htmx gives the focus back to what has an id; links, buttons and summaries without one keep it too, whatever the
  // request. A link or a button is the same only with the same text: no other one may take its key.
  const twins = (element, from) => all(element.tagName, from).filter((other) => element.matches("summary") ||
    (other.getAttribute("href") === element.getAttribute("href") && other.textContent === element.textContent));
  let focused;
  document.addEventListener("htmx:beforeSwap", () => {
    const element = document.activeElement;
    const home = element.parentElement?.closest("[id]");
    focused = home && !element.id && element.matches("a, button, summary")
      ? { element, home: home.id, index: twins(element, home).indexOf(element) } : undefined;
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!focused || focused.element.isConnected || document.activeElement !== document.body) return;
    const home = document.getElementById(focused.home);
    if (home) twins(focused.element, home)[focused.index]?.focus({ preventScroll: true });
  });

  // Only for a repeated request of the same target: the response to a form is new, and shows as the
  // server sent it.
  const kept = new WeakMap();
  // What is swapped now, by id: the target, then the parts that come in the same answer.
  let swapping;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { requestConfig, shouldSwap, target, xhr } = event.detail;
    swapping = undefined;
    if (!shouldSwap || requestConfig.verb !== "get" || !target.id) return;
    swapping = new Map([[target.id, remember(target)]]);
    kept.set(xhr, swapping);
  });
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target } = event.detail;
    swapping?.set(target.id, remember(target));
  });
  const resume = (event, how) => kept.get(event.detail.xhr)?.forEach((before, id) => {
    const fresh = document.getElementById(id);
    if (fresh) how(before, fresh);
  });
  document.addEventListener("htmx:afterSwap", (event) => resume(event, restore));
  // Settling puts the attributes of elements with an id back to what the server sent.
  document.addEventListener("htmx:afterSettle", (event) => resume(event, reopen));

  // Polls. An element that failed stays on the page, and waits twice as long after each further failure.
  const LONGEST_WAIT = 60_000;
  const secondsOf = (element) => /^every (\d+)s/.exec(element.getAttribute("hx-trigger") ?? "")?.[1];
  const polled = (from) => all("[hx-get][hx-trigger^=every]:not([data-paused])", from);
  const failures = new WeakMap();
  const answeredAt = new WeakMap();
  const note = (from) => {
    if (from.matches?.("[hx-trigger^=every]")) answeredAt.set(from, Date.now());
    polled(from).forEach((element) => answeredAt.set(element, Date.now()));
  };
  const isPoll = ({ elt, requestConfig }) => !requestConfig.triggeringEvent && secondsOf(elt) !== undefined;
  document.addEventListener("htmx:beforeRequest", (event) => {
    const failed = failures.get(event.detail.elt);
    if (failed && isPoll(event.detail) && Date.now() < failed.until) event.preventDefault();
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, successful, xhr } = event.detail;
    if (!isPoll(event.detail)) return;
    if (successful) {
      failures.delete(elt);
      answeredAt.set(elt, Date.now());
    } else if (xhr.status !== 401) {
      const count = (failures.get(elt)?.count ?? 0) + 1;
      const wait = Math.min(LONGEST_WAIT, secondsOf(elt) * 1000 * 2 ** count);
      // Half a second less, as timers are late.
      failures.set(elt, { count, until: Date.now() + wait - 500 });
    }
    showAge();
  });

  const describeAge = (milliseconds) => {
    const seconds = Math.floor(milliseconds / 1000);
    return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`;
  };
  const showAge = () => {
    const banner = document.getElementById("reading-age");
    if (!banner) return;
    const ages = polled(document).map((element) => ({
      age: Date.now() - (answeredAt.get(element) ?? Date.now()),
      most: 2 * secondsOf(element) * 1000,
    }));
    const late = Math.max(0, ...ages.filter(({ age, most }) => age > most).map(({ age }) => age));
    banner.hidden = late === 0;
    if (late) banner.textContent = `This page is ${describeAge(late)} old. It updates as soon as the portal answers.`;
  };
  note(document);
  document.addEventListener("htmx:load", (event) => note(event.detail.elt));
  setInterval(showAge, 2000);
})();
