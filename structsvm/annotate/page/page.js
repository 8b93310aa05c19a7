// The labelling page. Texts, labels and messages are set as text alone, never as markup.
"use strict";

const KEYS = [..."123456789", ..."qertyiopdfghjklzxcvbm"];
const SURE = 0.9;
const LIKELY = 0.6;
const ROWS = 50;
const RUN = 200;      // words that are laid out together: of a long text, a key changes one such run
const EXPORTS = { jsonl: "JSON lines", conll: "CoNLL", conllu: "CoNLL-U", model: "Model" };
const token = new URLSearchParams(location.search).get("token") || "";
const page = String(Math.random()).slice(2);
const $ = (id) => document.getElementById(id);

let state = null;
let item = null;
let spans = [];       // {start, stop, label, sure, wrong, given}: sure is null for what the annotator has marked, or called wrong
let cursor = 0;       // the word that keys act on
let anchor = 0;       // the other end of the selection
let typed = null;     // the span that the last key has made
let choice = null;    // the label of the whole text
let denied = [];      // labels that it does not have
let offset = 0;
let pending = 0;
let queue = Promise.resolve();
const words = [];     // an element per word

// ---- talking to the server ---------------------------------------------------------------------

const GONE = "The server does not answer. Your last saved answer is on disk; start it again and reload.";

async function reach(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...options.headers };
  return fetch(`api/${path}`, { ...options, headers }).catch(() => { throw new Error(GONE); });
}

async function ask(path, body) {
  const options = {};
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await reach(path, options);
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error || `The server failed: ${response.status} ${response.statusText}`);
  return answer;
}

// One request after the other; what fails is shown, and the page stays as it is. An answer is for the text that is seen:
// with `alone` the action is left out while another one is under way.
function attempt(action, alone = false) {
  if (alone && pending) return;
  pending += 1;
  queue = queue.then(async () => {
    try {
      await action();
      $("alert").hidden = true;
    } catch (error) {
      $("alert").textContent = error.message;
      $("alert").hidden = false;
    } finally {
      pending -= 1;
    }
  });
}

function say(text) { $("said").textContent = text.slice(0, 300); }

// ---- building elements -------------------------------------------------------------------------

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

function drawing(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const percent = (p) => `${Math.floor(100 * p)} %`;
const isSequence = () => state.task === "sequence";
const hue = (label) => `h${Math.max(0, state.labels.indexOf(label)) % 10}`;

// ---- the state of the work ---------------------------------------------------------------------

function showState() {
  $("progress").value = (state.total - state.left) / state.total;
  const learnt = state.ready ? `model of ${state.trained} answers` : "no suggestions yet";
  const skipped = state.skipped ? ` · ${state.skipped} skipped` : "";
  $("counts").textContent = `${state.answered} of ${state.total} labelled · ${state.left} left${skipped} · ${learnt}`;
  $("notes").replaceChildren(...state.notes.map((note) => element("p", "", note)));
  $("why").disabled = !state.ready || !item;
  document.body.classList.toggle("single", !isSequence());
  $("part").hidden = !isSequence();
  showLabels();
}

function showLabels() {
  const ranked = new Map((item && item.suggestion && item.suggestion.ranked) || []);
  const made = state.labels.map((label, k) => {
    const isDenied = denied.includes(label);
    const button = element("button", `label ${hue(label)}${isDenied ? " denied" : ""}`);
    button.type = "button";
    button.append(element("span", "name", isDenied ? `not ${label}` : label));
    if (ranked.has(label)) button.append(element("span", "sure", percent(ranked.get(label))));
    if (KEYS[k]) button.append(element("kbd", "", KEYS[k]));
    button.addEventListener("click", () => useLabel(label));
    if (!isSequence()) {
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(label === choice));
    }
    return button;
  });
  $("labels").replaceChildren(...made);
  if (isSequence()) $("labels").removeAttribute("role");
  else {
    $("labels").setAttribute("role", "radiogroup");
    $("labels").setAttribute("aria-labelledby", "labels-title");
  }
}

// ---- the text ----------------------------------------------------------------------------------

function showItem(found) {
  item = found;
  words.length = 0;
  spans = [];
  choice = null;
  denied = [];
  typed = null;
  $("reasons").hidden = true;
  $("text").replaceChildren();
  $("other").hidden = true;
  for (const id of ["confirm", "part", "wrong", "skip"]) $(id).disabled = !item;
  if (!item) {
    $("origin").textContent = "";
    $("text").removeAttribute("role");
    $("text").textContent = "All texts are labelled. Export the answers, or open one from the list.";
    say("All texts are labelled.");
    return;
  }
  if (isSequence()) showWords();
  else showWhole();
  const source = item.answer ? "your answer" : item.known ? "from the file" : item.suggestion ? "suggested by the model" : "not labelled";
  $("origin").textContent = `Text ${item.id + 1}, ${source}`;
  say(`Text ${item.id + 1}: ${item.text}`);
}

