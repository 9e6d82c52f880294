/* The upload page: files, a folder or an archive become a version.

The modules in static/js/upload/ do the work; this one joins them to the page. */
import { ConnectionLost, Problem, Stopped, api } from "./upload/api.js";
import * as choosing from "./upload/choosing.js";
import { fileDigest, hasPartDigests } from "./upload/digests.js";
import { clearAtFields, declarationOf, lockStarted, mergeMetadata, metadataOf, showAtFields, suggestName } from "./upload/fields.js";
import { FileList } from "./upload/list.js";
import { digest, draftFiles, preview } from "./upload/preview.js";
import { Progress } from "./upload/progress.js";
import { count, size } from "./upload/text.js";
import { Transfer, isGone } from "./upload/transfer.js";

const form = document.querySelector("#upload");
const at = (id) => document.getElementById(id);

const run = { entries: [], name: "", total: 0, version: null, isResumed: false, transfer: null, preview: null, stop: null, described: "", isBusy: false, isRefused: false, isOffline: false, isCanceled: false };

const note = (text) => { at("file-note").textContent = text; };

/* Problems. */
const clearProblems = () => {
  ["problem", "anyway", "formats"].forEach((id) => { at(id).hidden = true; });
  clearAtFields(form);
};
const showProblem = (error, { isOfFormat = false } = {}) => {
  at("problem").hidden = false;
  at("problem-text").textContent = error.message;
  at("formats").hidden = !isOfFormat;
  at("anyway").hidden = error.code !== "same_bytes";
  (showAtFields(form, error.errors ?? []) ?? at("problem")).focus();
};

const setBusy = (isBusy) => {
  run.isBusy = isBusy;
  at("send").disabled = isBusy || !run.entries.length || run.isRefused;
  ["file", "folder", "choose-folder", "add-files"].forEach((id) => { at(id).disabled = isBusy; });
  at("pause").textContent = isBusy ? "Pause" : "Resume";
  lock();
};
/* Files, name and declaration are those that the upload was started with. */
const lock = () => {
  list.lock(run.isBusy || Boolean(run.version));
  lockStarted(form, Boolean(run.version));
};

/* Choosing. */
const nameOf = ({ files, folder }) => (folder ? `${folder}/` : files.length === 1 ? files[0].path : count(files.length, "file"));
const limitProblem = () => {
  const [mostFile, mostAll] = [Number(form.dataset.mostBytes), Number(form.dataset.mostVersionBytes)];
  const large = run.entries.find(({ file }) => file.size > mostFile);
  if (large) return `${large.path} is ${size(large.file.size)}; the limit of a file is ${size(mostFile)}.`;
  return run.total > mostAll ? `The files are ${size(run.total)} together; the limit is ${size(mostAll)}.` : "";
};

const choose = async (read, { isAdded = false } = {}) => {
  if (run.isBusy) return;
  clearProblems();
  note("Reading the list of files…");
  let choice;
  try {
    choice = await read();
  } catch (error) {
    run.isRefused = true;
    take([], "No files chosen", []);
    note("Choose again.");
    showProblem(error);
    return;
  }
  const kept = isAdded ? run.entries.filter(({ path }) => !choice.files.some((file) => file.path === path)) : [];
  const entries = [...kept, ...choice.files];
  if (!entries.length) {
    note(choice.ignored.length ? `Only ${choice.ignored.join(", ")} in there: nothing to upload.` : "The folder is empty.");
    return;
  }
  take(entries, kept.length ? count(entries.length, "file") : nameOf(choice), choice.ignored);
  suggestName(form, choice.folder || (choice.files.length === 1 ? choice.files[0].path : ""));
  await examine();
};

const take = (entries, name, ignored) => {
  Object.assign(run, { entries, name, ignored, version: null, isResumed: false, preview: null });
  run.total = entries.reduce((sum, { file }) => sum + file.size, 0);
  at("file-name").textContent = name;
  at("progress").hidden = true;
  at("more-files").hidden = !entries.length;
  list.show(entries);
};

const describeFiles = () => [
  ...(run.entries.length > 1 ? [count(run.entries.length, "file")] : []), size(run.total),
  ...(run.ignored.length ? [`skipped ${run.ignored.join(", ")}`] : []),
].join(" · ");

/* Ask the server what this is; say so, or why it cannot be a model. */
const examine = async () => {
  note(describeFiles());
  const problem = limitProblem();
  run.isRefused = Boolean(problem);
  setBusy(false);
  if (problem) {
    showProblem(new Error(problem));
    return;
  }
  const { entries } = run;
  await findUnfinished();
  if (!run.version && run.entries === entries) note(describeFiles());
  if (run.version || run.entries !== entries) return;
  run.preview = askPreview(entries);
  await run.preview;
};

