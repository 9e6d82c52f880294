// The inbox by keyboard: j and k move, Enter opens, a and r go to the decision.
// A key never decides: it moves the focus to the button that does.
"use strict";

const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

function move(step) {
  const links = [...document.querySelectorAll("[data-inbox-row]")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : at + step;
  links[Math.min(Math.max(next, 0), links.length - 1)].focus();
}

function decide(name) {
  const button = document.querySelector(`[data-decision="${name}"]`);
  if (button) {
    button.focus();
    button.scrollIntoView({ block: "center" });
    return;
  }
  const row = document.activeElement.closest("[data-inbox-row]");
  if (row) window.location.assign(`${row.href}#${name}`);
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) return;
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    a: () => decide("approve"),
    r: () => decide("reject"),
  };
  if (event.key in keys) {
    event.preventDefault();
    keys[event.key]();
  }
});

// Somebody else decided while a comment was typed: the text moves to where it can still be said.
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
  const typed = target.matches("#decision") && target.querySelector("[name=comment]")?.value;
  const comment = document.getElementById("new-comment");
  if (!typed || !comment || fragment.querySelector("[name=comment]")) return;
  comment.value = [comment.value, typed].filter(Boolean).join("\n");
  comment.closest("details").open = true;
});

if (["#approve", "#reject"].includes(window.location.hash)) decide(window.location.hash.slice(1));
