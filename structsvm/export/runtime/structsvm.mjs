// Labels of sequences by a model that structsvm exported, in browsers and in Node: types are in structsvm.d.mts.

const MESSAGES = {
  [-1]: "not a complete, sound model of the runtime",
  [-2]: "no memory",
  [-3]: "a value that is not finite, k below 1, or a text longer than 2**24 bytes",
  [-4]: "a text that is not UTF-8",
  [-5]: "the model's constraints leave no labelling, or its scores overflow",
  [-6]: "the sequence, or k, would need more than 2**31 bytes",
  [-7]: "the scores of this model are margins: train with loss='log', or call calibrate",
};
const MAX_DEPTH = 64;
const TEXT = 12; // bytes of a structsvm_text: address, size, value

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const compiled = new Map();

/** Open a model: its bytes, and where the runtime is (by default structsvm.wasm beside this file). */
export async function load(model, { wasm = new URL("structsvm.wasm", import.meta.url) } = {}) {
  const module = await moduleOf(wasm);
  const { exports } = await WebAssembly.instantiate(module, {});
  exports._initialize?.();
  return new Tagger(exports, new Uint8Array(model.buffer ?? model, model.byteOffset ?? 0, model.byteLength));
}

async function moduleOf(wasm) {
  if (wasm instanceof WebAssembly.Module) return wasm;
  if (!(wasm instanceof URL) && typeof wasm !== "string") return WebAssembly.compile(wasm);
  const key = String(wasm);
  if (!compiled.has(key)) compiled.set(key, bytesAt(new URL(wasm, import.meta.url)).then(WebAssembly.compile));
  return compiled.get(key);
}

