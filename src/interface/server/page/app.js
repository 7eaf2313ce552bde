// The script of the page: a board to play on, with the value of every move.
//
// The server renders the parts below the board (line, table of moves, histogram), searches where no database has the
// position, and parses and formats games.

import { estimated, evaluationElements, proved, provedText, showEvaluation } from "./analysis.js";
import { drawBoard, hasMotion, showMove, showValues } from "./board.js";
import { DEPTH, bookElements, showBook } from "./book.js";
import { byId, count, el, sideName, signed, stonesOfHundredths, text, worth } from "./format.js";
import { OPENING, STONES_MAX, moves, ownPits, pitName, pitOf, playBy, read, replay, stonesOf, written } from "./game.js";
import { PARTS, analyze, booked, chosen, note, partsOf, posted, probed, rendered } from "./requests.js";
import { LEVELS, THINKING, address, fromAddress, game, played, state } from "./state.js";

playBy(document.documentElement.dataset);

const PRESETS = [
  ["Opening", OPENING],
  ["Six against six", "0-0-1-2-1-2-1-0-2-1-1-1-18-18-S"],
  ["A lap", "0-0-0-0-0-14-1-1-0-0-0-0-16-16-S"],
  ["Feed or lose", "0-0-0-1-2-3-0-0-0-0-0-0-21-21-S"],
  ["Round and round", "1-0-0-0-0-0-1-0-0-0-0-0-23-23-S"],
];
/** The most moves in an address: the server accepts 4 KiB, including the position. */
const LETTERS_MAX = 3900;
/** The pause between moves when the computer plays both sides, in milliseconds. */
const PAUSE = 500;

let databases = [];
let asked = 0;
let notice = "";
let lastChange = "";
/** Whether the last move of the computer came from the book. */
let isBookFollowed = false;
/** Ends the search of the server for the last position, and the motion of the last move. */
let [searching, moving] = [new AbortController(), new AbortController()];

// ---- moves through the game

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
  let all = played();
  for (const letter of letters) {
    if (replay(state.start, all).outcome) break;
    all += letter;
  }
  // Repeating the same moves keeps those after them.
  if (!state.letters.startsWith(all)) state.letters = all;
  const isOne = all.length === state.at + 1;
  state.at = all.length;
  changed(kind, isOne ? letters : "");
}

function whyNot(position, pit) {
  if (!ownPits(position.side).includes(pit)) return `${pitName(pit)} is not a pit of the player to move.`;
  if (position.pits[pit] === 0) return `${pitName(pit)} is empty.`;
  return `${pitName(pit)} would leave the opponent without stones.`;
}

function go(at) {
  const earlier = state.at;
  state.at = Math.min(Math.max(at, 0), state.letters.length);
  changed("go", state.at === earlier + 1 ? state.letters[earlier] : "");
}

function begin(position, kind = "") {
  state.start = position;
  state.letters = "";
  state.at = 0;
  changed(kind);
}

async function best() {
  if (outcome) return banner();
  const ticket = asked;
  const known = typeof answer?.score === "number" ? answer : analysis;
  const chooses = async () => {
    busy(true);
    try { return (await chosen("perfect", searching.signal)).move?.pit; } finally { if (ticket === asked) busy(false); }
  };
  const pit = known?.moves?.[0]?.pit ?? await chooses();
  if (ticket !== asked) return undefined;
  if (pit) return play(pitOf(pit));
  notice = "The best move is not known.";
  return banner();
}

