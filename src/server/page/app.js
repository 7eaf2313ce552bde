// The script of the page: a board to play on, with the value of every move. The URL holds the whole state.
//
// The server renders the parts below the board (line, table of moves, histogram) and parses and formats games.

import { OPENING, STONES_MAX, moves, ownPits, pitName, pitOf, read, replay, stonesOf, written } from "./game.js";

const LEVELS = ["fair", "good", "strong", "expert", "perfect"];
const PRESETS = [
  ["Opening", OPENING],
  ["Six against six", "0-0-1-2-1-2-1-0-2-1-1-1-18-18-S"],
  ["A lap", "0-0-0-0-0-14-1-1-0-0-0-0-16-16-S"],
  ["Feed or lose", "0-0-0-1-2-3-0-0-0-0-0-0-21-21-S"],
  ["Round and round", "1-0-0-0-0-0-1-0-0-0-0-0-23-23-S"],
];
/** The ids of the parts that the server renders. */
const PARTS = ["line", "moves", "histogram"];
/** The most cached answers; the oldest is dropped first. */
const ANSWERS_MAX = 300;
/** The most moves in an address: the server accepts 4 KiB, including the position. */
const LETTERS_MAX = 3900;
/** The pause between moves when the computer plays both sides, in milliseconds. */
const PAUSE = 500;

const state = { start: read(OPENING), letters: "", at: 0, hidden: false, computer: "", level: "good", editing: false, adding: true };
const answers = new Map();
let databases = [];
let asked = 0;
let notice = "";
let lastChange = "";

// ---- address

function address() {
  const query = new URLSearchParams({ pos: written(state.start) });
  if (state.letters) query.set("moves", state.letters);
  if (state.at < state.letters.length) query.set("at", state.at);
  if (state.hidden) query.set("hide", "1");
  if (state.computer) query.set("computer", state.computer);
  if (state.level !== "good") query.set("level", state.level);
  if (state.editing) query.set("edit", "1");
  return `?${query}`;
}

function fromAddress() {
  const query = new URLSearchParams(location.search);
  try {
    state.start = read(query.get("pos") ?? OPENING);
    state.letters = query.get("moves") ?? "";
    replay(state.start, state.letters);
  } catch (error) {
    notice = `invalid position in the URL: ${error.message}.`;
    state.start = read(OPENING);
    state.letters = "";
  }
  const at = Number(query.get("at") ?? state.letters.length);
  state.at = Number.isInteger(at) ? Math.min(Math.max(at, 0), state.letters.length) : state.letters.length;
  state.hidden = query.get("hide") === "1";
  state.computer = ["S", "N", "both"].includes(query.get("computer")) ? query.get("computer") : "";
  state.level = LEVELS.includes(query.get("level")) ? query.get("level") : "good";
  state.editing = query.get("edit") === "1";
}

// ---- requests

/** Returns a cached answer, or requests one and caches it unless the server was busy. */
async function remembered(key, find) {
  if (answers.has(key)) return answers.get(key);
  const answer = await find();
  if (answer.code !== "busy") {
    if (answers.size >= ANSWERS_MAX) answers.delete(answers.keys().next().value);
    answers.set(key, answer);
  }
  return answer;
}

const posted = (path, body) => fetch(path, { method: "POST", body });

/** Requests the values of a position, or an error. In a batch, browsers do not report unknown positions as failures. */
const probed = (position) => remembered(`probe ${written(position)}`, async () => {
  const response = await posted("v1/probe", JSON.stringify({ positions: [written(position)] }));
  const found = await response.json();
  return found.answers ? (found.answers[0].error ?? found.answers[0]) : found;
});

const partsOf = (page) => Object.fromEntries(PARTS.map((id) => [id, page.getElementById(id)]));

/** Requests the rendered parts for a position. */
const rendered = (position) => remembered(`page ${written(position)}`, async () => {
  const response = await fetch(`./?pos=${written(position)}`);
  if (!response.ok) return { code: "busy" };
  const parts = partsOf(new DOMParser().parseFromString(await response.text(), "text/html"));
  // A part timed out on the server; a later request may succeed.
  return response.headers.get("cache-control") === "no-store" ? { ...parts, code: "busy" } : parts;
});

// ---- moves through the game