const askPreview = async (entries) => {
  try {
    const answer = await preview(entries, { team: form.elements.team.value, model: form.elements.model.value.trim() });
    if (run.entries !== entries || run.version) return answer;
    run.isRefused = Boolean(answer.problem);
    if (answer.format_name) note(`${answer.format_name} · ${describeFiles()}`);
    setBusy(run.isBusy);
    if (answer.problem) showProblem(new Error(answer.problem), { isOfFormat: true });
    return answer;
  } catch {
    // Starting the upload says the same again.
    return { same_sizes: [] };
  }
};

/* By path and size, and by digest where the upload has one. */
const isSame = async (entries, files) => {
  const known = new Map(files.map((file) => [file.path, file]));
  if (known.size !== entries.length || !entries.every(({ path, file }) => known.get(path)?.size_bytes === file.size)) return false;
  note("Comparing with an unfinished upload…");
  for (const entry of entries) {
    const { sha256 } = known.get(entry.path);
    if (!sha256) continue;
    entry.sha256 ??= await fileDigest(entry.file, { workerUrl: form.dataset.digestWorker, signal: new AbortController().signal });
    if (entry.sha256 !== sha256) return false;
  }
  return true;
};

/* An unfinished upload of this person with the same files, started anywhere. */
const findUnfinished = async () => {
  const { entries, total } = run;
  try {
    const { results } = await api("GET", "versions?state=uploading");
    const mine = results.filter((version) => version.created_by === document.body.dataset.user && version.declared_size_bytes === total);
    for (const version of mine) {
      const files = await api("GET", `versions/${version.id}/files`);
      if (!await isSame(entries, files)) continue;
      if (run.entries === entries) propose(version);
      return;
    }
  } catch (error) {
    if (run.entries === entries) showProblem(error);
  }
};

const propose = (version) => {
  Object.assign(run, { version, isResumed: true, described: NOT_DESCRIBED });
  form.elements.model.value = version.model;
  note(`${describeFiles()}. Already partly uploaded as ${version.model}:${version.number}.`);
  at("progress").hidden = false;
  progress.say("Select Upload to resume.");
  setBusy(false);
};

/* Sending. */
const description = () => ({ metadata: metadataOf(form), readme: form.elements.readme.value });
const NOT_DESCRIBED = JSON.stringify({ metadata: { labels: {}, metrics: {}, directions: {} }, readme: "" });

/* Store what was typed since the upload was started. */
const describe = async () => {
  const typed = description();
  if (JSON.stringify(typed) === run.described) return;
  const body = run.isResumed
    ? { metadata: mergeMetadata(run.version.metadata, typed.metadata), ...(typed.readme && { readme: typed.readme }) }
    : typed;
  await api("PATCH", `versions/${run.version.id}`, body);
  run.described = JSON.stringify(typed);
};

const digestAll = async (sameSizes) => {
  const name = sameSizes.length ? `Comparing with version ${sameSizes[0].number}` : "Computing SHA-256";
  at("skip").hidden = !sameSizes.length;
  try {
    await digest(run.entries, sameSizes, {
      workerUrl: form.dataset.digestWorker, signal: run.stop.signal,
      onProgress: (bytes) => progress.say(`${name}: ${size(bytes)} of ${size(run.total)}`),
    });
  } catch (error) {
    if (!(error instanceof Stopped) || !run.isSkipping) throw error;
  } finally {
    at("skip").hidden = true;
    run.isSkipping = false;
  }
};

/* Not every step can be interrupted. */
const requireNoPause = () => {
  if (run.stop.signal.aborted) throw new Stopped();
};

const start = async (isDuplicateAllowed) => {
  const model = form.elements.model.value.trim();
  const team = form.elements.team.value;
  if (!model) {
    const detail = "Enter a model name.";
    throw new Problem(0, { detail, errors: [{ field: "model", detail }] });
  }
  progress.say("Checking the files…");
  const { same_sizes: sameSizes } = await askPreview(run.entries);
  if (run.isRefused) throw new Stopped();
  requireNoPause();
  await digestAll(sameSizes);
  requireNoPause();
  run.described = JSON.stringify(description());
  return api("POST", `models/${encodeURIComponent(team)}/${encodeURIComponent(model)}/versions`, {
    files: draftFiles(run.entries),
    ...description(),
    declared: declarationOf(form),
    part_checksums: hasPartDigests,
    allow_duplicate: isDuplicateAllowed,
  });
};

const showVerification = (version) => {
  const [team, model] = [version.team, version.model].map(encodeURIComponent);
  globalThis.htmx.ajax("GET", `/${team}/models/${model}/${version.number}/checks?links`, { target: "#verification", swap: "outerHTML" });
};

