/* The progress of all files: a bar and a line that change often, and a status for screen readers that does not. */
import { size, timeLeft } from "./text.js";

const SPEED_WINDOW_MS = 8000;
const SHOWN_EVERY_MS = 200;
const ANNOUNCED_PERCENT = 25;

export class Progress {
  #total = 0;
  #samples = [];
  #latest = 0;
  #timer = 0;
  #announced = 0;

  constructor({ bar, text, status }) {
    Object.assign(this, { bar, text, status });
  }

  begin(total) {
    this.#total = total;
    this.#samples = [];
    this.#announced = 0;
  }

  say(text) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.text.textContent = text;
  }

  /* For what happens once: people who do not see the line hear it. */
  announce(text) {
    this.say(text);
    this.status.textContent = text;
  }

  /* At most so often; the last value always. */
  show(bytes) {
    this.#latest = Math.min(bytes, this.#total);
    this.#timer ||= setTimeout(() => this.#render(), SHOWN_EVERY_MS);
  }

  #render() {
    const sent = this.#latest;
    const now = performance.now();
    this.#samples.push([now, sent]);
    while (this.#samples.length > 2 && now - this.#samples[0][0] > SPEED_WINDOW_MS) this.#samples.shift();
    const [since, before] = this.#samples[0];
    const speed = now > since ? Math.max(0, sent - before) / ((now - since) / 1000) : 0;
    const percent = (100 * sent) / Math.max(1, this.#total);
    this.bar.value = percent;
    const parts = [`${size(sent)} of ${size(this.#total)}`];
    if (sent === this.#total) parts.push("assembling the parts…");
    else if (speed > 0) parts.push(`${size(speed)}/s`, timeLeft((this.#total - sent) / speed));
    this.say(parts.filter(Boolean).join(" · "));
    if (percent - this.#announced < ANNOUNCED_PERCENT) return;
    this.#announced = Math.floor(percent / ANNOUNCED_PERCENT) * ANNOUNCED_PERCENT;
    this.status.textContent = `${this.#announced}% sent`;
  }
}