const game = () => replay(state.start, state.letters.slice(0, state.at));
const now = () => game().positions.at(-1);

function play(pit, kind = "") {
  const { positions, outcome } = game();
  const move = moves(positions.at(-1)).find((one) => one.pit === pit);
  if (outcome || !move) {
    notice = outcome ? "The game is over." : whyNot(positions.at(-1), pit);
    return show();
  }
  return playAll(pitName(pit), kind);
}

/** Plays moves until the game is over. */
function playAll(letters, kind = "") {
  let played = state.letters.slice(0, state.at);
  for (const letter of letters) {
    if (replay(state.start, played).outcome) break;
    played += letter;
  }
  // Repeating the same moves keeps those after them.
  if (!state.letters.startsWith(played)) state.letters = played;
  state.at = played.length;
  changed(kind);
}

function whyNot(position, pit) {
  if (!ownPits(position.side).includes(pit)) return `${pitName(pit)} is not a pit of the player to move.`;
  if (position.pits[pit] === 0) return `${pitName(pit)} is empty.`;
  return `${pitName(pit)} would leave the opponent without stones, and another move does not.`;
}

function go(at) {
  state.at = Math.min(Math.max(at, 0), state.letters.length);
  changed("go");
}

function begin(position, kind = "") {
  state.start = position;
  state.letters = "";
  state.at = 0;
  changed(kind);
}

async function best() {
  const answer = await probed(now());
  const pit = answer.moves?.[0]?.pit;
  if (pit) return play(pitOf(pit));
  notice = outcome ? "" : "The best move is not known.";
  banner();
}

async function answerOfComputer(ticket) {
  if (state.computer === "both") await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
  if (ticket !== asked) return;
  const all = moves(position);
  if (answer.code === "unknown-position") {
    play(all[Math.floor(Math.random() * all.length)].pit, "reply");
    notice = "No database has this position, so the computer chose a move at random.";
    return banner();
  }
  const seed = Math.floor(Math.random() * 2 ** 32);
  const response = await fetch(`v1/choose?pos=${written(position)}&level=${state.level}&seed=${seed}`);
  const chosen = await response.json();
  if (ticket !== asked) return;
  if (chosen.move) return play(pitOf(chosen.move.pit), "reply");
  notice = `${chosen.message ?? "The computer cannot move"}.`;
  banner();
}

/** Loads the game in the text field. */
async function importGame() {
  const response = await posted("v1/transcript", byId("ogn").value);
  const found = await response.json();
  const letters = found.moves?.slice(0, found.over?.after) ?? "";
  if (!response.ok) notice = `Invalid game: ${found.message}.`;
  else if (letters.length > LETTERS_MAX) notice = `That game has more than ${LETTERS_MAX} moves.`;
  else {
    Object.assign(state, { start: read(found.start), letters, at: letters.length, computer: "", editing: false });
    changed();
    if (letters.length < found.moves.length) notice = `The game was over after move ${letters.length}; later moves were ignored.`;
  }
  banner();
}

/** Writes this game into the text field. */
async function exportGame() {
  const response = await fetch(`v1/transcript?pos=${written(state.start)}&moves=${state.letters}`);
  if (response.ok) byId("ogn").value = await response.text();
  else notice = `The server cannot export the game: ${(await response.json()).message}.`;
  banner();
}

/** Distributes stones randomly over the pits; the stores share the rest. */
function random(stones) {
  const pits = Array(12).fill(0);
  for (let stone = 0; stone < stones; stone += 1) pits[Math.floor(Math.random() * 12)] += 1;
  const left = STONES_MAX - stones;
  return { pits, stores: [Math.ceil(left / 2), Math.floor(left / 2)], side: "S" };
}

function edit(place, more) {
  const position = now();
  const held = place < 12 ? position.pits : position.stores;
  const at = place < 12 ? place : place - 12;
  const all = stonesOf(position) + position.stores[0] + position.stores[1];
  if (more > 0 && all >= STONES_MAX) notice = `There are already ${STONES_MAX} stones: remove some first.`;
  else if (held[at] + more < 0) notice = "There is no stone to remove.";
  else {
    const next = { ...position, pits: [...position.pits], stores: [...position.stores] };
    (place < 12 ? next.pits : next.stores)[at] += more;
    return begin(next, "edit");
  }
  show();
}

