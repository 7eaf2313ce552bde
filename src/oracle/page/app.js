// The page: a board to play on, with what every move is worth. Its address is its whole state.

import { OPENING, STONES_MAX, exported, imported, moves, ownPits, pitName, pitOf, read, replay, stonesOf, written } from "./game.js";

const LEVELS = ["fair", "good", "strong", "expert", "perfect"];
const PRESETS = [
  ["Opening", OPENING],
  ["Six against six", "0-0-1-2-1-2-1-0-2-1-1-1-18-18-S"],
  ["A lap", "0-0-0-0-0-14-1-1-0-0-0-0-16-16-S"],
  ["Feed or lose", "0-0-0-1-2-3-0-0-0-0-0-0-21-21-S"],
  ["Round and round", "1-0-0-0-0-0-1-0-0-0-0-0-23-23-S"],
];
/** Answers that are kept; the oldest goes first. */
const ANSWERS_MAX = 300;

const state = { start: read(OPENING), letters: "", at: 0, hidden: false, computer: "", level: "good", editing: false, adding: true };
const answers = new Map();
let databases = [];
let asked = 0;
let notice = "";

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
    notice = `The address makes no sense: ${error.message}.`;
    state.start = read(OPENING);
    state.letters = "";
  }
  const at = Number(query.get("at") ?? state.letters.length);
  state.at = Number.isInteger(at) ? Math.min(Math.max(at, 0), state.letters.length) : state.letters.length;
  state.hidden = query.get("hide") === "1";
  state.computer = ["S", "N"].includes(query.get("computer")) ? query.get("computer") : "";
  state.level = LEVELS.includes(query.get("level")) ? query.get("level") : "good";
  state.editing = query.get("edit") === "1";
}

// ---- questions

async function ask(path) {
  if (answers.has(path)) return answers.get(path);
  const response = await fetch(path);
  const answer = await response.json();
  if (response.ok || response.status === 404) {
    if (answers.size >= ANSWERS_MAX) answers.delete(answers.keys().next().value);
    answers.set(path, answer);
  }
  return answer;
}

const probed = (position) => ask(`v1/probe?pos=${written(position)}`);

// ---- moves through the game

const game = () => replay(state.start, state.letters.slice(0, state.at));
const now = () => game().positions.at(-1);

function play(pit) {
  const { positions, outcome } = game();
  const move = moves(positions.at(-1)).find((one) => one.pit === pit);
  if (outcome || !move) {
    notice = outcome ? "The game is over." : whyNot(positions.at(-1), pit);
    return show();
  }
  const letter = pitName(pit);
  // The same move again keeps what came after it.
  if (state.letters[state.at] !== letter) state.letters = state.letters.slice(0, state.at) + letter;
  state.at += 1;
  changed();
}

function whyNot(position, pit) {
  if (!ownPits(position.side).includes(pit)) return `${pitName(pit)} is not a pit of the player to move.`;
  if (position.pits[pit] === 0) return `${pitName(pit)} is empty.`;
  return `${pitName(pit)} would leave the opponent without stones, and another move does not.`;
}

function go(at) {
  state.at = Math.min(Math.max(at, 0), state.letters.length);
  // Who looks back does not want the computer to play on.
  if (state.at < state.letters.length) state.computer = "";
  changed();
}

function begin(position) {
  state.start = position;
  state.letters = "";
  state.at = 0;
  changed();
}

async function best() {
  const answer = await probed(now());
  const pit = answer.moves?.[0]?.pit;
  if (pit) play(pitOf(pit));
}

async function answerOfComputer(ticket) {
  const position = now();
  const answer = await ask(`v1/choose?pos=${written(position)}&level=${state.level}&seed=${Math.floor(Math.random() * 2 ** 32)}`);
  if (ticket !== asked || state.editing) return;
  if (answer.move) return play(pitOf(answer.move.pit));
  const all = moves(position);
  if (answer.code === "unknown-position" && all.length > 0) {
    play(all[Math.floor(Math.random() * all.length)].pit);
    notice = "No database knows that position: the computer chose at random.";
    banner();
  } else {
    notice = answer.message ?? "The computer cannot move.";
    banner();
  }
}

