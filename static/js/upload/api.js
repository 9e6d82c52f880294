/* The REST API as the signed-in person, and requests that are repeated until they succeed. */

const ATTEMPTS = 8;
const LONGEST_WAIT_MS = 30_000;

/* A refusal of the API. */
export class Problem extends Error {
  constructor(status, body, retryAfterSeconds = 0) {
    super(body.detail ?? `The server returned HTTP ${status}.`);
    this.status = status;
    this.code = body.code ?? "";
    this.errors = body.errors ?? [];
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/* The connection to the portal or to object storage failed; the same request may succeed later. */
export class ConnectionLost extends Error {}

/* Paused or canceled by the person. */
export class Stopped extends Error {}

/* Signing in again in another tab replaces the token (static/js/session.js). */
const csrfToken = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

export const api = async (method, path, body, signal) => {
  const headers = { "X-CSRFToken": csrfToken(), Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (signal?.aborted) throw new Stopped();
    throw new ConnectionLost("The portal is not responding.");
  }
  const data = await answer.json().catch(() => ({}));
  // Stopped while the body was on its way.
  if (signal?.aborted) throw new Stopped();
  if (answer.status === 401) data.detail = "You've been signed out. Sign in again in another tab, then select Resume.";
  if (!answer.ok) throw new Problem(answer.status, data, Number(answer.headers.get("Retry-After")) || 0);
  return data;
};

/* Object storage joins the parts of a large file for minutes; the portal says when to ask again. */
const isAssembling = (error) => error instanceof Problem && error.code === "assembling";

const isTransient = (error) => error instanceof ConnectionLost ||
  (error instanceof Problem && (error.status >= 500 || error.status === 429));

const wait = (milliseconds, signal) => new Promise((resolve, reject) => {
  const end = () => { clearTimeout(timer); reject(new Stopped()); };
  const timer = setTimeout(() => { signal.removeEventListener("abort", end); resolve(); }, milliseconds);
  signal.addEventListener("abort", end, { once: true });
});

const online = (signal) => new Promise((resolve, reject) => {
  window.addEventListener("online", resolve, { once: true, signal });
  signal.addEventListener("abort", () => reject(new Stopped()), { once: true });
});

/* Repeat `request` with growing pauses. Time without a network does not count as an attempt. */
export const persist = async (request, signal) => {
  for (let attempt = 1; ;) {
    if (signal.aborted) throw new Stopped();
    try {
      return await request();
    } catch (error) {
      if (signal.aborted) throw new Stopped();
      if (!isTransient(error)) throw error;
      if (!navigator.onLine) {
        await online(signal);
        continue;
      }
      // Neither the limit of requests a minute nor a store at work is a failure.
      if (error.status !== 429 && !isAssembling(error)) attempt += 1;
      if (attempt > ATTEMPTS) throw error;
      const pause = Math.min(LONGEST_WAIT_MS, 500 * 2 ** attempt) * (0.75 + Math.random() / 2);
      const stated = error.retryAfterSeconds * 1000 || 0;
      await wait(isAssembling(error) && stated ? stated : Math.max(pause, stated), signal);
    }
  }
};
