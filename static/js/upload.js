/* Sends a file in parts straight to the object store. The server signs each part and counts what arrived;
   which upload belongs to which file is kept here, so that a closed tab can go on. */

const PARALLEL = 3;
const ATTEMPTS = 6;
const HASH_WHOLE_UP_TO = 256 * 2 ** 20;
const SPEED_WINDOW_MS = 8000;
const HEAD_BYTES = 4096;

const form = document.querySelector("#upload");
const at = (id) => document.getElementById(id);
const canHash = Boolean(globalThis.crypto?.subtle);

class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? `The server returned HTTP ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.errors = body.errors ?? [];
  }
}

class Paused extends Error {}

const run = { file: null, version: null, plan: null, isPaused: false, isBusy: false, requests: new Set(), done: 0, live: new Map(), samples: [] };

/* The API, as this person. */
const api = async (method, path, body) => {
  const headers = { "X-CSRFToken": form.dataset.csrf, Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/v1/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const data = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(answer.status, data);
  return data;
};

/* Remembering. A browser that refuses storage only loses the way back after a closed tab. */
const keyOf = (file) => `slipway.upload:${file.name}:${file.size}:${file.lastModified}`;
const recall = (file) => {
  try {
    const kept = JSON.parse(localStorage.getItem(keyOf(file)));
    if (kept?.id) return kept.id;
  } catch { /* the list below the form may still know it */ }
  const row = [...document.querySelectorAll("#unfinished li")].find(
    (item) => item.dataset.filename === file.name && Number(item.dataset.size) === file.size);
  return row ? Number(row.dataset.version) : null;
};
const remember = (file, id) => {
  try { localStorage.setItem(keyOf(file), JSON.stringify({ id })); } catch { /* see above */ }
};
const forget = (file) => {
  try { localStorage.removeItem(keyOf(file)); } catch { /* see above */ }
};

/* Words. */
const size = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  while (value >= 1024 && units.length > 1) { value /= 1024; units.shift(); }
  return `${value.toFixed(value < 10 && units[0] !== "B" ? 1 : 0)} ${units[0]}`;
};
const duration = (seconds) => {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.ceil(seconds)} s left`;
  return seconds < 5400 ? `${Math.ceil(seconds / 60)} min left` : `${(seconds / 3600).toFixed(1)} h left`;
};
const say = (text) => { at("progress-text").textContent = text; };

const clearProblems = () => {
  at("problem").hidden = true;
  at("anyway").hidden = true;
  form.querySelectorAll("[data-refusal]").forEach((element) => element.remove());
  form.querySelectorAll("[aria-invalid]").forEach((element) => element.removeAttribute("aria-invalid"));
};
const showProblem = (error) => {
  at("problem").hidden = false;
  at("problem-text").textContent = error.message;
  at("anyway").hidden = error.code !== "same_bytes";
  const inputOf = (field) => form.elements[field.replace(/^(metadata|declared)\./, "").split(".")[0]] ??
    (field.startsWith("metadata.") ? form.elements.more : null);
  const named = (error.errors ?? []).map(({ field, detail }) => [inputOf(field), detail]).filter(([input]) => input);
  named.forEach(([input, detail]) => {
    const note = document.createElement("span");
    note.className = "err";
    note.dataset.refusal = "";
    note.textContent = detail;
    input.setAttribute("aria-invalid", "true");
    input.closest(".field")?.append(note);
  });
  (named[0]?.[0] ?? at("problem")).focus();
};

/* Progress: what the store has, plus what is on its way. */
const showProgress = () => {
  const onTheWay = [...run.live.values()].reduce((sum, bytes) => sum + bytes, 0);
  const sent = Math.min(run.done + onTheWay, run.file.size);
  const now = performance.now();
  run.samples.push([now, sent]);
  while (run.samples.length > 2 && now - run.samples[0][0] > SPEED_WINDOW_MS) run.samples.shift();
  const [since, before] = run.samples[0];
  const speed = now > since ? Math.max(0, sent - before) / ((now - since) / 1000) : 0;
  at("bar").value = (100 * sent) / run.file.size;
  const parts = [`${size(sent)} of ${size(run.file.size)}`];
  if (speed > 0) parts.push(`${size(speed)}/s`, duration((run.file.size - sent) / speed));
  say(parts.filter(Boolean).join(" · "));
};

/* Digests. */
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const digestOf = async (blob) => crypto.subtle.digest("SHA-256", await blob.arrayBuffer());

