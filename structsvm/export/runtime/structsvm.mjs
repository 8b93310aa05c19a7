// Labels and dependency trees by a model that structsvm exported, in browsers and in Node: types are in structsvm.d.mts.

const MESSAGES = {
  [-1]: "not a complete, sound model of the runtime",
  [-2]: "no memory",
  [-3]:
    "a value that is not finite, k below 1, a text longer than 2**24 bytes, words without a column of training, " +
    "lists of attributes for a model of segments of dicts, or dicts for one of lists",
  [-4]: "a text that is not UTF-8",
  [-5]: "the model's constraints leave no labelling, or its scores overflow",
  [-6]: "the input, or k, would need more than 2**31 bytes, or a sentence is longer than the parser takes",
  [-7]: "the scores of this model are margins: train with loss='log', or call calibrate",
  [-8]: "a model that another version of structsvm exported: export it again",
  [-9]: "no token has a column that all tokens of training had",
};
const MAX_DEPTH = 64;
const TEXT = 12; // bytes of a structsvm_text: address, size, value
const NO_TEXT = 2 ** 31; // added to the size of an attribute that is not the text of one feature
const KIND = 40; // where a model's bytes say what it labels
const DOCUMENTS = 2;
const TREES = 3;
const SEGMENTS = 4;
const COLUMNS = ["form", "lemma", "upos", "xpos", "feats"]; // of words

const CHUNK = 1 << 16; // bytes that are allocated at once for texts
const MOST_TEXTS = 1 << 15; // texts and names that are remembered from call to call, and their bytes
const MOST_BYTES = 1 << 20;
const LONG = 64; // longer texts are not

const compiled = new Map();

/** Open a model: its bytes, and where the runtime is (by default structsvm.wasm beside this file). */
export async function load(model, { wasm = new URL("structsvm.wasm", import.meta.url) } = {}) {
  if (!ArrayBuffer.isView(model) && !/ArrayBuffer]$/.test(Object.prototype.toString.call(model))) {
    throw new TypeError("model must be an ArrayBuffer, or a view of one");
  }
  const module = await moduleOf(wasm);
  const { exports } = await WebAssembly.instantiate(module, {});
  exports._initialize?.();
  const bytes = new Uint8Array(model.buffer ?? model, model.byteOffset ?? 0, model.byteLength);
  const Kind = bytes[KIND] === TREES ? Parser : bytes[KIND] === DOCUMENTS ? Classifier : Tagger;
  return new Kind(new Opened(exports, bytes));
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

// A model in the runtime's memory, and room there for what its functions read and write.
class Opened {
  #room = 0;
  #size = 0;
  #numbers = new Uint32Array();
  #floats = new Float32Array();

  constructor(exports, model) {
    this.exports = exports;
    const { structsvm_predict: predict, structsvm_kbest: kbest, structsvm_probability: probability } = exports;
    this.verbs = { predict, kbest, probability };
    const bytes = model.length < NO_TEXT ? exports.malloc(model.length + 8) >>> 0 : 0;
    if (!bytes) throw new RangeError(MESSAGES[-2]);
    this.isOfSegments = model[KIND] === SEGMENTS;
    new Uint8Array(exports.memory.buffer).set(model, bytes);
    const made = bytes + ((model.length + 3) & ~3);
    const status = exports.structsvm_open(bytes, model.length, made);
    if (status < 0) {
      exports.free(bytes);
      throw new Error(MESSAGES[status]);
    }
    const numberAt = (at) => this.numbers[at >>> 2];
    this.pointer = numberAt(made);
    this.nColumns = numberAt(this.pointer + 4);
    this.nNumbers = numberAt(this.pointer + 16);
    const textsAt = (place, length) => Array.from({ length }, (_, y) => {
      const at = numberAt(place) + TEXT * y;
      return textOf(new Uint8Array(exports.memory.buffer, numberAt(at), numberAt(at + 4)));
    });
    this.labels = textsAt(this.pointer + 8, numberAt(this.pointer));
    this.required = textsAt(this.pointer + 28, numberAt(this.pointer + 24)).map((name) => ({
      name,
      key: name.endsWith(":") ? name.slice(0, -1) : Symbol(),
      isBeginning: /^[^:=]+[:=]$/.test(name),
    }));
    this.texts = new Texts(exports);
  }

