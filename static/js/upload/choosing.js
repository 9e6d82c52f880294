/* Files that a person chose or dropped, as [{path, file}]. A folder is walked; its own name is not part of
   the paths, as with `slipway push FOLDER`. */

const IGNORED_NAMES = new Set([".DS_Store", "Thumbs.db", "desktop.ini"]);
const IGNORED_FOLDERS = new Set(["__MACOSX", ".git", "__pycache__", ".ipynb_checkpoints"]);
/* Beside each file that macOS writes to a disk of another system. */
const APPLE_DOUBLE = "._";

export class TooManyFiles extends Error {}

const ignoredPart = (path) => {
  const folders = path.split("/");
  const name = folders.pop();
  const isIgnored = IGNORED_NAMES.has(name) || name.startsWith(APPLE_DOUBLE);
  return folders.find((folder) => IGNORED_FOLDERS.has(folder)) ?? (isIgnored ? name : undefined);
};

/* The one top folder of all paths, or "". */
const commonFolder = (paths) => {
  const tops = new Set(paths.map((path) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")));
  return tops.size === 1 ? [...tops][0] : "";
};

class Choice {
  constructor(mostFiles) {
    this.mostFiles = mostFiles;
    this.found = [];
    this.ignored = new Set();
  }

  isIgnored(path) {
    const part = ignoredPart(path);
    if (part) this.ignored.add(part);
    return Boolean(part);
  }

  add(path, file) {
    if (this.isIgnored(path)) return;
    this.found.push({ path, file });
    if (this.found.length > this.mostFiles)
      throw new TooManyFiles(`These are more than ${this.mostFiles.toLocaleString("en")} files, the limit of a version. Choose the folder of the model alone, or pack small files into an archive.`);
  }

  end() {
    const folder = commonFolder(this.found.map(({ path }) => path));
    const cut = folder ? folder.length + 1 : 0;
    const files = this.found.map(({ path, file }) => ({ path: path.slice(cut), file }));
    files.sort((left, right) => (left.path < right.path ? -1 : 1));
    return { files, folder, ignored: [...this.ignored].sort() };
  }
}

export const ofInput = (list, mostFiles) => {
  const choice = new Choice(mostFiles);
  [...list].forEach((file) => choice.add(file.webkitRelativePath || file.name, file));
  return choice.end();
};

const fileOf = (entry) => new Promise((resolve, reject) => { entry.file(resolve, reject); });
const entriesOf = async (folder) => {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    // A reader gives up to 100 entries at a time, then an empty list.
    const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (!some.length) return entries;
    entries.push(...some);
  }
};

const walk = async (entry, path, choice) => {
  if (entry.isFile) {
    if (!choice.isIgnored(path)) choice.add(path, await fileOf(entry));
    return;
  }
  if (choice.isIgnored(`${path}/`)) return;
  for (const child of await entriesOf(entry)) await walk(child, `${path}/${child.name}`, choice);
};

export const ofDrop = async (transfer, mostFiles) => {
  // Valid only until the event handler returns.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const choice = new Choice(mostFiles);
  for (const entry of entries) await walk(entry, entry.name, choice);
  return choice.end();
};