/* Two tabs that send the same upload would only get in each other's way. */
const alone = (id, work) => (navigator.locks
  ? navigator.locks.request(`slipway.upload.${id}`, { ifAvailable: true }, (lock) => {
    if (!lock) throw new Error("Another tab is sending this upload. Close it there, or wait for it to finish.");
    return work();
  })
  : work());

const send = async () => {
  run.transfer = new Transfer(run.version, run.entries, (entry) => {
    list.update(entry);
    progress.show(run.transfer.sentBytes);
  }, { beforeComplete: describe });
  progress.begin(run.total);
  const version = await alone(run.version.id, () => run.transfer.run());
  // Object storage may have joined the parts for minutes.
  const problem = await describe().then(() => null, (error) => error);
  take([], "Drop the next model here, or choose one", []);
  note("Uploaded");
  showVerification(version);
  if (!problem) {
    form.reset();
    return;
  }
  problem.message = `The files are uploaded. The last change of their details is not saved: ${problem.message}`;
  showProblem(problem);
};

const go = async ({ isDuplicateAllowed = false } = {}) => {
  if (run.isBusy || !run.entries.length || run.isRefused) return;
  clearProblems();
  run.stop = new AbortController();
  run.isOffline = false;
  run.isCanceled = false;
  setBusy(true);
  at("progress").hidden = false;
  at("drop").scrollIntoView({ block: "nearest" });
  try {
    run.version ??= await start(isDuplicateAllowed);
    lock();
    requireNoPause();
    await send();
  } catch (error) {
    // What fails once it is paused is found again when it is resumed.
    stopped(run.version && run.stop.signal.aborted ? new Stopped() : error);
  } finally {
    run.transfer = null;
    setBusy(false);
  }
  if (run.isCanceled) await abandon();
};

const stopped = (error) => {
  if (run.version && isGone(error)) run.version = null;
  at("progress").hidden = !run.version;
  if (error instanceof Stopped) {
    progress.announce(run.isRefused ? "" : "Paused. Sent parts are kept for 24 hours.");
    return;
  }
  if (run.version) progress.announce("Upload stopped. Sent parts are kept for 24 hours; select Resume to continue.");
  // A network that returns resumes it (see below).
  run.isOffline = error instanceof ConnectionLost;
  showProblem(error);
};

const pause = () => {
  run.stop?.abort();
  run.transfer?.stop();
};

const abandon = async () => {
  pause();
  // The request that makes the upload may be on its way: it is canceled once it is answered.
  run.isCanceled = run.isBusy && !run.version;
  if (!run.version) return;
  try {
    await api("POST", `versions/${run.version.id}/abandon`);
    run.version = null;
    at("progress").hidden = true;
    note("Upload canceled. Sent parts were deleted.");
    setBusy(false);
  } catch (error) {
    showProblem(error);
  }
};

const most = () => Number(form.dataset.mostFiles);
const progress = form && new Progress({ bar: at("bar"), text: at("progress-text"), status: at("progress-status") });
const list = form && new FileList(at("files"), {
  onRemove: (removed) => {
    const entries = run.entries.filter((entry) => entry !== removed);
    Object.assign(run, { entries, name: count(entries.length, "file"), total: run.total - removed.file.size });
    at("file-name").textContent = entries.length === 1 ? entries[0].path : run.name;
    clearProblems();
    examine();
  },
});

if (form) {
  let isAdded = false;
  const fromInput = ({ target }) => {
    const files = [...target.files];
    // So that the same files can be chosen again.
    target.value = "";
    if (files.length) choose(() => choosing.ofInput(files, most()), { isAdded });
    isAdded = false;
  };
  ["file", "folder"].forEach((id) => at(id).addEventListener("change", fromInput));
  at("drop").addEventListener("click", () => { isAdded = false; });
  at("choose-folder").addEventListener("click", () => { isAdded = false; at("folder").click(); });
  // The click on the input reaches #drop, too.
  at("add-files").addEventListener("click", () => { at("file").click(); isAdded = true; });
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  at("anyway").addEventListener("click", () => go({ isDuplicateAllowed: true }));
  at("abandon").addEventListener("click", abandon);
  at("skip").addEventListener("click", () => { run.isSkipping = true; run.stop.abort(); run.stop = new AbortController(); });
  at("pause").addEventListener("click", () => (run.isBusy ? pause() : go()));
  ["dragover", "dragleave", "drop"].forEach((name) => at("drop").addEventListener(name, (event) => {
    event.preventDefault();
    at("drop").classList.toggle("over", name === "dragover");
  }));
  at("drop").addEventListener("drop", ({ dataTransfer }) => choose(() => choosing.ofDrop(dataTransfer, most())));
  window.addEventListener("offline", () => { if (run.isBusy) progress.announce("Offline. Continues when the connection returns."); });
  const resume = () => { if (run.isOffline && run.version && !run.isBusy && navigator.onLine) go(); };
  window.addEventListener("online", resume);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) resume(); });
}