function showWhole() {
  $("text").removeAttribute("role");
  $("text").textContent = item.text;
  if (item.other !== null) {
    $("other").textContent = item.other;
    $("other").hidden = false;
  }
  const given = item.answer || item.known || item.suggestion;
  choice = (given && given.label) || null;
  denied = (given && given.wrong) || [];
  if (choice === null && given === item.known && item.suggestion && !denied.includes(item.suggestion.label)) choice = item.suggestion.label;
  $("work").focus();
}

function showWords() {
  const text = $("text");
  text.setAttribute("role", "listbox");
  text.setAttribute("aria-label", "Words");
  text.setAttribute("aria-multiselectable", "true");
  const runs = [];
  let end = 0;
  item.words.forEach(([start, stop], k) => {
    if (k % RUN === 0) {
      runs.push(element("div", "run"));
      runs.at(-1).setAttribute("role", "presentation");
    }
    if (start > end) runs.at(-1).append(" ");
    const word = element("span", "word", item.text.slice(...units(start, stop)));
    word.setAttribute("role", "option");
    word.tabIndex = -1;
    word.dataset.word = k;
    words.push(word);
    runs.at(-1).append(word);
    end = stop;
  });
  text.replaceChildren(...runs);
  text.classList.toggle("long", runs.length > 1);
  const own = item.answer || item.known || item.suggestion || { spans: [] };
  const isMarked = own === item.answer;
  const given = own === item.known;
  spans = own.spans.map(([start, stop, label, sure = 1]) => ({ start, stop, label, sure: isMarked ? null : sure, given }));
  for (const [start, stop, label] of own.wrong || []) spans.push({ start, stop, label, sure: null, wrong: true });
  if (given && !own.complete && item.suggestion) {
    for (const [start, stop, label, sure = 1] of item.suggestion.spans) {
      if (spans.every((span) => stop <= span.start || span.stop <= start)) spans.push({ start, stop, label, sure, given: false });
    }
  }
  cursor = anchor = 0;
  paint(0, words.length);
  moveTo(0, false);
}

// The server counts characters, JavaScript counts halves of those beyond the basic plane.
let counted = { text: null, at: null };
function units(start, stop) {
  if (counted.text !== item.text) {
    counted = { text: item.text, at: null };
    if (/[\ud800-\udbff]/.test(item.text)) {
      counted.at = [0];
      for (const character of item.text) counted.at.push(counted.at.at(-1) + character.length);
    }
  }
  return counted.at ? [counted.at[start], counted.at[stop]] : [start, stop];
}

// Show words as their spans are. Confidence is border, pattern, and words in the chip and for screen readers.
function paint(from, to) {
  const own = new Array(to - from);
  for (const span of spans) {
    for (let k = Math.max(span.start, from); k < Math.min(span.stop, to); k++) own[k - from] = span;
  }
  for (let k = from; k < to; k++) {
    const word = words[k];
    const span = own[k - from];
    const isChosen = k >= Math.min(cursor, anchor) && k <= Math.max(cursor, anchor);
    const names = ["word"];
    let name = word.textContent;
    if (isChosen) names.push("chosen");
    if (span) {
      const sure = span.sure === null || span.sure >= SURE ? "" : span.sure >= LIKELY ? "likely" : "doubtful";
      names.push("in", hue(span.label));
      if (span.wrong) names.push("denied");
      if (sure) names.push(sure);
      if (k === span.start) names.push("first");
      if (k === span.stop - 1) names.push("last");
      const confidence = span.sure === null || span.given ? "" : ` ${percent(span.sure)}${sure === "doubtful" ? " ?" : ""}`;
      const label = span.wrong ? `not ${span.label}` : span.label;
      word.dataset.chip = label + confidence;
      const source = span.given ? "from the file" : `suggested, ${percent(span.sure)}`;
      name += `, ${label}${span.sure === null ? "" : `, ${source}`}`;
    }
    word.className = names.join(" ");
    word.setAttribute("aria-label", name);
    word.setAttribute("aria-selected", String(isChosen));
  }
}