// ---- the page

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);
const signed = (score) => (score > 0 ? `+${score}` : score < 0 ? `−${-score}` : "0");
const text = (value) => (typeof value === "number" ? signed(value) : `${signed(value.lo)} to ${signed(value.hi)}`);
/** Formats the value of a move, with its category unless that is unknown. */
const worth = (move) => (move.category === "unknown" ? text(move.value) : `${text(move.value)} ${move.category}`);
const count = (stones) => (stones === 1 ? "1 stone" : `${stones} stones`);
const sideName = (side) => (side === "S" ? "South" : "North");

let position = now();
let outcome = null;
let answer = null;

/** Builds the fixed elements of the page; those that change have ids. */
function build() {
  const button = (label, title, action) => el("button", { type: "button", title, onclick: action }, label);
  const tried = (action) => () => action().catch(noAnswer);
  const option = (value, label, chosen) => el("option", { value, selected: value === chosen }, label);
  const check = (label, id, action) => el("label", {}, el("input", { type: "checkbox", id, onchange: action }), ` ${label}`);
  const stones = databases.filter((one) => one.state === "sound" && one.stones > 0).map((one) => one.stones);
  byId("main").replaceChildren(
    el("div", { class: "board", id: "board" }),
    el("p", { class: "banner", id: "banner", role: "status" }),
    el("div", { class: "controls", id: "controls" },
      button("Start", "To the start (Home)", () => go(0)),
      button("← Back", "Take back (left arrow)", () => go(state.at - 1)),
      button("Forward →", "Forward (right arrow)", () => go(state.at + 1)),
      button("Best", "Play the best move (space)", tried(best)),
      check("Hide values", "hide", (event) => { state.hidden = event.target.checked; changed(); }),
      check("Edit", "edit", (event) => { state.editing = event.target.checked; changed(); }),
    ),
    el("div", { class: "controls", id: "editing" },
      el("label", {}, el("input", { type: "radio", name: "stone", checked: true, onchange: () => { state.adding = true; } }), " Add stones"),
      el("label", {}, el("input", { type: "radio", name: "stone", onchange: () => { state.adding = false; } }), " Remove stones"),
      button("Other side to move", "Let the other side move", () => begin({ ...position, side: position.side === "S" ? "N" : "S" })),
      button("Clear", "Remove all stones", () => begin({ pits: Array(12).fill(0), stores: [0, 0], side: "S" })),
    ),
    el("p", { class: "history", id: "history" }),
    ...PARTS.map((id) => el("div", { id })),
    el("details", { open: true },
      el("summary", {}, "Positions and players"),
      el("div", { class: "controls" },
        el("label", {}, "Preset ", el("select", { id: "preset", onchange: (event) => { if (event.target.value) begin(read(event.target.value)); event.target.value = ""; } },
          option("", "choose"), ...PRESETS.map(([label, value]) => option(value, label)))),
        el("label", {}, "Random of ", el("select", { id: "stones" }, ...stones.map((one) => option(one, count(one), stones.at(-1))))),
        button("Random position", "Random position with this number of stones", () => begin(random(Number(byId("stones").value || 12)))),
      ),
      el("div", { class: "controls" },
        el("label", {}, "Computer plays ", el("select", { id: "computer", onchange: (event) => { state.computer = event.target.value; changed(); } },
          option("", "neither"), option("S", "South"), option("N", "North"), option("both", "both"))),
        el("label", {}, "Level ", el("select", { id: "level", onchange: (event) => { state.level = event.target.value; changed(); } },
          ...LEVELS.map((level) => option(level, level)))),
      ),
      el("form", { class: "controls", onsubmit: (event) => {
        event.preventDefault();
        try { begin(read(byId("pos").value)); } catch (error) { notice = `Invalid position: ${error.message}.`; banner(); }
      } },
        el("label", {}, "Position ", el("input", { id: "pos", size: 34, autocomplete: "off", spellcheck: "false" })),
        el("button", {}, "Set"),
        button("Copy link", "Copy the URL of this page", copy)),
    ),
    el("details", {},
      el("summary", {}, "Import and export"),
      el("label", { for: "ogn" }, "A game: 1. F f 2. B d, F4 f4 B5x2, with tags and comments or without"),
      el("textarea", { id: "ogn", rows: 6, spellcheck: "false" }),
      el("div", { class: "controls" },
        button("Import", "Read the game above", tried(importGame)),
        button("Export", "Write this game above", tried(exportGame)),
      ),
    ),
    el("details", {}, el("summary", {}, "Keys"),
      el("p", {}, "1 to 6 play A to F of the player to move (add a stone while editing, remove one with Shift), ← and → go back and forward, Home to the start, space plays the best move, h hides values, e edits."),
    ),
  );
}