async function answerOfComputer(ticket) {
  if (state.computer === "both") await new Promise((resolve) => { setTimeout(resolve, PAUSE); });
  if (ticket !== asked) return undefined;
  const found = await chosen(state.level, searching.signal);
  if (ticket !== asked) return undefined;
  if (found.move) {
    play(pitOf(found.move.pit), "reply");
    if (found.source === "book") notice = `${found.move.pit} is a move of the book.`;
    else if (isBookFollowed && found.source === "search") notice = `The book ended before ${found.move.pit}.`;
    isBookFollowed = found.source === "book";
    return banner();
  }
  notice = `${found.message ?? "The computer cannot move"}.`;
  return banner();
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
    if (found.games > 1) notice = `The text has ${found.games} games; this is the first.`;
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

let position = now();
let outcome = null;
/** What the databases have, and what a search found out. */
let [answer, analysis] = [null, null];
/** Whether the server searches this position or for a move of the computer. */
let isThinking = false;

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
    evaluationElements(),
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
    bookElements(),
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
        el("label", {}, "Server thinks ", el("select", { id: "thinking", onchange: (event) => { state.thinking = Number(event.target.value); changed(); } },
          ...THINKING.map((seconds) => option(seconds, seconds ? `${seconds} s` : "not")))),
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
 * history, and so is a move with its reply; otherwise, going back would trigger the reply again. A change by one move is
 * shown as it happens: `letter` names it.
 */
function changed(kind = "", letter = "") {
  const isSame = kind === "reply" || (kind && kind === lastChange);
  try {
    history[isSame ? "replaceState" : "pushState"](null, "", address());
  } catch {
    // Some browsers limit the rate. The next update contains all changes.
  }
  lastChange = kind;
  notice = "";
  refresh(letter);
}

const busy = (is) => byId("main").setAttribute("aria-busy", String(is));

async function refresh(letter = "") {
  const ticket = ++asked;
  searching.abort();
  moving.abort();
  [searching, moving] = [new AbortController(), new AbortController()];
  busy(true);
  const before = position;
  ({ outcome } = game());
  position = now();
  [answer, analysis] = [null, null];
  isThinking = false;
  try {
    const move = letter && hasMotion() && moves(before).find((one) => pitName(one.pit) === letter);
    if (move) {
      const { signal } = moving;
      await showMove(byId("board"), before, move, signal);
      if (ticket !== asked) return;
    }
    show();
    const found = await probed(position);
    if (ticket !== asked) return;
    answer = found;
    show();
    const inBook = state.hidden || outcome ? null : await booked(position, DEPTH);
    if (ticket !== asked) return;
    showBook(inBook, (letters) => address(played() + letters));
    // Bounds of the short search are shown unless a longer one follows.
    const isShown = !state.hidden && !outcome && (typeof found.score === "number" || (found.score !== undefined && !state.thinking));
    const parts = isShown ? await rendered(position) : {};
    if (ticket !== asked) return;
    for (const id of PARTS) byId(id).replaceWith(parts[id]?.cloneNode(true) ?? el("div", { id }));
    const isComputers = [position.side, "both"].includes(state.computer) && !outcome && !state.editing && state.at === state.letters.length;
    if (isComputers) {
      isThinking = typeof found.score !== "number";
      banner();
      await answerOfComputer(ticket);
    }
    if (!isComputers && !state.hidden && !outcome && typeof found.score !== "number") think(ticket);
  } catch {
    if (ticket === asked) noAnswer();
  } finally {
    // Only the last of several requests ends the busy state.
    if (ticket === asked) busy(false);
  }
}

/** Shows what the server finds out about this position while it searches. */
async function think(ticket) {
  if (!state.thinking) return;
  isThinking = true;
  banner();
  byId("evaluation").setAttribute("aria-busy", "true");
  try {
    const refusal = await analyze(searching.signal, (found, isFinal) => {
      if (ticket !== asked) return;
      analysis = { ...found, isFinal };
      showValues(byId("board"), view());
      // A banner that changed with each iteration would be read aloud each time.
      if (isFinal) {
        isThinking = false;
        banner();
      }
      evaluation();
    });
    if (refusal && ticket === asked) {
      isThinking = false;
      notice = `The analysis ended: ${refusal.message}.`;
      banner();
    }
  } catch {
    if (ticket === asked) noAnswer();
  } finally {
    if (ticket === asked) byId("evaluation").setAttribute("aria-busy", "false");
  }
}

function show() {
  moving.abort();
  drawBoard(byId("board"), view());
  banner();
  evaluation();
  byId("hide").checked = state.hidden;
  byId("edit").checked = state.editing;
  byId("editing").hidden = !state.editing;
  byId("computer").value = state.computer;
  byId("level").value = state.level;
  byId("thinking").value = state.thinking;
  if (document.activeElement !== byId("pos")) byId("pos").value = written(position);
  // The parts are stale until the server has rendered those of this position.
  for (const id of PARTS) byId(id).classList.add("stale");
  trail();
}

/** Returns what a pit is worth, as text, words and class: a known value, or else an estimate. */
function valueOf(at) {
  if (state.hidden || outcome) return null;
  const isHere = (one) => pitOf(one.pit) === at;
  const known = answer?.moves?.find(isHere);
  const searched = analysis?.moves.find(isHere);
  if (!known && !searched) return null;
  if (!searched && known.estimate !== undefined) {
    const best = answer.moves[0] === known;
    return { text: estimated(known, 1), words: `estimated at ${stonesOfHundredths(known.estimate, 1)}${best ? ", best" : ""}`, tone: `${known.category}${best ? " best" : ""} estimated` };
  }
  if (!searched || typeof known?.value === "number") {
    return { text: worth(known), words: `${text(known.value)}, ${known.category}${known.best ? ", best" : ""}`, tone: `${known.category}${known.best ? " best" : ""}` };
  }
  const best = analysis.moves[0] === searched;
  const tone = `${searched.category}${best ? " best" : ""}`;
  if (searched.proved.lo === searched.proved.hi) {
    const value = { value: searched.proved.lo, category: searched.category };
    return { text: worth(value), words: `${text(value.value)}, ${value.category}${best ? ", best" : ""}`, tone };
  }
  const words = `estimated at ${searched.at_most ? "most " : ""}${stonesOfHundredths(searched.estimate, 1)}${best ? ", best" : ""}`;
  return { text: estimated(searched, 1), words, tone: `${tone} estimated` };
}

/** Returns what the board shows, and what its places do. */
const view = () => ({
  position,
  legal: outcome ? [] : moves(position).map((one) => one.pit),
  moves: outcome ? "" : position.side,
  editing: state.editing,
  value: valueOf,
  press: (at, event) => (state.editing ? edit(at, state.adding && !event.shiftKey ? 1 : -1) : play(at)),
  take: (at) => edit(at, -1),
});

/** Shows what is proved and what is estimated about this position. */
function evaluation() {
  const score = answer?.score;
  if (state.hidden || outcome || (score === undefined && !analysis)) return showEvaluation(position, null);
  const [lo, hi] = typeof score === "number" ? [score, score] : [score?.lo ?? -Infinity, score?.hi ?? Infinity];
  const found = typeof score === "number" ? null : analysis;
  const bounds = { lo: Math.max(lo, found?.proved.lo ?? lo), hi: Math.min(hi, found?.proved.hi ?? hi) };
  const link = (letters) => address(played() + letters);
  return showEvaluation(position, { ...found, proved: bounds, estimate: found?.estimate ?? answer?.estimate, link });
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
  if (typeof answer.score !== "number" && analysis?.isFinal) {
    if (analysis.proved.lo === analysis.proved.hi) return `${side} to move: ${provedText(analysis.proved, position.side)}.`;
    return `${side} to move: estimated ${stonesOfHundredths(analysis.estimate, 1)}, proved ${proved(analysis.proved)} stones.`;
  }
  if (isThinking) return `${side} to move; the server is thinking.`;
  if (answer.score === undefined) return `${side} to move; ${answer.message}.`;
  if (answer.estimate !== undefined) return `${side} to move: estimated ${stonesOfHundredths(answer.estimate, 1)}, proved ${text(answer.score)} stones; no ${stonesOf(position)}-stone database here${reach()}.`;
  const hasPairs = document.documentElement.dataset.repetition === "own-side" && answer.source !== "search";
  if (typeof answer.score !== "number" && hasPairs) return `${side} to move can force ${signed(answer.score.lo)}, and be held to ${signed(answer.score.hi)} stones.`;
  if (typeof answer.score !== "number") return `${side} to move: between ${signed(answer.score.lo)} and ${signed(answer.score.hi)} stones.`;
  if (answer.score === 0) return `${side} to move: the stones on the board are shared.`;
  return `${side} to move ${answer.score > 0 ? "wins" : "loses"} by ${count(Math.abs(answer.score))}.`;
}

function banner() {
  const category = !state.hidden && !outcome && (answer?.category ?? (analysis?.isFinal && analysis.category));
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

addEventListener("popstate", () => { lastChange = ""; notice = fromAddress(); refresh(); });

notice = fromAddress();
try {
  ({ databases } = await (await fetch("v1/databases")).json());
} catch {
  notice = "The server does not answer.";
}
// The server has already rendered this address.
const parts = partsOf(document);
if (parts.moves && !notice) note(now(), parts);
build();
refresh();