function moveTo(k, extend) {
  if (!words.length) return;
  const before = [cursor, anchor];
  cursor = Math.min(Math.max(k, 0), words.length - 1);
  if (!extend) anchor = cursor;
  words[before[0]].tabIndex = -1;
  words[cursor].tabIndex = 0;
  paint(Math.min(...before, cursor, anchor), Math.max(...before, cursor, anchor) + 1);
  words[cursor].focus();
}

const spanAt = (k) => spans.find((span) => span.start <= k && k < span.stop);

// Mark the selection. The same key on the next word goes on with the span, unless `isNew`.
function mark(label, isNew) {
  let start = Math.min(cursor, anchor);
  const stop = Math.max(cursor, anchor) + 1;
  const goesOn = !isNew && cursor === anchor && typed && spans.includes(typed) && typed.stop === start && typed.label === label;
  if (goesOn) start = typed.start;
  const touched = spans.filter((span) => span.start < stop && start < span.stop);
  spans = spans.filter((span) => !touched.includes(span));
  typed = { start, stop, label, sure: null };
  spans.push(typed);
  paint(Math.min(start, ...touched.map((span) => span.start)), Math.max(stop, ...touched.map((span) => span.stop)));
  say(`${words.slice(start, stop).map((word) => word.textContent).join(" ").slice(0, 200)}: ${label}`);
  moveTo(stop, false);
}

function unmark() {
  const first = Math.min(cursor, anchor);
  const last = Math.max(cursor, anchor);
  const gone = spans.filter((span) => span.start <= last && first < span.stop);
  spans = spans.filter((span) => !gone.includes(span));
  typed = null;
  for (const span of gone) paint(span.start, span.stop);
  if (gone.length) say("no label");
}

// What the model has suggested for a span is what the annotator says too.
function approve() {
  const span = spanAt(cursor);
  if (!span) return;
  Object.assign(span, { sure: null, wrong: false });
  paint(span.start, span.stop);
  say(`${span.label}: marked`);
}

// The label that is shown is wrong, and the right one is not said.
function deny() {
  if (!item) return;
  const span = isSequence() ? spanAt(cursor) : null;
  const label = span ? span.label : choice;
  if (label === null || (isSequence() && !span)) return;
  if (span) {
    Object.assign(span, { sure: null, wrong: true });
    typed = null;
    paint(span.start, span.stop);
    moveTo(span.stop, false);
  } else {
    denied = [...denied, label];
    choice = null;
    showLabels();
  }
  say(`not ${label}`);
}

function useLabel(label, isNew = false) {
  if (!item) return;
  if (isSequence()) {
    mark(label, isNew);
    return;
  }
  choice = label;
  denied = denied.filter((other) => other !== label);
  showLabels();
  say(label);
}

// ---- actions -----------------------------------------------------------------------------------

function take(found) {
  state = found.state;
  showItem(found.item);
  showState();
  refresh();
}

async function save(isWhole) {
  if (!item) return;
  let answer;
  if (isSequence()) {
    const kept = isWhole ? spans : spans.filter((span) => span.sure === null);
    const places = (isWrong) => kept.filter((span) => !!span.wrong === isWrong).map((span) => [span.start, span.stop, span.label]);
    answer = { spans: places(false), wrong: places(true), complete: isWhole };
  } else {
    if (choice === null && !denied.length) throw new Error("Choose a label first.");
    answer = choice === null ? { wrong: denied } : { label: choice };
  }
  take(await ask(`answers?page=${page}`, { item: item.id, answer }));
}

async function skip() { if (item) take(await ask(`answers?page=${page}`, { item: item.id, answer: null })); }

async function undo() {
  const found = await ask(`undo?page=${page}`, {});
  if (!found.undone) throw new Error("Nothing is there to undo.");
  if (found.item) {
    take(found);
    return;
  }
  state = found.state;
  showState();
  throw new Error("Your last answer is taken back: it was for a text that is gone.");
}

async function why() {
  if (!$("reasons").hidden) {
    $("reasons").hidden = true;
    return;
  }
  const rows = (await ask(`why/${item.id}`)).map((reason) => {
    const row = element("tr");
    row.append(element("td", "", reason.value.toFixed(3)), element("td", "", reason.feature), element("td", "", reason.label));
    return row;
  });
  $("reasons").querySelector("tbody").replaceChildren(...rows);
  $("reasons").hidden = false;
  say(`${rows.length} reasons are below the text`);
}

function addLabel(event) {
  event.preventDefault();
  const label = $("label-name").value.trim();
  if (!label) return;
  attempt(async () => {
    state = await ask("labels", { label });
    $("label-name").value = "";
    showState();
    say(`New label ${label}`);
    if (words.length) words[cursor].focus();
  });
}