async function copy() {
  try {
    await navigator.clipboard.writeText(location.href);
    notice = "The link is copied.";
  } catch {
    notice = `Copy it from here: ${location.href}`;
  }
  banner();
}

function noAnswer() {
  notice = "The server does not answer.";
  banner();
}

/**
 * Updates the address and the page after a change of state. Successive changes of one kind are one step of the browser
 * history, and so is a move with its reply; otherwise, going back would trigger the reply again.
 */
function changed(kind = "") {
  const isSame = kind === "reply" || (kind && kind === lastChange);
  try {
    history[isSame ? "replaceState" : "pushState"](null, "", address());
  } catch {
    // Some browsers limit the rate. The next update contains all changes.
  }
  lastChange = kind;
  notice = "";
  refresh();
}

async function refresh() {
  const ticket = ++asked;
  byId("main").setAttribute("aria-busy", "true");
  ({ outcome } = game());
  position = now();
  answer = null;
  show();
  try {
    const found = await probed(position);
    if (ticket !== asked) return;
    answer = found;
    show();
    const isShown = !state.hidden && !outcome && found.score !== undefined;
    const parts = isShown ? await rendered(position) : {};
    if (ticket !== asked) return;
    for (const id of PARTS) byId(id).replaceWith(parts[id]?.cloneNode(true) ?? el("div", { id }));
    const isComputers = [position.side, "both"].includes(state.computer) && !outcome && !state.editing && state.at === state.letters.length;
    if (isComputers) await answerOfComputer(ticket);
  } catch {
    if (ticket === asked) noAnswer();
  } finally {
    // Only the last of several requests ends the busy state.
    if (ticket === asked) byId("main").setAttribute("aria-busy", "false");
  }
}

function show() {
  board();
  banner();
  byId("hide").checked = state.hidden;
  byId("edit").checked = state.editing;
  byId("editing").hidden = !state.editing;
  byId("computer").value = state.computer;
  byId("level").value = state.level;
  if (document.activeElement !== byId("pos")) byId("pos").value = written(position);
  // The parts are stale until the server has rendered those of this position.
  for (const id of PARTS) byId(id).classList.add("stale");
  trail();
}

function board() {
  const focused = document.activeElement?.dataset?.place;
  const legal = outcome ? [] : moves(position).map((one) => one.pit);
  const pit = (at) => {
    const known = !state.hidden && !outcome && answer?.moves?.find((one) => pitOf(one.pit) === at);
    const words = [`${pitName(at)}, ${count(position.pits[at])}`];
    if (known) words.push(`${text(known.value)}, ${known.category}${known.best ? ", best" : ""}`);
    return el("button", {
      type: "button", "data-place": at, "aria-label": words.join(", "),
      class: `pit ${known ? `${known.category}${known.best ? " best" : ""}` : ""}`,
      "aria-disabled": !state.editing && !legal.includes(at) ? "true" : undefined,
      onclick: (event) => (state.editing ? edit(at, state.adding && !event.shiftKey ? 1 : -1) : play(at)),
      oncontextmenu: (event) => { if (state.editing) { event.preventDefault(); edit(at, -1); } },
    },
      el("span", { class: "name" }, pitName(at)),
      el("span", { class: "stones" }, String(position.pits[at])),
      el("span", { class: "value" }, known ? worth(known) : ""));
  };
  const store = (side) => {
    const at = side === "S" ? 0 : 1;
    const inside = [el("span", { class: "name" }, sideName(side)), el("span", { class: "stones" }, String(position.stores[at]))];
    const name = `store ${side === "S" ? "south" : "north"}${position.side === side && !outcome ? " moves" : ""}`;
    if (!state.editing) return el("div", { class: name }, ...inside);
    return el("button", {
      type: "button", class: name, "data-place": 12 + at, "aria-label": `${sideName(side)}'s store, ${count(position.stores[at])}`,
      onclick: (event) => edit(12 + at, state.adding && !event.shiftKey ? 1 : -1),
      oncontextmenu: (event) => { event.preventDefault(); edit(12 + at, -1); },
    }, ...inside);
  };
  byId("board").replaceChildren(
    store("N"),
    el("div", { class: "row north" }, ...[11, 10, 9, 8, 7, 6].map(pit)),
    el("div", { class: "row south" }, ...[0, 1, 2, 3, 4, 5].map(pit)),
    store("S"),
  );
  if (focused !== undefined) document.querySelector(`[data-place="${focused}"]`)?.focus();
}

