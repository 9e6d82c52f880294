/* A worker that digests files as streams, so that the page stays responsive and memory small. */
import { Sha256 } from "./sha256.js";

const CHUNK_BYTES = 4 * 2 ** 20;

self.onmessage = async ({ data: file }) => {
  try {
    const digest = new Sha256();
    for (let start = 0; start < file.size; start += CHUNK_BYTES) {
      const end = Math.min(start + CHUNK_BYTES, file.size);
      digest.update(new Uint8Array(await file.slice(start, end).arrayBuffer()));
      self.postMessage({ done: end });
    }
    self.postMessage({ sha256: digest.hex() });
  } catch (error) {
    self.postMessage({ error: error.name });
  }
};