async function download(kind) {
  const response = await reach(`export/${kind}`);
  if (!response.ok) throw new Error((await response.json()).error);
  const link = element("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = /filename="(.*)"/.exec(response.headers.get("Content-Disposition"))[1];
  link.click();
  URL.revokeObjectURL(link.href);
  say(`${link.download} is saved. ${response.headers.get("X-Left-Out") || ""}`);
  $("agreement").textContent = response.headers.get("X-Left-Out") || "";
}

// ---- what stands beside the text ---------------------------------------------------------------

async function refresh() {
  try {
    showCurve(await ask("curve"));
    const found = await ask("agreement");
    $("agreement").textContent = found.units ? found.text : "";
    if ($("all").open) await showRows();
  } catch (error) {
    $("curve-text").textContent = error.message;
  }
}

function showCurve(points) {
  if (!points.length) return;
  const last = points.at(-1);
  $("curve-text").textContent = `After ${last.n} answers ${percent(last.score)} right, standard error ${(100 * last.error).toFixed(1)}, `
    + `on ${last.held_out} held-out answers`;
  const most = last.n;
  const x = (n) => 34 + 256 * (n / most);
  const y = (score) => 10 + 120 * (1 - Math.min(Math.max(score, 0), 1));
  const picture = drawing("svg", { viewBox: "0 0 300 155", role: "img", "aria-label": $("curve-text").textContent });
  for (const score of [0, 0.5, 1]) {
    picture.append(drawing("line", { x1: 34, x2: 292, y1: y(score), y2: y(score), stroke: "currentColor", opacity: 0.2 }));
    const name = drawing("text", { x: 28, y: y(score) + 4, "text-anchor": "end" });
    name.textContent = 100 * score;
    picture.append(name);
  }
  const line = points.map((point) => `${x(point.n)},${y(point.score)}`).join(" ");
  picture.append(drawing("polyline", { points: line, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
  for (const { n, score, error } of points) {
    const bar = { x1: x(n), x2: x(n), y1: y(score - error), y2: y(score + error), stroke: "currentColor", "stroke-width": 1.5 };
    picture.append(drawing("line", bar), drawing("circle", { cx: x(n), cy: y(score), r: 3, fill: "currentColor" }));
  }
  const end = drawing("text", { x: 292, y: 150, "text-anchor": "end" });
  end.textContent = `${most} answers`;
  picture.append(end);
  $("curve").replaceChildren(picture);
}

async function showRows() {
  const found = await ask(`items?offset=${offset}&limit=${ROWS}`);
  $("rows").replaceChildren(...found.items.map((row) => {
    const entry = element("li");
    const mark = element("span", "", row.answered ? "✓ " : row.skipped ? "– " : "· ");
    mark.setAttribute("aria-hidden", "true");
    const button = element("button");
    button.append(mark, `${row.id + 1} ${row.text}`, element("span", "unseen", row.answered ? ", labelled" : row.skipped ? ", skipped" : ", open"));
    button.type = "button";
    button.dir = "auto";
    button.addEventListener("click", () => attempt(async () => {
      showItem(await ask(`items/${row.id}`));
      showState();
    }));
    entry.append(button);
    return entry;
  }));
  $("back").disabled = offset === 0;
  $("on").disabled = offset + ROWS >= found.total;
}

// Keys and what they do: with spans of words, with one label for a text, or with both.
const KEY_TABLE = [
  ["1 to 9, then letters", "the label that shows it", "both"],
  ["← →", "another word", "spans"],
  ["Page Up, Page Down", "fifty words back or on", "spans"],
  ["Home, End", "the first or the last word", "spans"],
  ["Shift with these", "select several words", "spans"],
  ["Alt label", "begin a span beside one of the same label", "spans"],
  ["Backspace", "remove the label", "spans"],
  ["Space", "mark a suggested span as right", "spans"],
  ["↑ ↓", "another label", "one label"],
  ["Enter", "confirm all that is shown", "both"],
  ["Shift Enter", "save only what you marked; the rest stays open", "spans"],
  ["-", "not this label: the right one stays open", "both"],
  ["u", "undo the last answer", "both"],
  ["s", "skip", "both"],
  ["w", "why the model says so", "both"],
  ["n", "new label", "both"],
  ["?", "these keys", "both"],
];

function showKeys() {
  const rows = KEY_TABLE.filter(([, , of]) => of === "both" || (of === "spans") === isSequence());
  $("keys").querySelector("dl").replaceChildren(...rows.flatMap(([key, meaning]) => {
    const term = element("dt");
    term.append(element("kbd", "", key));
    return [term, element("dd", "", meaning)];
  }));
  $("keys").showModal();
}

// ---- keys and mouse ----------------------------------------------------------------------------

function arrow(event) {
  const isVertical = event.key === "ArrowUp" || event.key === "ArrowDown";
  if (!isSequence()) {
    if (!isVertical || !state.labels.length) return false;
    const n = state.labels.length;
    const step = event.key === "ArrowDown" ? 1 : -1;
    useLabel(state.labels[choice === null ? (step > 0 ? 0 : n - 1) : (state.labels.indexOf(choice) + step + n) % n]);
    return true;
  }
  if (isVertical) return false;
  const isMirrored = getComputedStyle($("text")).direction === "rtl";
  const step = (event.key === "ArrowRight") === isMirrored ? -1 : 1;
  typed = null;
  moveTo(cursor + step, event.shiftKey);
  return true;
}

const LEAPS = { Home: -Infinity, End: Infinity, PageUp: -50, PageDown: 50 };

function leap(event) {
  typed = null;
  moveTo(cursor + LEAPS[event.key], event.shiftKey);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || $("keys").open || event.isComposing) return;
  const { target, key } = event;
  if (target.matches("input")) {
    if (key === "Escape") (words[cursor] || $("work")).focus();
    return;
  }
  const isControl = target.matches("button, summary, a");
  if (isControl && (key === "Enter" || key === " ")) return;
  const plain = { u: undo, s: skip, w: why };
  const code = /^Digit([1-9])$/.exec(event.code);
  const name = event.altKey ? (code ? code[1] : event.code.replace(/^Key/, "").toLowerCase()) : key.toLowerCase();
  let done = true;
  if (key === "Enter") attempt(() => save(!event.shiftKey), true);
  else if (key.startsWith("Arrow")) done = item !== null && arrow(event);
  else if (key in LEAPS && item && isSequence()) leap(event);
  else if (key === "?") showKeys();
  else if (name === "n") $("label-name").focus();
  else if (plain[name]) attempt(plain[name], name === "s");
  else if (key === " " && item && isSequence()) approve();
  else if (key === "-") deny();
  else if ((key === "Backspace" || key === "Delete") && item && isSequence()) unmark();
  else if (KEYS.includes(name) && state.labels[KEYS.indexOf(name)] !== undefined) {
    useLabel(state.labels[KEYS.indexOf(name)], event.altKey);
  } else done = false;
  if (done) event.preventDefault();
}

function pointed(event) {
  const word = event.target.closest(".word");
  if (!word) return;
  event.preventDefault();
  const extend = event.shiftKey || (event.type === "pointermove" && event.buttons === 1);
  if (event.type === "pointermove" && !extend) return;
  typed = null;
  const k = Number(word.dataset.word);
  if (k !== cursor || !extend) moveTo(k, extend);
}

function begin() {
  document.addEventListener("keydown", (event) => state && pressed(event));
  $("text").addEventListener("pointerdown", pointed);
  $("text").addEventListener("pointermove", (event) => event.pointerType === "mouse" && pointed(event));
  $("confirm").addEventListener("click", () => attempt(() => save(true), true));
  $("part").addEventListener("click", () => attempt(() => save(false), true));
  $("wrong").addEventListener("click", deny);
  $("undo").addEventListener("click", () => attempt(undo));
  $("skip").addEventListener("click", () => attempt(skip, true));
  $("why").addEventListener("click", () => attempt(why));
  $("help").addEventListener("click", () => state && showKeys());
  $("new-label").addEventListener("submit", addLabel);
  $("all").addEventListener("toggle", () => attempt(showRows));
  $("back").addEventListener("click", () => attempt(() => { offset = Math.max(0, offset - ROWS); return showRows(); }));
  $("on").addEventListener("click", () => attempt(() => { offset += ROWS; return showRows(); }));
  attempt(async () => {
    const found = await ask(`next?page=${page}`);
    state = found.state;
    document.title = `${state.name} · structsvm`;
    document.querySelector("h1").textContent = state.by === "annotator" ? state.name : `${state.name} · ${state.by}`;
    $("exports").replaceChildren(...Object.entries(EXPORTS).filter(([kind]) => isSequence() || !kind.startsWith("conll")).map(([kind, name]) => {
      const button = element("button", "", name);
      button.type = "button";
      button.dataset.kind = kind;
      button.addEventListener("click", () => attempt(() => download(kind)));
      return button;
    }));
    take(found);
  });
}

begin();
