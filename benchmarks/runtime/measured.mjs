// How fast a model labels sentences, in Node and in browsers.
import { load } from "./structsvm.mjs";

// As `repeat_for` of measure.py: code is compiled anew while it runs, so the first runs are slower.
const FEWEST_RUNS = 3;
const MOST_RUNS = 200;
const LEAST = 1500; // milliseconds of all runs

/** Labels, milliseconds of a clock to open the model and label the first sentence, and tokens per second. */
export async function measured(model, X, clock) {
  const begin = clock();
  const tagger = await load(model);
  tagger.predict(X[0]);
  const found = { load: clock() - begin };
  const n = X.reduce((sum, x) => sum + x.length, 0);
  let [best, all, labels] = [Infinity, 0, []];
  for (let run = 0; run < MOST_RUNS && (run < FEWEST_RUNS || all < LEAST); run++) {
    const before = performance.now();
    labels = X.map((x) => tagger.predict(x));
    const taken = performance.now() - before;
    best = Math.min(best, taken);
    all += taken;
  }
  return { ...found, speed: (1e3 * n) / best, labels: labels.flat() };
}
