/**
 * A token: a string, its columns, its attributes, or an object of features, as the model was trained on. Where that matters,
 * in models of segments, arrays of attributes "w=..." are refused by models of objects, and objects with a string under `w`
 * by models of arrays.
 */
export type Token = string | readonly string[] | Features;
export interface Features {
  readonly [name: string]: Value;
}
export type Value = string | number | boolean | Features | readonly Value[];
export interface Labelling {
  labels: string[];
  score: number;
}
export interface Options {
  /** The runtime: where structsvm.wasm is, its bytes, or the compiled module. Default: beside structsvm.mjs. */
  wasm?: URL | string | ArrayBuffer | ArrayBufferView<ArrayBuffer> | WebAssembly.Module;
}

/** Labels sequences by a model. */
export class Tagger {
  private constructor();
  readonly labels: string[];
  /** Strings of each token; 0: tokens have attributes. */
  readonly nColumns: number;
  /** The best labels of a sequence. */
  predict(tokens: readonly Token[]): string[];
  /** The k best labellings, best first; fewer where the sequence has fewer. */
  kbest(tokens: readonly Token[], k: number): Labelling[];
  /** A row per token of the probability of each of `labels`. Throws if the model's scores are margins. */
  probability(tokens: readonly Token[]): Float32Array[];
}

export interface Ranked {
  label: string;
  score: number;
}

/** A text, or a row of numbers, as the model was trained on. */
export type Document = string | readonly number[] | Float32Array | Float64Array;

/** Labels texts, or rows of numbers, by a model. */
export class Classifier {
  private constructor();
  readonly labels: string[];
  /** Numbers of each row, of a model of rows of numbers; 0: texts. */
  readonly nNumbers: number;
  /** The best label of each text, or row. */
  predict(documents: readonly Document[]): string[];
  /** The k labels of highest score of a text, or row, best first; fewer where there are fewer. */
  kbest(document: Document, k: number): Ranked[];
  /** A row per document of the probability of each of `labels`. Throws if the model has no probabilities. */
  probability(documents: readonly Document[]): Float32Array[];
}

/** A word: its form, a pair of form and tag, or columns of CoNLL-U. */
export type Word =
  | string
  | readonly [form: string, tag: string]
  | { readonly form: string; readonly lemma?: string; readonly upos?: string; readonly xpos?: string; readonly feats?: string };
export interface Arc {
  /** 0: the root, k: the k-th word. */
  head: number;
  label: string;
}
export interface Tree {
  arcs: Arc[];
  score: number;
}

/** Finds dependency trees by a model. */
export class Parser {
  private constructor();
  readonly labels: string[];
  /** The head and the label of each word. */
  predict(words: readonly Word[]): Arc[];
  /** The k best trees, best first; fewer where there are fewer. */
  kbest(words: readonly Word[], k: number): Tree[];
  /** A row per word of the probability of each head, the root's first. Throws if the model has no probabilities. */
  probability(words: readonly Word[]): Float32Array[];
}

/**
 * Open the bytes of a model.bin: a Tagger for a model of sequences or segments, a Classifier for one of texts or rows, a
 * Parser for one of trees. Throws if they are no complete, sound model.
 */
export function load<Model extends Tagger | Classifier | Parser = Tagger>(
  model: ArrayBuffer | ArrayBufferView,
  options?: Options,
): Promise<Model>;
