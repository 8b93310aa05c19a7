// Labels the sentences of a file: node tag.mjs MODEL FILE; prints JSON as tag.c does.
import { readFileSync } from "node:fs";

import { measured } from "./measured.mjs";

const X = JSON.parse(readFileSync(`${process.argv[3]}.json`, "utf-8"));
const cpu = () => process.cpuUsage().user / 1e3 + process.cpuUsage().system / 1e3;
const memory = () => process.resourceUsage().maxRSS / 1e3;
let [before, resident] = [memory(), 0];
// The clock is read before the model is opened and after its first sentence.
const clock = () => ((resident = memory() - before), cpu());
console.log(JSON.stringify({ ...(await measured(readFileSync(process.argv[2]), X, clock)), resident }));