  view() {
    return new DataView(this.exports.memory.buffer);
  }

  call(verb, ...args) {
    const status = this.verbs[verb](this.pointer, ...args);
    if (status < 0) throw new Error(MESSAGES[status]);
    return status;
  }

  // The runtime's memory as numbers of four bytes; a new array where the memory has grown.
  get numbers() {
    if (this.#numbers.buffer !== this.exports.memory.buffer) {
      this.#numbers = new Uint32Array(this.exports.memory.buffer);
      this.#floats = new Float32Array(this.exports.memory.buffer);
    }
    return this.#numbers;
  }

  labelsAt(at, n) {
    const numbers = this.numbers;
    const first = at >>> 2;
    const labels = [];
    for (let t = first; t < first + n; t++) labels.push(this.labels[numbers[t]]);
    return labels;
  }

  // Rows of the probabilities of labels, or of so many numbers.
  rowsAt(at, n, size = this.labels.length) {
    return Array.from({ length: n }, (_, t) => new Float32Array(this.exports.memory.buffer, at + 4 * t * size, size).slice());
  }

  // Addresses of rows of numbers, and of room for `more` bytes.
  writeRows(rows, more) {
    const width = 8 * this.nNumbers;
    const size = 16 + more + rows.length * (TEXT + width);
    if (!(size <= this.#size)) this.#grow(size);
    const textsAt = this.#room + ((more + 7) & ~7);
    const view = this.view();
    rows.forEach((row, i) => {
      const at = textsAt + TEXT * rows.length + width * i;
      view.setUint32(textsAt + TEXT * i, at, true);
      view.setUint32(textsAt + TEXT * i + 4, width, true);
      for (let k = 0; k < this.nNumbers; k++) view.setFloat64(at + 8 * k, row[k], true);
    });
    return [textsAt, 0, this.#room];
  }

  writeTexts(texts, more) {
    this.texts.begin();
    return this.write(texts.map((text) => this.texts.numberOf(text)), [], [], [], more);
  }

  // Addresses of texts, given by their numbers, with their values and what is added to their sizes; of where each token's
  // begin (0 for columns); and of room for `more` bytes.
  write(given, values, marks, starts, more) {
    const size = 16 + more + 4 * starts.length + TEXT * given.length;
    if (!(size <= this.#size)) this.#grow(size);
    const { addresses, sizes } = this.texts;
    const numbers = this.numbers;
    const floats = this.#floats;
    const startsAt = this.#room + ((more + 7) & ~7);
    let place = startsAt >>> 2;
    for (let t = 0; t < starts.length; t++) numbers[place++] = starts[t];
    for (let i = 0; i < given.length; i++, place += 3) {
      numbers[place] = addresses[given[i]];
      numbers[place + 1] = marks.length ? sizes[given[i]] + marks[i] : sizes[given[i]];
      floats[place + 2] = values.length ? values[i] : 1;
    }
    return [startsAt + 4 * starts.length, this.nColumns ? 0 : startsAt, this.#room];
  }

  #grow(size) {
    const room = allocated(this.exports, size);
    this.exports.free(this.#room);
    this.#room = room;
    this.#size = size;
  }
}

function allocated(exports, size) {
  const room = size < 2 ** 31 ? exports.malloc(size) >>> 0 : 0;
  if (!room) throw new RangeError(MESSAGES[-2]);
  return room;
}

// Texts in the runtime's memory, by numbers. Short ones are remembered, until there are many.
class Texts {
  #exports;
  #known = new Map();
  #names = new Map();
  #chunks = [];
  #at = 0;
  #end = 0;
  #bytes = new Uint8Array();
  #total = 0;
  #nNames = 0;
  addresses = [];
  sizes = [];

  constructor(exports) {
    this.#exports = exports;
  }

  /** Begin a call: its texts stay until the next one. */
  begin() {
    if (this.addresses.length + this.#nNames <= MOST_TEXTS && this.#total <= MOST_BYTES) return;
    for (const chunk of this.#chunks) this.#exports.free(chunk);
    this.#chunks = [];
    this.#known.clear();
    this.#names.clear();
    this.#at = this.#end = this.#total = this.#nNames = this.addresses.length = this.sizes.length = 0;
  }

  numberOf(text) {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const number = this.#written(text);
    if (text.length <= LONG) this.#known.set(text, number);
    return number;
  }

  numberOfValue(name, value) {
    const known = name.values.get(value);
    if (known !== undefined) return known;
    const number = this.#written(`${name.text}:${value}`);
    if (value.length <= LONG) name.values.set(value, number);
    return number;
  }

  numberOfName(name) {
    if (name.number < 0) name.number = this.#written(name.text);
    return name.number;
  }

  /** A name, by its text; or by what follows those before it and a colon. */
  name(text) {
    return this.#names.get(text) ?? this.#made(this.#names, text, text);
  }

  below(name, key) {
    return name.below.get(key) ?? this.#made(name.below, key, `${name.text}:${key}`);
  }

  #made(names, key, text) {
    const name = { text, number: -1, below: new Map(), values: new Map() };
    names.set(key, name);
    this.#nNames++;
    return name;
  }

  #written(text) {
    const most = 3 * text.length;
    if (this.#end - this.#at < most) {
      const size = Math.max(CHUNK, most);
      this.#at = allocated(this.#exports, size);
      this.#chunks.push(this.#at);
      this.#end = this.#at + size;
      this.#total += size;
    }
    if (this.#bytes.buffer !== this.#exports.memory.buffer) this.#bytes = new Uint8Array(this.#exports.memory.buffer);
    const first = this.#at;
    this.#at = writeUtf8(text, this.#bytes, first);
    this.sizes.push(this.#at - first);
    return this.addresses.push(first) - 1;
  }
}

// Write a text in UTF-8, halves of pairs as three bytes, as Python has them; returns where it ends.
function writeUtf8(text, bytes, at) {
  for (let i = 0; i < text.length; i++) {
    const code = text.codePointAt(i);
    let more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    if (more === 3) i++;
    bytes[at++] = more ? (0xff00 >> (more + 1)) & 0xff | (code >> (6 * more)) : code;
    while (more-- > 0) bytes[at++] = 0x80 | ((code >> (6 * more)) & 63);
  }
  return at;
}

// The text of such bytes: TextDecoder replaces halves of pairs, and leaves a first U+FEFF out.
function textOf(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; ) {
    const first = bytes[i++];
    let more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    let code = more ? first & (0x3f >> more) : first;
    for (; more > 0; more--) code = (code << 6) | (bytes[i++] & 63);
    text += String.fromCodePoint(code);
  }
  return text;
}

export class Tagger {
  #model;

  constructor(model) {
    this.#model = model;
    this.labels = model.labels;
    /** Strings of each token; 0: tokens have attributes. */
    this.nColumns = model.nColumns;
  }

  /** The best labels of a sequence. */
  predict(tokens) {
    const n = tokens?.length;
    const [texts, starts, out] = this.#write(tokens, 4 * n);
    this.#model.call("predict", texts, starts, n, out);
    return this.#model.labelsAt(out, n);
  }

  /** The k best labellings and their scores, best first. */
  kbest(tokens, k) {
    checkCount(k);
    const n = tokens?.length;
    const [texts, starts, out] = this.#write(tokens, 8 * k + 4 * n * k);
    const found = this.#model.call("kbest", texts, starts, n, k, out + 8 * k, out);
    return Array.from({ length: found }, (_, i) => ({
      labels: this.#model.labelsAt(out + 8 * k + 4 * n * i, n),
      score: this.#model.view().getFloat64(out + 8 * i, true),
    }));
  }

  /** A row per token of the probability of each of `labels`. */
  probability(tokens) {
    const [texts, starts, out] = this.#write(tokens, 4 * tokens?.length * this.labels.length);
    this.#model.call("probability", texts, starts, tokens.length, out);
    return this.#model.rowsAt(out, tokens.length);
  }

  #write(tokens, more) {
    const { texts } = this.#model;
    const found = { texts, numbers: [], values: [], marks: this.#model.isOfSegments && !this.nColumns ? [] : null };
    const starts = this.nColumns ? [] : [0];
    checkArray(tokens, "a sequence", "tokens");
    texts.begin();
    for (let t = 0; t < tokens.length; t++) {
      if (this.nColumns) addColumns(tokens[t], t, this.nColumns, found);
      else addAttributes(tokens[t], t, found), starts.push(found.numbers.length);
    }
    checkColumns(tokens, this.#model.required);
    return this.#model.write(found.numbers, found.values, found.marks ?? [], starts, more);
  }
}

export class Classifier {
  #model;

  constructor(model) {
    this.#model = model;
    this.labels = model.labels;
    /** Numbers of each row, of a model of rows of numbers; 0: texts. */
    this.nNumbers = model.nNumbers;
  }

  /** The best label of each text, or row. */
  predict(texts) {
    const [at, , out] = this.#write(texts, 4 * texts?.length);
    this.#model.call("predict", at, 0, texts.length, out);
    return this.#model.labelsAt(out, texts.length);
  }

  /** The k labels of highest score of a text, best first. */
  kbest(text, k) {
    checkCount(k);
    const most = Math.min(k, this.labels.length);
    const [at, , out] = this.#write([text], 12 * most);
    const found = this.#model.call("kbest", at, 0, 1, most, out + 8 * most, out);
    return this.#model.labelsAt(out + 8 * most, found).map((label, i) => ({
      label,
      score: this.#model.view().getFloat64(out + 8 * i, true),
    }));
  }

  /** A row per text of the probability of each of `labels`. */
  probability(texts) {
    const [at, , out] = this.#write(texts, 4 * texts?.length * this.labels.length);
    this.#model.call("probability", at, 0, texts.length, out);
    return this.#model.rowsAt(out, texts.length);
  }

  #write(texts, more) {
    if (this.nNumbers) return this.#writeRows(texts, more);
    checkArray(texts, "texts", "strings");
    for (const [i, text] of texts.entries()) {
      if (typeof text !== "string") throw new TypeError(`text ${i} must be a string`);
    }
    return this.#model.writeTexts(texts, more);
  }

  #writeRows(rows, more) {
    checkArray(rows, "rows", "arrays of numbers");
    for (const [i, row] of rows.entries()) {
      const isRow = (Array.isArray(row) || ArrayBuffer.isView(row)) && row.length === this.nNumbers;
      if (!isRow || !Array.from(row).every((x) => typeof x === "number")) {
        throw new TypeError(`row ${i} must be an array of ${this.nNumbers} numbers`);
      }
    }
    return this.#model.writeRows(rows, more);
  }
}

export class Parser {
  #model;

  constructor(model) {
    this.#model = model;
    this.labels = model.labels;
  }

  /** The head and the label of each word. */
  predict(words) {
    const n = words?.length;
    const [texts, , out] = this.#write(words, 8 * n);
    this.#model.call("predict", texts, 0, n, out);
    return this.#arcsAt(out, n);
  }

  /** The k best trees and their scores, best first. */
  kbest(words, k) {
    checkCount(k);
    const n = words?.length;
    const [texts, , out] = this.#write(words, 8 * k + 8 * n * k);
    const found = this.#model.call("kbest", texts, 0, n, k, out + 8 * k, out);
    return Array.from({ length: found }, (_, i) => ({
      arcs: this.#arcsAt(out + 8 * k + 8 * n * i, n),
      score: this.#model.view().getFloat64(out + 8 * i, true),
    }));
  }

  /** A row per word of the probability of each head, the root's first. */
  probability(words) {
    const n = words?.length;
    const [texts, , out] = this.#write(words, 4 * n * (n + 1));
    this.#model.call("probability", texts, 0, n, out);
    return this.#model.rowsAt(out, n, n + 1);
  }

  #arcsAt(at, n) {
    const numbers = new Uint32Array(this.#model.exports.memory.buffer, at, 2 * n);
    return Array.from({ length: n }, (_, i) => ({ head: numbers[2 * i], label: this.labels[numbers[2 * i + 1]] }));
  }

  #write(words, more) {
    checkArray(words, "a sentence", "words");
    return this.#model.writeTexts(Array.from(words, columnsOf).flat(), more);
  }
}

function columnsOf(word, i) {
  const given = typeof word === "string" ? { form: word } : Array.isArray(word) ? { form: word[0], upos: word[1] } : word;
  const columns = COLUMNS.map((name) => given?.[name] ?? "_");
  if (!given?.form || !columns.every((column) => typeof column === "string")) {
    throw new TypeError(`word ${i} must be a string, a pair [form, tag], or an object of columns, with a form`);
  }
  return columns;
}

function checkArray(given, name, items) {
  if (!Array.isArray(given)) throw new TypeError(`${name} must be an array of ${items}`);
}

function checkCount(k) {
  if (!Number.isInteger(k) || k < 1) throw new RangeError(`k must be an integer of at least 1, got ${k}`);
}

function addColumns(token, t, nColumns, { texts, numbers }) {
  const cells = typeof token === "string" ? [token] : token;
  let isSound = Array.isArray(cells) && cells.length === nColumns;
  for (let i = 0; isSound && i < nColumns; i++) {
    isSound = typeof cells[i] === "string";
    if (isSound) numbers.push(texts.numberOf(cells[i]));
  }
  if (!isSound) throw new TypeError(`token ${t} must be a string, or an array of strings: the model reads ${nColumns}`);
}

// Refuse tokens without a column that all tokens of training had.
function checkColumns(tokens, required) {
  const asked = tokens.filter((_, t) => t % Math.ceil(tokens.length / 1000) === 0);
  for (const { name, key, isBeginning } of required) {
    const has = (token) =>
      Array.isArray(token)
        ? isBeginning && token.some((item) => item.startsWith(name))
        : typeof token[key] === "string" || (Object.hasOwn(token, name) && typeof token[name] !== "string");
    if (asked.length && !asked.some(has)) throw new Error(`${MESSAGES[-9]}: ${name}`);
  }
}

// Whether features are an object's properties: not of a Map, a Date, a Promise, whose contents are elsewhere.
function isRecord(value) {
  return Object.prototype.toString.call(value) === "[object Object]" && !(Symbol.iterator in value);
}

function isListOfNames(token) {
  if (!Array.isArray(token)) return false;
  for (let i = 0; i < token.length; i++) if (typeof token[i] !== "string") return false;
  return true;
}

// With `marks`: what tells the texts of features, of a list those behind "=", of an object strings under keys without a mark.
function addAttributes(token, t, found) {
  const { texts, numbers, values, marks } = found;
  if (isListOfNames(token)) {
    for (const name of token) {
      numbers.push(texts.numberOf(name));
      values.push(1);
      marks?.push(/^[^:=]*=/.test(name) ? 0 : NO_TEXT);
    }
  } else if (isRecord(token)) {
    for (const key of Object.keys(token)) {
      const value = token[key];
      const n = numbers.length;
      addFeature(texts.name(key), value, t, found, 0);
      if (numbers.length === n) numbers.push(texts.numberOfName(texts.name(key))), values.push(0); // an empty array
      const mark = marks && typeof value === "string" && !/[:=]/.test(key) ? 0 : NO_TEXT;
      while (marks && marks.length < numbers.length) marks.push(mark);
    }
  } else {
    throw new TypeError(`token ${t} must be an array of attributes or an object of features`);
  }
}

function addFeature(name, value, t, found, depth) {
  const { texts, numbers, values } = found;
  if (depth > MAX_DEPTH) throw new RangeError(`token ${t}: features are nested deeper than ${MAX_DEPTH} levels`);
  if (typeof value === "string") {
    numbers.push(texts.numberOfValue(name, value));
    values.push(1);
  } else if (typeof value === "number" || typeof value === "boolean") {
    if (!Number.isFinite(Math.fround(Number(value)))) {
      throw new RangeError(`token ${t}: feature ${name.text} must be finite`);
    }
    numbers.push(texts.numberOfName(name));
    values.push(Number(value));
  } else if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const inner = value[i];
      addFeature(typeof inner === "string" ? name : texts.name(`${name.text}[${i}]`), inner, t, found, depth + 1);
    }
  } else if (isRecord(value)) {
    for (const key of Object.keys(value)) addFeature(texts.below(name, key), value[key], t, found, depth + 1);
  } else {
    throw new TypeError(`token ${t}: feature ${name.text} must be a number, a string, an array or an object`);
  }
}
