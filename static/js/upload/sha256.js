/* SHA-256 (FIPS 180-4) of a stream: crypto.subtle digests only what is in memory as a whole. */

const BLOCK_BYTES = 64;
const LENGTH_AT = 56;

const primes = (many) => {
  const known = [];
  for (let number = 2; known.length < many; number += 1)
    if (known.every((prime) => number % prime)) known.push(number);
  return known;
};
const fraction = (number) => ((number - Math.floor(number)) * 2 ** 32) | 0;
const K = Int32Array.from(primes(64), (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes(8), (prime) => fraction(Math.sqrt(prime)));

export class Sha256 {
  #state = START.slice();
  #words = new Int32Array(64);
  #rest = new Uint8Array(BLOCK_BYTES);
  #restBytes = 0;
  #bytes = 0;

  /* `chunk` is a Uint8Array of any length. */
  update(chunk) {
    this.#bytes += chunk.length;
    let from = 0;
    if (this.#restBytes) {
      from = Math.min(BLOCK_BYTES - this.#restBytes, chunk.length);
      this.#rest.set(chunk.subarray(0, from), this.#restBytes);
      this.#restBytes += from;
      if (this.#restBytes < BLOCK_BYTES) return;
      this.#blocks(this.#rest, 0, 1);
      this.#restBytes = 0;
    }
    const blocks = Math.floor((chunk.length - from) / BLOCK_BYTES);
    this.#blocks(chunk, from, blocks);
    const rest = chunk.subarray(from + blocks * BLOCK_BYTES);
    this.#rest.set(rest);
    this.#restBytes = rest.length;
  }

  /* The digest in hexadecimal. Ends the stream. */
  hex() {
    const isInOneBlock = this.#restBytes < LENGTH_AT;
    const tail = new Uint8Array(isInOneBlock ? BLOCK_BYTES : 2 * BLOCK_BYTES);
    tail.set(this.#rest.subarray(0, this.#restBytes));
    tail[this.#restBytes] = 0x80;
    new DataView(tail.buffer).setBigUint64(tail.length - 8, BigInt(this.#bytes) * 8n);
    this.#blocks(tail, 0, tail.length / BLOCK_BYTES);
    return [...this.#state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #blocks(bytes, from, many) {
    const state = this.#state;
    const w = this.#words;
    const k = K;
    let [s0, s1, s2, s3, s4, s5, s6, s7] = state;
    for (let block = 0, at = from; block < many; block += 1, at += BLOCK_BYTES) {
      for (let i = 0, j = at; i < 16; i += 1, j += 4)
        w[i] = (bytes[j] << 24) | (bytes[j + 1] << 16) | (bytes[j + 2] << 8) | bytes[j + 3];
      for (let i = 16; i < 64; i += 1) {
        const x = w[i - 15];
        const y = w[i - 2];
        w[i] = (w[i - 16] + w[i - 7] +
          (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) +
          (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) | 0;
      }
      let a = s0; let b = s1; let c = s2; let d = s3;
      let e = s4; let f = s5; let g = s6; let h = s7;
      for (let i = 0; i < 64; i += 1) {
        const first = (h + k[i] + w[i] + (g ^ (e & (f ^ g))) +
          (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7)))) | 0;
        const second = (((a & b) | (c & (a | b))) +
          (((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10)))) | 0;
        h = g; g = f; f = e;
        e = (d + first) | 0;
        d = c; c = b; b = a;
        a = (first + second) | 0;
      }
      s0 = (s0 + a) | 0; s1 = (s1 + b) | 0; s2 = (s2 + c) | 0; s3 = (s3 + d) | 0;
      s4 = (s4 + e) | 0; s5 = (s5 + f) | 0; s6 = (s6 + g) | 0; s7 = (s7 + h) | 0;
    }
    state.set([s0, s1, s2, s3, s4, s5, s6, s7]);
  }
}