async function bytesAt(url) {
  if (url.protocol === "file:" && globalThis.process?.versions?.node) {
    return (await import("node:fs/promises")).readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

export class Tagger {
  #exports;
  #pointer;
  #room = 0;
  #size = 0;

  constructor(exports, model) {
    this.#exports = exports;
    const bytes = exports.malloc(model.length + 8);
    if (!bytes) throw new RangeError(MESSAGES[-2]);
    new Uint8Array(exports.memory.buffer).set(model, bytes);
    const status = exports.structsvm_open(bytes, model.length, bytes + ((model.length + 3) & ~3));
    if (status < 0) {
      exports.free(bytes);
      throw new Error(MESSAGES[status]);
    }
    const view = this.#view();
    this.#pointer = view.getUint32(bytes + ((model.length + 3) & ~3), true);
    const nLabels = view.getUint32(this.#pointer, true);
    const texts = view.getUint32(this.#pointer + 8, true);
    /** Strings of each token; 0: tokens have attributes. */
    this.nColumns = view.getUint32(this.#pointer + 4, true);
    this.labels = Array.from({ length: nLabels }, (_, y) => {
      const at = view.getUint32(texts + TEXT * y, true);
      return decoder.decode(new Uint8Array(exports.memory.buffer, at, view.getUint32(texts + TEXT * y + 4, true)));
    });
  }

  /** The best labels of a sequence. */
  predict(tokens) {
    const n = tokens.length;
    const [texts, starts, out] = this.#write(tokens, 4 * n);
    check(this.#exports.structsvm_predict(this.#pointer, texts, starts, n, out));
    return this.#labelsAt(out, n);
  }

  /** The k best labellings and their scores, best first. */
  kbest(tokens, k) {
    if (!Number.isInteger(k) || k < 1) throw new RangeError(`k must be an integer of at least 1, got ${k}`);
    const n = tokens.length;
    const [texts, starts, out] = this.#write(tokens, 8 * k + 4 * n * k);
    const found = check(this.#exports.structsvm_kbest(this.#pointer, texts, starts, n, k, out + 8 * k, out));
    return Array.from({ length: found }, (_, i) => ({
      labels: this.#labelsAt(out + 8 * k + 4 * n * i, n),
      score: this.#view().getFloat64(out + 8 * i, true),
    }));
  }

  /** A row per token of the probability of each of `labels`. */
  probability(tokens) {
    const [n, size] = [tokens.length, this.labels.length];
    const [texts, starts, out] = this.#write(tokens, 4 * n * size);
    check(this.#exports.structsvm_probability(this.#pointer, texts, starts, n, out));
    return Array.from({ length: n }, (_, t) =>
      new Float32Array(this.#exports.memory.buffer, out + 4 * t * size, size).slice());
  }

  #view() {
    return new DataView(this.#exports.memory.buffer);
  }

  #labelsAt(at, n) {
    return Array.from(new Uint32Array(this.#exports.memory.buffer, at, n), (y) => this.labels[y]);
  }

  // Addresses of the texts of tokens, of where each token's begin (0 for columns), and of room for `more` bytes.
  #write(tokens, more) {
    const texts = [];
    const values = [];
    const starts = [0];
    tokens.forEach((token, t) => {
      if (this.nColumns) addColumns(token, t, this.nColumns, texts);
      else addAttributes(token, t, texts, values);
      starts.push(texts.length);
    });
    let size = 16 + more + 4 * starts.length + TEXT * texts.length;
    for (const text of texts) size += 3 * text.length;
    if (size > this.#size) this.#grow(size);
    const out = this.#room;
    const startsAt = out + ((more + 7) & ~7);
    const textsAt = startsAt + 4 * starts.length;
    let at = textsAt + TEXT * texts.length;
    const bytes = new Uint8Array(this.#exports.memory.buffer);
    const view = this.#view();
    starts.forEach((start, t) => view.setUint32(startsAt + 4 * t, start, true));
    texts.forEach((text, i) => {
      const { written } = encoder.encodeInto(text, bytes.subarray(at));
      view.setUint32(textsAt + TEXT * i, at, true);
      view.setUint32(textsAt + TEXT * i + 4, written, true);
      view.setFloat32(textsAt + TEXT * i + 8, values[i] ?? 1, true);
      at += written;
    });
    return [textsAt, this.nColumns ? 0 : startsAt, out];
  }

  #grow(size) {
    const room = size < 2 ** 31 ? this.#exports.malloc(size) : 0;
    if (!room) throw new RangeError(MESSAGES[-2]);
    this.#exports.free(this.#room);
    this.#room = room;
    this.#size = size;
  }
}

function check(status) {
  if (status < 0) throw new Error(MESSAGES[status]);
  return status;
}

function addColumns(token, t, nColumns, texts) {
  const cells = typeof token === "string" ? [token] : token;
  if (!Array.isArray(cells) || cells.length !== nColumns || !cells.every((cell) => typeof cell === "string")) {
    throw new TypeError(`token ${t} must be a string, or an array of strings: the model reads ${nColumns}`);
  }
  texts.push(...cells);
}

function addAttributes(token, t, texts, values) {
  if (Array.isArray(token) && token.every((name) => typeof name === "string")) {
    for (const name of token) texts.push(name), values.push(1);
  } else if (token !== null && typeof token === "object" && !Array.isArray(token)) {
    for (const [name, value] of Object.entries(token)) addFeature(name, value, t, texts, values, 0);
  } else {
    throw new TypeError(`token ${t} must be an array of attributes or an object of features`);
  }
}

function addFeature(name, value, t, texts, values, depth) {
  if (depth > MAX_DEPTH) throw new RangeError(`token ${t}: features are nested deeper than ${MAX_DEPTH} levels`);
  if (typeof value === "string") {
    texts.push(`${name}:${value}`), values.push(1);
  } else if (typeof value === "number" || typeof value === "boolean") {
    texts.push(name), values.push(Number(value));
  } else if (Array.isArray(value)) {
    value.forEach((inner, i) =>
      addFeature(typeof inner === "string" ? name : `${name}[${i}]`, inner, t, texts, values, depth + 1));
  } else if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) addFeature(`${name}:${key}`, inner, t, texts, values, depth + 1);
  } else {
    throw new TypeError(`token ${t}: feature ${name} must be a number, a string, an array or an object`);
  }
}
