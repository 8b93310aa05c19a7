// Labels the sentences of a file: node tag.mjs MODEL FILE; prints JSON as tag.c does.
import { readFileSync } from "node:fs";

import { load } from "./structsvm.mjs";

const RUNS = 3;
const X = JSON.parse(readFileSync(`${process.argv[3]}.json`, "utf-8"));
const cpu = () => process.cpuUsage().user / 1e3 + process.cpuUsage().system / 1e3;
const memory = () => process.resourceUsage().maxRSS / 1e3;
const [before, begin] = [memory(), cpu()];
const tagger = await load(readFileSync(process.argv[2]));
tagger.predict(X[0]);
const found = { load: cpu() - begin, resident: memory() - before };
const n = X.reduce((sum, x) => sum + x.length, 0);
let [best, labels] = [Infinity, []];
for (let run = 0; run < RUNS; run++) {
  const start = performance.now();
  labels = X.map((x) => tagger.predict(x));
  best = Math.min(best, performance.now() - start);
}
console.log(JSON.stringify({ ...found, speed: (1e3 * n) / best, labels: labels.flat() }));