/* One part. */
const bytesOf = (number) => Math.min(run.plan.part_size, run.file.size - (number - 1) * run.plan.part_size);
const put = ({ url, headers }, blob, number) => new Promise((resolve, reject) => {
  const request = new XMLHttpRequest();
  run.requests.add(request);
  const end = (act, value) => { run.requests.delete(request); run.live.delete(number); act(value); };
  request.open("PUT", url);
  Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
  request.upload.onprogress = (event) => { run.live.set(number, event.loaded); showProgress(); };
  request.onload = () => (request.status < 300
    ? end(resolve)
    : end(reject, new Error(`Object storage returned HTTP ${request.status}.`)));
  request.onerror = () => end(reject, new Error("The connection to object storage was lost."));
  request.onabort = () => end(reject, new Paused());
  request.send(blob);
});
const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
const mayRetry = (error) => !(error instanceof Paused) &&
  !(error instanceof Problem && error.status < 500 && error.status !== 429);

const sendPart = async (number) => {
  const start = (number - 1) * run.plan.part_size;
  const blob = run.file.slice(start, start + bytesOf(number));
  const checksums = canHash ? { [number]: base64(await digestOf(blob)) } : {};
  for (let attempt = 1; ; attempt += 1) {
    if (run.isPaused) throw new Paused();
    try {
      const [signed] = await api("POST", `versions/${run.version.id}/parts`, { numbers: [number], checksums });
      await put(signed, blob, number);
      run.done += blob.size;
      showProgress();
      return;
    } catch (error) {
      if (attempt >= ATTEMPTS || !mayRetry(error)) throw error;
      await wait(Math.min(30_000, 500 * 2 ** attempt) * (0.75 + Math.random() / 2));
    }
  }
};

const sendMissing = async () => {
  run.plan = await api("GET", `versions/${run.version.id}/parts`);
  const queue = [...run.plan.missing];
  run.done = run.file.size - queue.reduce((sum, number) => sum + bytesOf(number), 0);
  run.samples = [];
  showProgress();
  const worker = async () => {
    while (queue.length) await sendPart(queue.shift());
  };
  const results = await Promise.allSettled(Array.from({ length: PARALLEL }, worker));
  const failed = results.find((result) => result.status === "rejected");
  if (failed) throw failed.reason;
};

/* The whole way. */
const fieldsOf = () => {
  const value = (name) => form.elements[name].value.trim();
  const metadata = {};
  ["accuracy", "dataset_version", "trained_at", "framework", "commit", "run_url", "tags"].forEach((name) => {
    if (value(name)) metadata[name] = value(name);
  });
  value("more").split("\n").forEach((line) => {
    const [key, ...rest] = line.split("=");
    const text = rest.join("=").trim();
    if (rest.length) metadata[key.trim()] = text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  });
  return metadata;
};

/* The server knows a file by its beginning, before any of it is sent. */
const headOf = async () => base64(await run.file.slice(0, HEAD_BYTES).arrayBuffer());

/* One input a line: image = 1 x 3 x 960 x 960. Other text is sent as it is; the server refuses it with a message. */
const declared = () => {
  const value = (name) => form.elements[name].value.trim();
  const sizes = {};
  value("largest_inputs").split("\n").filter((line) => line.trim()).forEach((line) => {
    const cut = line.lastIndexOf("=");
    sizes[line.slice(0, Math.max(cut, 0)).trim()] = line.slice(cut + 1).trim().split(/[\sx×*,]+/).map(
      (word) => (/^-?\d+$/.test(word) ? Number(word) : word));
  });
  const takes = { yes: true, no: false }[value("takes_batches")] ?? null;
  return { takes_batches: takes, largest_batch: Number(value("largest_batch") || 32), largest_inputs: sizes };
};

const start = async (isDuplicateAllowed) => {
  const name = form.elements.model.value.trim();
  if (!name) {
    const detail = "Enter a model name.";
    throw new Problem(0, { detail, errors: [{ field: "model", detail }] });
  }
  let sha256 = "";
  if (canHash && run.file.size <= HASH_WHOLE_UP_TO) {
    say("Computing SHA-256…");
    sha256 = hex(await digestOf(run.file));
  }
  const team = encodeURIComponent(form.elements.team.value);
  const model = encodeURIComponent(name);
  return api("POST", `models/${team}/${model}/versions`, {
    filename: run.file.name,
    size_bytes: run.file.size,
    sha256,
    head: await headOf(),
    metadata: fieldsOf(),
    declared: declared(),
    part_checksums: canHash,
    allow_duplicate: isDuplicateAllowed,
  });
};

