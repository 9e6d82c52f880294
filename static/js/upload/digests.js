/* SHA-256 of files and of their parts. At most one part or small file is in memory at a time. */
import { Stopped } from "./api.js";

const IN_MEMORY_BYTES = 32 * 2 ** 20;

/* Only in a secure context: https, or this machine. */
export const hasPartDigests = Boolean(globalThis.crypto?.subtle);

export class FileChanged extends Error {
  constructor(name) {
    super(`${name} was changed or removed after it was chosen. Choose the files again.`);
  }
}

export const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)));
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

let last = Promise.resolve();
const oneAtATime = (work) => {
  const result = last.then(work);
  last = result.catch(() => undefined);
  return result;
};

/* One buffer for all: a new one for each part would pile up until the garbage collector runs. */
let buffer = new ArrayBuffer(0);
const readAll = async (blob) => {
  if (buffer.byteLength < blob.size) buffer = new ArrayBuffer(blob.size);
  let reader;
  try {
    reader = blob.stream().getReader({ mode: "byob" });
  } catch {
    // Safari has no such reader for files.
    return new Uint8Array(await blob.arrayBuffer());
  }
  for (let at = 0; at < blob.size;) {
    const { value, done } = await reader.read(new Uint8Array(buffer, at, blob.size - at));
    if (done) throw new Error("The file is shorter than when it was chosen.");
    buffer = value.buffer;
    at += value.length;
  }
  return new Uint8Array(buffer, 0, blob.size);
};

const digestInMemory = (blob, name) => oneAtATime(async () => {
  const bytes = await readAll(blob).catch(() => {
    buffer = new ArrayBuffer(0);
    throw new FileChanged(name);
  });
  return crypto.subtle.digest("SHA-256", bytes);
});

export const partDigest = async (blob, name) => base64(await digestInMemory(blob, name));

/* The SHA-256 of a file in hexadecimal. `onProgress` gets the bytes done. */
export const fileDigest = async (file, { workerUrl, signal, onProgress = () => undefined }) => {
  if (signal.aborted) throw new Stopped();
  if (hasPartDigests && file.size <= IN_MEMORY_BYTES) {
    const sha256 = hex(await digestInMemory(file, file.name));
    onProgress(file.size);
    return sha256;
  }
  const worker = new Worker(workerUrl, { type: "module" });
  try {
    return await new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Stopped()), { once: true });
      worker.onerror = () => reject(new Error("The browser could not compute SHA-256."));
      worker.onmessage = ({ data }) => {
        if (data.error) reject(new FileChanged(file.name));
        else if (data.sha256) resolve(data.sha256);
        else onProgress(data.done);
      };
      worker.postMessage(file);
    });
  } finally {
    worker.terminate();
  }
};
