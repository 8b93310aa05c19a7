// Labels words by an exported model, in its folder: node tag.mjs San Diego is warm
import { readFile } from "node:fs/promises";

import { load } from "./structsvm.mjs";

const tagger = await load(await readFile(new URL("model.bin", import.meta.url)));
const words = process.argv.slice(2);
const labels = tagger.predict(words);
words.forEach((word, t) => console.log(`${word}\t${labels[t]}`));
