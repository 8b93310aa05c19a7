/** A token: a string, its columns, its attributes, or an object of features, as the model was trained on. */
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

/** Open the bytes of a model.bin. Throws if they are no complete, sound model. */
export function load(model: ArrayBuffer | ArrayBufferView, options?: Options): Promise<Tagger>;
