/* What the chosen files are, before they are sent: the server names the format by their first bytes, and
   digests tell whether a version has exactly these files. */
import { api } from "./api.js";
import { base64, fileDigest } from "./digests.js";

const HEAD_BYTES = 4096;
const HEAD_ROUNDS = 4;
// What is digested before every upload. More takes minutes, and is done only to compare.
const DIGESTED_BYTES = 256 * 2 ** 20;

const bySize = (entries) => [...entries].sort((left, right) => left.file.size - right.file.size);

const readHead = async (entry) => {
  entry.head = base64(await entry.file.slice(0, HEAD_BYTES).arrayBuffer());
};

export const draftFiles = (entries) => entries.map(({ path, file, sha256 = "", head = "" }) =>
  ({ path, size_bytes: file.size, sha256, head }));

/* The server's preview, with the first bytes of the files that it needs. */
export const preview = async (entries, { team, model }) => {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  if (entries.length === 1) await readHead(entries[0]);
  for (let round = 1; ; round += 1) {
    const answer = await api("POST", "versions/preview", { team, model, files: draftFiles(entries) });
    if (!answer.needed_heads.length || round === HEAD_ROUNDS) return answer;
    for (const path of answer.needed_heads) await readHead(byPath.get(path));
  }
};

/* Give entries their `sha256`: all where they are small, and all where a version has files of the same
   paths and sizes, until one of them differs from each such version. */
export const digest = async (entries, sameSizes, { workerUrl, signal, onProgress }) => {
  const versions = await Promise.all(sameSizes.map(async ({ id }) =>
    new Map((await api("GET", `versions/${id}/files`)).map((file) => [file.path, file.sha256]))));
  let candidates = versions;
  let done = 0;
  for (const entry of bySize(entries)) {
    if (done + entry.file.size > DIGESTED_BYTES && !candidates.length) return;
    entry.sha256 ??= await fileDigest(entry.file, {
      workerUrl, signal, onProgress: (bytes) => onProgress(done + bytes),
    });
    done += entry.file.size;
    candidates = candidates.filter((digests) => digests.get(entry.path) === entry.sha256);
  }
};