/** Formats the stones of the largest database. */
function reach() {
  const most = databases.filter((one) => one.state === "sound").at(-1);
  return most ? ` (the largest has ${count(most.stones)})` : "";
}

function verdict() {
  const side = sideName(position.side);
  if (outcome) {
    const { why, lead } = outcome;
    return `The game is over: ${why}; ${lead === 0 ? "a draw" : `${lead > 0 ? "South" : "North"} wins by ${Math.abs(lead)}`}.`;
  }
  if (state.hidden || !answer) return `${side} to move.`;
  if (answer.score === undefined) return `${side} to move; ${answer.message}${answer.code === "unknown-position" ? reach() : ""}.`;
  if (typeof answer.score !== "number") return `${side} to move: between ${signed(answer.score.lo)} and ${signed(answer.score.hi)} stones.`;
  if (answer.score === 0) return `${side} to move: the stones on the board are shared.`;
  return `${side} to move ${answer.score > 0 ? "wins" : "loses"} by ${count(Math.abs(answer.score))}.`;
}

function banner() {
  const category = !state.hidden && !outcome && answer?.category;
  byId("banner").className = `banner ${category || ""}`;
  byId("banner").textContent = notice ? `${notice} ${verdict()}` : verdict();
}

/** Shows the moves of the game, each as a button that goes there. */
function trail() {
  const focused = document.activeElement?.dataset?.step;
  byId("history").replaceChildren(...[...state.letters].map((letter, number) =>
    el("button", {
      type: "button", "data-step": number + 1, "aria-label": `after move ${number + 1}, ${letter}`,
      "aria-current": number + 1 === state.at ? "step" : undefined, onclick: () => go(number + 1),
    }, letter)));
  if (focused !== undefined) document.querySelector(`[data-step="${focused}"]`)?.focus();
  const here = byId("history").querySelector("[aria-current]");
  if (here) byId("history").scrollTop = here.offsetTop - byId("history").offsetTop - byId("history").clientHeight / 2;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-moves]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  playAll(link.dataset.moves);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("#pos, #stones, textarea")) return;
  const digit = /^Digit([1-6])$/.exec(event.code) ?? /^Numpad([1-6])$/.exec(event.code);
  // Form controls keep all other keys.
  if (!digit && event.target.closest("select, [type=radio]")) return;
  const place = event.target.dataset?.place;
  if (digit) {
    const pit = ownPits(position.side)[Number(digit[1]) - 1];
    if (state.editing) edit(pit, event.shiftKey ? -1 : 1);
    else play(pit);
  } else if (state.editing && place !== undefined && ["+", "-", "Delete"].includes(event.key)) edit(Number(place), event.key === "+" ? 1 : -1);
  else if (event.key === "ArrowLeft") go(state.at - 1);
  else if (event.key === "ArrowRight") go(state.at + 1);
  else if (event.key === "Home") go(0);
  else if (event.key === " " && !event.target.closest("button, summary, a, input")) best().catch(noAnswer);
  else if (event.key === "h") { state.hidden = !state.hidden; changed(); }
  else if (event.key === "e") { state.editing = !state.editing; changed(); }
  else return;
  event.preventDefault();
});

addEventListener("popstate", () => { notice = ""; lastChange = ""; fromAddress(); refresh(); });

fromAddress();
try {
  ({ databases } = await (await fetch("v1/databases")).json());
} catch {
  notice = "The server does not answer.";
}
// The server has already rendered this address.
const parts = partsOf(document);
if (parts.moves && !notice) answers.set(`page ${written(now())}`, parts);
build();
refresh();
