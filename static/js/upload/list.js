/* The table of chosen files: path, size, state and progress of each. It shows the first ones and, on request,
   more, so that 2,000 files stay fast for the browser and short for the keyboard. */
import { count, size } from "./text.js";

const SHOWN_AT_ONCE = 50;
const STATES = { waiting: "Waiting", sent: "Sent", stored: "Stored" };

export class FileList {
  #rows = new Map();
  #shown = SHOWN_AT_ONCE;
  #entries = [];

  /* `box` has the list, the button for more and the template of a row. */
  constructor(box, { onRemove }) {
    this.box = box;
    this.list = box.querySelector("ul");
    this.more = box.querySelector("[data-more]");
    this.template = box.querySelector("template");
    this.onRemove = onRemove;
    this.more.addEventListener("click", () => {
      const next = this.#shown;
      this.#shown += SHOWN_AT_ONCE * 4;
      this.#render();
      this.list.children[next]?.focus();
    });
  }

  show(entries) {
    this.#entries = entries;
    this.#shown = SHOWN_AT_ONCE;
    this.#rows.clear();
    this.list.replaceChildren();
    this.#render();
  }

  /* Files can be removed only before they are sent. */
  lock(isLocked) {
    this.box.classList.toggle("locked", isLocked);
  }

  update(entry) {
    const row = this.#rows.get(entry.path);
    if (!row) return;
    const percent = Math.floor((100 * (entry.sent ?? 0)) / Math.max(1, entry.file.size));
    const isSending = entry.state === "sending";
    row.dataset.state = entry.state ?? "";
    row.querySelector("progress").value = isSending ? percent : 0;
    row.querySelector("[data-file-state]").textContent = isSending ? `${percent}%` : STATES[entry.state] ?? "";
  }

  #render() {
    const entries = this.#entries.slice(0, this.#shown);
    entries.filter(({ path }) => !this.#rows.has(path)).forEach((entry) => {
      const row = this.template.content.firstElementChild.cloneNode(true);
      row.querySelector("[data-path]").textContent = entry.path;
      row.querySelector("[data-size]").textContent = size(entry.file.size);
      row.querySelector("progress").setAttribute("aria-label", `Progress of ${entry.path}`);
      const remove = row.querySelector("button");
      remove.setAttribute("aria-label", `Remove ${entry.path}`);
      remove.addEventListener("click", () => this.#remove(entry));
      this.#rows.set(entry.path, row);
      this.list.append(row);
      this.update(entry);
    });
    const left = this.#entries.length - this.#shown;
    this.more.hidden = left <= 0;
    this.more.textContent = `Show more (${count(Math.max(left, 0), "file")} not shown)`;
    this.box.hidden = this.#entries.length < 2;
  }

  #remove(entry) {
    const row = this.#rows.get(entry.path);
    const next = (row.nextElementSibling ?? row.previousElementSibling)?.querySelector("button");
    this.#rows.delete(entry.path);
    row.remove();
    this.#entries = this.#entries.filter((other) => other !== entry);
    this.#render();
    next?.focus();
    this.onRemove(entry);
  }
}
