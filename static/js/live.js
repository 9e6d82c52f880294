/* A polled fragment comes back with what the reader had of it: open details, scroll positions, focus,
   and what was typed. Values that changed flash once. */
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
  const twins = (element, from) => all(element.tagName, from).filter((other) =>
    other.getAttribute("href") === element.getAttribute("href") && other.textContent === element.textContent);

  const isAtEnd = (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 2;
  const remember = (target) => {
    const active = document.activeElement;
    const isLost = target.contains(active) && !active.id && active.matches("a, button, summary");
    return {
      values: new Map(all("[data-live]", target).map((one) => [one.dataset.live, one.textContent])),
      details: new Map(detailsIn(target).map(([name, one]) => [name, one.open])),
      boxes: new Map(boxesIn(target).filter(([, one]) => one.scrollTop || one.scrollLeft).map(([name, one]) =>
        [name, { top: one.scrollTop, left: one.scrollLeft, isAtEnd: one.scrollTop > 0 && isAtEnd(one) }])),
      fields: new Map(fieldsIn(target).filter(([, one]) => isTyped(one)).map(([name, one]) =>
        [name, { value: one.value, checked: one.checked }])),
      focused: isLost ? { element: active, index: twins(active, target).indexOf(active) } : undefined,
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
    // htmx gives the focus back to what has an id; here links and buttons without one keep it too.
    if (before.focused && document.activeElement === document.body)
      twins(before.focused.element, target)[before.focused.index]?.focus({ preventScroll: true });
  };

  // Only for a repeated request of the same target: the response to a form is new, and shows as the
  // server sent it.
  const kept = new WeakMap();
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { requestConfig, shouldSwap, target, xhr } = event.detail;
    if (shouldSwap && requestConfig.verb === "get" && target.id) kept.set(xhr, remember(target));
  });
  const resume = (event, how) => {
    const { target, xhr } = event.detail;
    const before = kept.get(xhr);
    const fresh = before && document.getElementById(target.id);
    if (fresh) how(before, fresh);
  };
  document.addEventListener("htmx:afterSwap", (event) => resume(event, restore));
  // Settling puts the attributes of elements with an id back to what the server sent.
  document.addEventListener("htmx:afterSettle", (event) => resume(event, reopen));
})();
