/* What the form says beside the files, as the API takes it. */
import { nameOfFile } from "./text.js";

const textOf = (form, name) => form.elements[name].value.trim();
const linesOf = (form, name) => textOf(form, name).split("\n").map((line) => line.trim()).filter((line) => line);
const cut = (line) => {
  const [key, ...rest] = line.split("=");
  return [key.trim(), rest.join("=").trim()];
};

export const metadataOf = (form) => {
  const metadata = {};
  ["dataset_version", "trained_at", "framework", "commit", "run_url", "licence", "intended_use", "notes"].forEach((name) => {
    if (textOf(form, name)) metadata[name] = textOf(form, name);
  });
  metadata.labels = Object.fromEntries(linesOf(form, "labels").map(cut));
  metadata.metrics = {};
  metadata.directions = {};
  linesOf(form, "metrics").forEach((line) => {
    const direction = line.match(/\s*\((higher|lower) is better\)$/);
    const [name, number] = cut(direction ? line.slice(0, direction.index) : line);
    metadata.metrics[name] = number;
    if (direction) metadata.directions[name] = direction[1];
  });
  return metadata;
};

/* Those of an upload that another tab started, with what is typed here instead or besides. */
export const mergeMetadata = (started, typed) => ({
  ...started, ...typed,
  ...Object.fromEntries(["labels", "metrics", "directions"].map((name) => [name, { ...started[name], ...typed[name] }])),
});

/* One input a line: image = 1 x 3 x 960 x 960. Other text is sent as it is; the server refuses it with a message. */
export const declarationOf = (form) => {
  const sizes = {};
  linesOf(form, "largest_inputs").forEach((line) => {
    const at = line.lastIndexOf("=");
    sizes[line.slice(0, Math.max(at, 0)).trim()] = line.slice(at + 1).trim().split(/[\sx×*,]+/).map(
      (word) => (/^-?\d+$/.test(word) ? Number(word) : word));
  });
  const tensorsOf = (name) => linesOf(form, name).map((line) => {
    const [tensor, rest] = cut(line);
    const [dtype, ...dims] = rest.split(/[\sx×*,]+/);
    return { name: tensor, dtype: dtype.toUpperCase(), dims: dims.map((word) => (/^-?\d+$/.test(word) ? Number(word) : word)) };
  });
  const takes = { yes: true, no: false }[textOf(form, "supports_batching")] ?? null;
  return {
    supports_batching: takes,
    max_batch_size: Number(textOf(form, "max_batch_size") || 32),
    largest_inputs: sizes,
    inputs: tensorsOf("inputs"),
    outputs: tensorsOf("outputs"),
    compute_capability: textOf(form, "compute_capability"),
  };
};

/* Name the model after its file, unless a person named it. */
export const suggestName = (form, name) => {
  const input = form.elements.model;
  if (input.value && input.value !== input.dataset.suggested) return;
  input.value = nameOfFile(name);
  input.dataset.suggested = input.value;
};

const DECLARED = ["supports_batching", "max_batch_size", "largest_inputs", "inputs", "outputs", "compute_capability"];

/* What an upload was started with. Its metadata can still be changed. */
export const lockStarted = (form, isLocked) => {
  ["model", ...DECLARED].forEach((name) => { form.elements[name].disabled = isLocked; });
};

/* Show the problems beside their fields. Gives the first such input. */
export const showAtFields = (form, errors) => {
  const inputOf = (field) => form.elements[field.replace(/^(metadata|declared)\./, "").split(field.startsWith("declared.") ? /[.[]/ : ".")[0]] ??
    (field.startsWith("metadata.") ? form.elements.metrics : null);
  const named = errors.map(({ field, detail }) => [inputOf(field), detail]).filter(([input]) => input?.closest(".field"));
  named.forEach(([input, detail]) => {
    const note = document.createElement("span");
    note.className = "err";
    note.dataset.refusal = "";
    note.textContent = detail;
    input.setAttribute("aria-invalid", "true");
    input.closest(".field").append(note);
    for (let fold = input.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  });
  return named[0]?.[0];
};

export const clearAtFields = (form) => {
  form.querySelectorAll("[data-refusal]").forEach((element) => element.remove());
  form.querySelectorAll("[aria-invalid]").forEach((element) => element.removeAttribute("aria-invalid"));
};
