/* Sends the files of one upload in parts, several at a time, straight to the object store.

The server's lists of files and parts are the only memory: a closed tab, another browser or a paused upload
resume by reading them again. Bytes are read from disk part by part. */
import { ConnectionLost, Problem, Stopped, api, persist } from "./api.js";
import { hasPartDigests, partDigest } from "./digests.js";

const PARALLEL = 4;
// Files assembled by one request while others are sent. The last request assembles what is left.
const COMPLETED_AT_ONCE = 25;
const ROUNDS = 3;

const partOf = (entry, number) => {
  const start = (number - 1) * entry.partSize;
  return entry.file.slice(start, Math.min(start + entry.partSize, entry.file.size));
};

export class Transfer {
  // Of one round: a failure stops the other parts, and the next round sends what is missing.
  #stop = new AbortController();
  #isStopped = false;
  #sent = 0;
  #sending = new Map();
  #assembling = [];

  /* `entries` are {path, file}; `changed` is called with one whenever its state or progress changes. `beforeComplete` runs
     once all bytes are sent; `root` is where the API has uploads of this kind. */
  constructor(version, entries, changed, { beforeComplete = () => {}, root = "versions" } = {}) {
    this.version = version;
    this.beforeComplete = beforeComplete;
    this.place = `${root}/${version.id}`;
    this.entries = entries;
    this.changed = changed;
  }

  get sentBytes() {
    return [...this.#sending.values()].reduce((sum, bytes) => sum + bytes, this.#sent);
  }

  /* For good: by the person. Whatever fails from then on is a pause. */
  stop() {
    this.#isStopped = true;
    this.#stop.abort();
  }

  /* Send what is missing and complete the upload. Gives the version, which is then verifying, or the upload. */
  async run() {
    for (let round = 1; ; round += 1) {
      this.#stop = new AbortController();
      try {
        if (this.#isStopped) throw new Stopped();
        await this.#sendMissing();
        await this.beforeComplete();
        return await this.#api("POST", `${this.place}/complete`);
      } catch (error) {
        if (this.#isStopped) throw new Stopped();
        if (error.code !== "parts_missing" || round === ROUNDS) throw error;
      }
    }
  }

  #api(method, path, body) {
    return persist(() => api(method, path, body, this.#stop.signal), this.#stop.signal);
  }

  async #sendMissing() {
    await this.#readFiles();
    const parts = this.#missingParts();
    const work = async () => {
      for (;;) {
        const { value, done } = await parts.next();
        if (done) return;
        await this.#send(...value);
      }
    };
    const results = await Promise.allSettled(Array.from({ length: PARALLEL }, () => work().catch((error) => {
      this.#stop.abort();
      throw error;
    })));
    const reasons = results.filter((result) => result.status === "rejected").map((result) => result.reason);
    if (reasons.length) throw reasons.find((reason) => !(reason instanceof Stopped)) ?? reasons[0];
  }

  async #readFiles() {
    const rows = new Map((await this.#api("GET", `${this.place}/files`)).map((row) => [row.path, row]));
    this.#sent = 0;
    this.#sending.clear();
    this.#assembling = [];
    this.entries.forEach((entry) => {
      const row = rows.get(entry.path);
      const isStored = ["stored", "verified"].includes(row.state);
      Object.assign(entry, {
        partSize: row.part_size, partCount: row.part_count,
        isBegun: row.state === "sending", state: isStored ? "stored" : "waiting", sent: isStored ? entry.file.size : 0,
      });
      this.#sent += entry.sent;
      this.changed(entry);
    });
  }

  /* [entry, number] of each part to send. A generator: those that wait for the next part queue up. */
  async* #missingParts() {
    for (const entry of this.entries) {
      if (entry.state === "stored") continue;
      const numbers = entry.isBegun ? await this.#missingOf(entry)
        : Array.from({ length: entry.partCount }, (_, index) => index + 1);
      entry.left = numbers.length;
      entry.state = "sending";
      if (!entry.left) await this.#finish(entry);
      for (const number of numbers) yield [entry, number];
    }
  }

  /* Parts that the store lacks, or has with other bytes than the chosen file. */
  async #missingOf(entry) {
    const path = `${this.place}/parts?path=${encodeURIComponent(entry.path)}`;
    const { missing, stored } = await this.#api("GET", path);
    const numbers = new Set(missing);
    for (const { number, size_bytes: bytes, sha256 } of stored) {
      if (numbers.has(number)) continue;
      if (this.#stop.signal.aborted) throw new Stopped();
      if (sha256 && hasPartDigests && await partDigest(partOf(entry, number), entry.path) !== sha256) numbers.add(number);
      else this.#count(entry, bytes);
    }
    return [...numbers].sort((left, right) => left - right);
  }

  #count(entry, bytes) {
    entry.sent += bytes;
    this.#sent += bytes;
    this.changed(entry);
  }

  async #send(entry, number) {
    const blob = partOf(entry, number);
    const checksums = hasPartDigests ? { [number]: await partDigest(blob, entry.path) } : {};
    await persist(async () => {
      const body = { path: entry.path, numbers: [number], checksums };
      const [signed] = await api("POST", `${this.place}/parts`, body, this.#stop.signal);
      await this.#put(signed, blob, entry);
    }, this.#stop.signal);
    this.#count(entry, blob.size);
    entry.left -= 1;
    if (!entry.left) await this.#finish(entry);
  }

  #put({ url, headers, number }, blob, entry) {
    return new Promise((resolve, reject) => {
      const { signal } = this.#stop;
      const key = `${number} ${entry.path}`;
      const request = new XMLHttpRequest();
      const abort = () => request.abort();
      const end = (act, value) => {
        signal.removeEventListener("abort", abort);
        this.#sending.delete(key);
        act(value);
      };
      request.open("PUT", url);
      Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
      request.upload.onprogress = (event) => { this.#sending.set(key, event.loaded); this.changed(entry); };
      request.onload = () => (request.status < 300
        ? end(resolve)
        : end(reject, new ConnectionLost(`Object storage returned HTTP ${request.status}.`)));
      request.onerror = () => end(reject, new ConnectionLost("The connection to object storage was lost."));
      request.onabort = () => end(reject, new Stopped());
      signal.addEventListener("abort", abort);
      request.send(blob);
    });
  }

  async #finish(entry) {
    entry.state = "sent";
    this.changed(entry);
    this.#assembling.push(entry);
    if (this.#assembling.length < COMPLETED_AT_ONCE) return;
    const some = this.#assembling.splice(0);
    await this.#api("POST", `${this.place}/files/complete`, { paths: some.map(({ path }) => path) });
    some.forEach((stored) => { stored.state = "stored"; this.changed(stored); });
  }
}

export const isGone = (error) => error instanceof Problem &&
  ["upload_gone", "wrong_state", "not_found"].includes(error.code);