/** Stones thrown into pits; what is left is shared between the stores. */
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
  if (more > 0 && all >= STONES_MAX) notice = `There are ${STONES_MAX} stones already: take some away first.`;
  else if (held[at] + more < 0) notice = "There is no stone to take.";
  else {
    const next = { ...position, pits: [...position.pits], stores: [...position.stores] };
    (place < 12 ? next.pits : next.stores)[at] += more;
    return begin(next);
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
const plain = (value) => (typeof value === "number" ? String(value) : `${value.lo} to ${value.hi}`);
/** With bounds that decide nothing, the bounds say all there is. */
const worth = (move) => (move.category === "unknown" ? text(move.value) : `${text(move.value)} ${move.category}`);
const count = (stones) => (stones === 1 ? "1 stone" : `${stones} stones`);
const sideName = (side) => (side === "S" ? "South" : "North");

let position = now();
let outcome = null;
let answer = null;

/** Everything that stays while a game is played; what changes has an id. */
function build() {
  const button = (label, title, action) => el("button", { type: "button", title, onclick: action }, label);
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
      button("Best", "Play the best move (space)", best),
      check("Hide values", "hide", (event) => { state.hidden = event.target.checked; changed(); }),
      check("Edit", "edit", (event) => { state.editing = event.target.checked; state.computer = ""; changed(); }),
    ),
    el("div", { class: "controls", id: "editing" },
      el("label", {}, el("input", { type: "radio", name: "stone", checked: true, onchange: () => { state.adding = true; } }), " Add stones"),
      el("label", {}, el("input", { type: "radio", name: "stone", onchange: () => { state.adding = false; } }), " Take stones"),
      button("Other side to move", "Exchange who is to move", () => begin({ ...position, side: position.side === "S" ? "N" : "S" })),
      button("Clear", "Take all stones away", () => begin({ pits: Array(12).fill(0), stores: [0, 0], side: "S" })),
    ),
    el("p", { class: "history", id: "history" }),
    el("p", { class: "line", id: "line" }),
    el("table", { id: "moves" }),
    el("figure", { id: "histogram" }),
    el("details", { open: true },
      el("summary", {}, "Positions and players"),
      el("div", { class: "controls" },
        el("label", {}, "Preset ", el("select", { onchange: (event) => { if (event.target.value) begin(read(event.target.value)); event.target.value = ""; } },
          option("", "choose"), ...PRESETS.map(([label, value]) => option(value, label)))),
        el("label", {}, "Random of ", el("select", { id: "stones" }, ...stones.map((one) => option(one, count(one), stones.at(-1))))),
        button("Random position", "Throw so many stones", () => begin(random(Number(byId("stones").value || 12)))),
      ),
      el("div", { class: "controls" },
        el("label", {}, "Computer plays ", el("select", { id: "computer", onchange: (event) => { state.computer = event.target.value; changed(); } },
          option("", "nobody"), option("S", "South"), option("N", "North"))),
        el("label", {}, "level ", el("select", { id: "level", onchange: (event) => { state.level = event.target.value; changed(); } },
          ...LEVELS.map((level) => option(level, level)))),
      ),
      el("form", { class: "controls", onsubmit: (event) => {
        event.preventDefault();
        try { begin(read(byId("pos").value)); } catch (error) { notice = `That is no position: ${error.message}.`; show(); }
      } },
        el("label", {}, "Position ", el("input", { id: "pos", size: 34, autocomplete: "off", spellcheck: "false" })),
        el("button", {}, "Set"),
        button("Copy link", "The address of all that is shown", copy)),
    ),
    el("details", {},
      el("summary", {}, "Import and export"),
      el("label", { for: "ogn" }, "A game in open game notation"),
      el("textarea", { id: "ogn", rows: 6, spellcheck: "false" }),
      el("div", { class: "controls" },
        button("Import", "Read the game above", () => {
          try {
            const { start, letters } = imported(byId("ogn").value);
            Object.assign(state, { start, letters, at: letters.length, computer: "" });
            changed();
          } catch (error) { notice = `That is no game: ${error.message}.`; show(); }
        }),
        button("Export", "Write this game above", () => { byId("ogn").value = exported(state.start, state.letters, { Game: "Awari", Site: location.host }); }),
      ),
    ),
    el("details", {}, el("summary", {}, "Keys"),
      el("p", {}, "1 to 6 play A to F of the player to move (add a stone while editing, with Shift take one), ← and → go back and forward, Home to the start, space plays the best move, h hides values, e edits."),
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

/** After any change of state: tells the address, shows, asks. */
function changed() {
  history.pushState(null, "", address());
  notice = "";
  refresh();
}

async function refresh() {
  const ticket = ++asked;
  ({ outcome } = game());
  position = now();
  answer = null;
  show();
  try {
    const found = await probed(position);
    if (ticket !== asked) return;
    answer = found;
    show();
    const isComputers = state.computer === position.side && !outcome && !state.editing && state.at === state.letters.length;
    if (isComputers) return await answerOfComputer(ticket);
    await more(ticket);
  } catch {
    if (ticket !== asked) return;
    notice = "The server does not answer.";
    banner();
  }
}

/** What takes longer: the line, and the scores of all positions of as many stones. */
async function more(ticket) {
  if (state.hidden || outcome || answer?.score === undefined) return;
  const line = await ask(`v1/mainline?pos=${written(position)}&moves=40`);
  if (ticket !== asked) return;
  if (line.moves) {
    const ends = { over: "and the game is over", repeats: "and round again", "cut-off": "…", unknown: "…" };
    byId("line").textContent = line.moves.length ? `Best play: ${line.moves.map((one) => one.pit + (one.captures ? `×${one.captures}` : "")).join(" ")} ${ends[line.end]}` : "";
  }
  if (!databases.some((one) => one.stones === answer.stones)) return;
  const database = await ask(`v1/databases/${answer.stones}`);
  if (ticket === asked) histogram(database);
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
  byId("line").textContent = "";
  byId("histogram").replaceChildren();
  table();
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

function verdict() {
  const side = sideName(position.side);
  if (outcome) {
    const { why, lead } = outcome;
    return `The game is over: ${why}; ${lead === 0 ? "nobody wins" : `${lead > 0 ? "South" : "North"} wins by ${Math.abs(lead)}`}.`;
  }
  if (state.hidden || !answer) return `${side} to move.`;
  if (answer.score === undefined) return `${side} to move; ${answer.message}.`;
  if (typeof answer.score !== "number") return `${side} to move: between ${signed(answer.score.lo)} and ${signed(answer.score.hi)} stones.`;
  if (answer.score === 0) return `${side} to move: a draw of the stones on the board.`;
  return `${side} to move ${answer.score > 0 ? "wins" : "loses"} by ${count(Math.abs(answer.score))}.`;
}

function banner() {
  const category = !state.hidden && !outcome && answer?.category;
  byId("banner").className = `banner ${category || ""}`;
  byId("banner").textContent = notice ? `${notice} ${verdict()}` : verdict();
}

function table() {
  const shown = !state.hidden && !outcome && answer?.moves?.length;
  const row = (one) => el("tr", {},
    el("th", { scope: "row" }, one.pit),
    el("td", { class: one.category }, worth(one)),
    el("td", {}, String(one.captures)),
    el("td", {}, plain(one.loss)));
  byId("moves").replaceChildren(...(shown ? [
    el("caption", {}, "Moves, the best first"),
    el("thead", {}, el("tr", {}, ...["Pit", "Value", "Captures", "Loses"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ...answer.moves.map(row)),
    answer.illegal.length ? el("tfoot", {}, el("tr", {}, el("td", { colspan: 4 },
      answer.illegal.filter((one) => one.code === "starves").map((one) => `${one.pit}: ${one.reason}`).join("; ")))) : null,
  ].filter(Boolean) : []));
}

/** The moves of the game, each a button that goes there. */
function trail() {
  byId("history").replaceChildren(...[...state.letters].map((letter, number) =>
    el("button", {
      type: "button", "aria-label": `after move ${number + 1}, ${letter}`,
      "aria-current": number + 1 === state.at ? "step" : undefined, onclick: () => go(number + 1),
    }, letter)));
}

function histogram(database) {
  if (!database.histogram?.length) return;
  const most = Math.max(...database.histogram.map((one) => one.positions));
  const total = database.positions;
  const width = 2 * database.stones + 1;
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", `0 0 ${width * 10} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `How often each score occurs with ${count(database.stones)}`);
  for (const { score, positions } of database.histogram) {
    const bar = document.createElementNS(space, "rect");
    const height = Math.max((positions / most) * 96, 1);
    Object.entries({ x: (score + database.stones) * 10 + 1, y: 100 - height, width: 8, height }).forEach(([key, value]) => bar.setAttribute(key, value));
    bar.setAttribute("class", `${score > 0 ? "win" : score < 0 ? "loss" : "draw"}${score === answer.score ? " now" : ""}`);
    const title = document.createElementNS(space, "title");
    title.textContent = `${signed(score)}: ${positions.toLocaleString("en")} positions`;
    bar.append(title);
    svg.append(bar);
  }
  const share = (fits) => `${((100 * database.histogram.filter((one) => fits(one.score)).reduce((sum, one) => sum + one.positions, 0)) / total).toFixed(1)} %`;
  const caption = `All ${total.toLocaleString("en")} positions of ${count(database.stones)} by score, −${database.stones} to +${database.stones}` +
    (typeof answer.score === "number" ? `; ${share((score) => score === answer.score)} score ${signed(answer.score)} like this one (outlined), ${share((score) => score < answer.score)} less.` : ".");
  byId("histogram").replaceChildren(svg, el("figcaption", {}, caption));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  const digit = /^Digit([1-6])$/.exec(event.code) ?? /^Numpad([1-6])$/.exec(event.code);
  const place = event.target.dataset?.place;
  if (digit) {
    const pit = ownPits(position.side)[Number(digit[1]) - 1];
    if (state.editing) edit(pit, event.shiftKey ? -1 : 1);
    else play(pit);
  } else if (state.editing && place !== undefined && ["+", "-", "Delete"].includes(event.key)) edit(Number(place), event.key === "+" ? 1 : -1);
  else if (event.key === "ArrowLeft") go(state.at - 1);
  else if (event.key === "ArrowRight") go(state.at + 1);
  else if (event.key === "Home") go(0);
  else if (event.key === " " && !event.target.closest("button, summary, a, input")) best();
  else if (event.key === "h") { state.hidden = !state.hidden; changed(); }
  else if (event.key === "e") { state.editing = !state.editing; state.computer = ""; changed(); }
  else return;
  event.preventDefault();
});

addEventListener("popstate", () => { notice = ""; fromAddress(); refresh(); });

fromAddress();
try {
  ({ databases } = await ask("v1/databases"));
} catch {
  notice = "The server does not answer.";
}
build();
refresh();
