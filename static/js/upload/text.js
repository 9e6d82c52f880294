/* Sizes, counts and times as text. */

export const size = (bytes) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  while (value >= 1024 && units.length > 1) { value /= 1024; units.shift(); }
  return `${value.toFixed(value < 10 && units[0] !== "B" ? 1 : 0)} ${units[0]}`;
};

export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;

export const timeLeft = (seconds) => {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 60) return `${Math.ceil(seconds)} s left`;
  return seconds < 5400 ? `${Math.ceil(seconds / 60)} min left` : `${(seconds / 3600).toFixed(1)} h left`;
};

/* A name for what comes from a file or folder: "Rows 2026.csv" is rows-2026. */
export const nameOfFile = (file) => {
  const stem = file.replace(/(\.tar)?\.[^.]*$/, "") || file;
  return stem.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "").slice(0, 40).replace(/-+$/, "");
};