const showVerification = (version) => {
  const [team, model] = [version.team, version.model].map(encodeURIComponent);
  globalThis.htmx.ajax("GET", `/models/${team}/${model}/${version.number}/checks?links`, { target: "#verification", swap: "outerHTML" });
};

const complete = async () => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api("POST", `versions/${run.version.id}/complete`);
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "parts_missing" || attempt > 2) throw error;
      await sendMissing();
    }
  }
};

const setBusy = (isBusy) => {
  run.isBusy = isBusy;
  at("send").disabled = isBusy || !run.file;
  at("file").disabled = isBusy;
  at("pause").textContent = isBusy ? "Pause" : "Resume";
};

const go = async ({ isDuplicateAllowed = false } = {}) => {
  if (run.isBusy || !run.file) return;
  clearProblems();
  run.isPaused = false;
  setBusy(true);
  at("progress").hidden = false;
  at("drop").scrollIntoView({ block: "nearest" });
  try {
    if (!run.version) {
      run.version = await start(isDuplicateAllowed);
      remember(run.file, run.version.id);
    }
    await sendMissing();
    say("Assembling the parts…");
    const version = await complete();
    forget(run.file);
    at("progress").hidden = true;
    at("file-note").textContent = "Uploaded";
    Object.assign(run, { file: null, version: null });
    showVerification(version);
  } catch (error) {
    if (error instanceof Paused) say("Paused. Sent parts are kept for 24 hours.");
    else await stopped(error);
  } finally {
    setBusy(false);
  }
};

const stopped = async (error) => {
  run.requests.forEach((request) => request.abort());
  const isGone = ["upload_gone", "wrong_state", "not_found"].includes(error.code);
  if (run.version && isGone) {
    forget(run.file);
    run.version = null;
  }
  at("progress").hidden = !run.version;
  if (run.version) say("Upload stopped. Sent parts are kept; select Resume to continue.");
  showProblem(error);
};

const choose = async (file) => {
  if (run.isBusy || !file) return;
  clearProblems();
  Object.assign(run, { file, version: null, done: 0, samples: [] });
  at("file-name").textContent = file.name;
  at("file-note").textContent = size(file.size);
  at("progress").hidden = true;
  if (file.size > Number(form.dataset.mostBytes)) {
    run.file = null;
    showProblem(new Error(`The file is ${size(file.size)}; the limit is ${size(Number(form.dataset.mostBytes))}.`));
  } else {
    suggestName(file);
    await findUnfinished(file);
  }
  at("send").disabled = !run.file;
};

const suggestName = (file) => {
  const input = form.elements.model;
  if (input.value) return;
  input.value = file.name.replace(/\.[^.]*$/, "").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "").slice(0, 40).replace(/-+$/, "");
};

const findUnfinished = async (file) => {
  const id = recall(file);
  if (!id) return;
  try {
    const version = await api("GET", `versions/${id}`);
    if (version.state !== "uploading" || version.declared_size_bytes !== file.size) {
      forget(file);
      return;
    }
    run.version = version;
    form.elements.team.value = version.team;
    form.elements.model.value = version.model;
    at("file-note").textContent = `${size(file.size)}. Already partly uploaded as ${version.model}:${version.number}.`;
    at("progress").hidden = false;
    at("pause").textContent = "Resume";
    say("Select Upload to resume.");
  } catch (error) {
    if (error instanceof Problem && error.status === 404) forget(file);
    else showProblem(error);
  }
};

const abandon = async () => {
  if (!run.version) return;
  run.isPaused = true;
  run.requests.forEach((request) => request.abort());
  try {
    await api("POST", `versions/${run.version.id}/abandon`);
    forget(run.file);
    run.version = null;
    at("progress").hidden = true;
    at("file-note").textContent = "Upload canceled. Sent parts were deleted.";
  } catch (error) {
    showProblem(error);
  }
};

if (form) {
  at("file").addEventListener("change", (event) => choose(event.target.files[0]));
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  at("anyway").addEventListener("click", () => go({ isDuplicateAllowed: true }));
  at("abandon").addEventListener("click", abandon);
  at("pause").addEventListener("click", () => {
    if (!run.isBusy) { go(); return; }
    run.isPaused = true;
    run.requests.forEach((request) => request.abort());
  });
  ["dragover", "drop"].forEach((name) => at("drop").addEventListener(name, (event) => event.preventDefault()));
  at("drop").addEventListener("drop", (event) => choose(event.dataTransfer.files[0]));
}
