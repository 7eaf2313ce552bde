// The script of the page: a board to play on, with the value of every move.
//
// The server renders the parts below the board (line, table of moves, histogram), searches where no database has the
// position, and parses and formats games.

import { estimated, evaluationElements, lineElements, provedText, showEvaluation } from "./analysis.js";
import { drawBoard, hasMotion, showMove, showValues } from "./board.js";
import { DEPTH, bookElements, showBook } from "./book.js";
import { byId, count, el, sideName, signed, worth } from "./format.js";
import { OPENING, STONES_MAX, moves, outcomeText, ownPits, pitName, pitOf, playBy, read, replay, stonesOf, written } from "./game.js";
import { historyElements, showHistory } from "./history.js";
import { libraryElements } from "./library.js";
import { newGameElements, openNewGame } from "./new_game.js";
import { PARTS, analyze, booked, chosen, note, partsOf, probed, rendered, searched } from "./requests.js";
import { analyseGame, lossOf, moveAt, noteAnalysis, noteAnswer, reviewElements, showProgress, showReview } from "./review.js";
import { THINKING, address, fromAddress, game, gameTo, isAgainstComputer, isHidden, played, state } from "./state.js";

playBy(document.documentElement.dataset);

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
/** Ends the analysis of the game; `null` while there is none. */
let reviewing = null;

// ---- moves through the game

const now = () => game().positions.at(-1);

function play(pit, kind = "", words = "") {
  const { positions, outcome } = game();
  const move = moves(positions.at(-1)).find((one) => one.pit === pit);
  if (outcome || !move) {
    notice = outcome ? "The game is over." : whyNot(positions.at(-1), pit);
    return show();
  }
  return playAll(pitName(pit), kind, words);
}

/** Plays moves until the game is over. */
function playAll(letters, kind = "", words = "") {
  let all = played();
  for (const letter of letters) {
    if (replay(state.start, all).outcome) break;
    all += letter;
  }
  // Repeating the same moves keeps those after them.
  if (!state.letters.startsWith(all)) {
    state.letters = all;
    state.resigned = "";
  }
  const isOne = all.length === state.at + 1;
  state.at = all.length;
  changed(kind, isOne ? letters : "", words);
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
  Object.assign(state, { start: position, letters: "", at: 0, resigned: "" });
  changed(kind);
}

/** Begins a game of a person against the computer, or of two persons, or of the computer against itself. */
function beginGame({ computer, level, isFromHere }) {
  const start = isFromHere ? now() : read(OPENING);
  Object.assign(state, { computer, level, hidden: null, turned: computer === "S", editing: false });
  begin(start);
}

/** Removes the last move; against the computer, the last move of the person with the answer to it. */
function takeBack() {
  const { positions } = gameTo(state.letters.length);
  let at = state.letters.length - 1;
  if (state.resigned) at = state.letters.length;
  while (at > 0 && positions[at].side === state.computer) at -= 1;
  if (at < 0 || positions[at].side === state.computer) {
    notice = "There is no move to take back.";
    return banner();
  }
  Object.assign(state, { letters: state.letters.slice(0, at), at, resigned: "" });
  return changed();
}

/** Turns the board, so that the other side sits below. */
function turn() {
  state.turned = !state.turned;
  changed("turn");
}

/** Ends the game as a loss of the person, or of the side to move. */
function resign() {
  const { positions, outcome } = gameTo(state.letters.length);
  if (outcome) return;
  state.at = state.letters.length;
  state.resigned = isAgainstComputer() ? (state.computer === "S" ? "N" : "S") : positions.at(-1).side;
  changed();
}

/** Shows the values of all positions of the game, searching those that no database has. */
async function analyse() {
  reviewing?.abort();
  const ended = new AbortController();
  reviewing = ended;
  if (!gameTo(state.letters.length).outcome) state.computer = "";
  state.hidden = false;
  changed("", "", "", true);
  const { positions, outcome } = gameTo(state.letters.length);
  const open = outcome ? positions.slice(0, -1) : positions;
  try {
    const refusal = await analyseGame({ positions: open, moves: (one) => moves(one).length }, (at) => searched(at, ended.signal), (done, all) => {
      showProgress(done, all);
      trail();
    });
    if (refusal) notice = `The analysis ended: ${refusal.message}.`;
  } catch {
    if (!ended.signal.aborted) notice = "The server does not answer.";
  }
  if (reviewing !== ended) return;
  reviewing = null;
  showProgress(null);
  refresh("", notice);
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
    const isOver = isBookFollowed && found.source === "search";
    isBookFollowed = found.source === "book";
    const ofBook = isOver ? `The book ended before ${found.move.pit}.` : "";
    return play(pitOf(found.move.pit), "reply", isBookFollowed ? `${found.move.pit} is a move of the book.` : ofBook);
  }
  notice = `${found.message ?? "The computer cannot move"}.`;
  return banner();
}

/** Shows a game that was read. */
function load(start, letters) {
  Object.assign(state, { start, letters, at: letters.length, computer: "", resigned: "", editing: false });
  changed();
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
  const isFirst = () => !state.letters && !state.computer;
  byId("tools").prepend(el("button", { type: "button", id: "open-new-game", class: "main", onclick: () => openNewGame({ ...state, isFirst: isFirst() }) }, "New game"));
  byId("main").replaceChildren(
    newGameElements(beginGame),
    el("div", { class: "table" },
      el("div", { class: "board", id: "board" }),
      el("p", { class: "banner", id: "banner", role: "status" }),
      el("div", { class: "controls", id: "controls" },
        button("Start", "To the start (Home)", () => go(0)),
        button("← Back", "One move back (left arrow)", () => go(state.at - 1)),
        button("Forward →", "One move forward (right arrow)", () => go(state.at + 1)),
        button("End", "To the last move (End)", () => go(state.letters.length)),
        button("Take back", "Remove the last move, against the computer with the answer to it", takeBack),
        el("button", { type: "button", id: "resign", onclick: resign }, "Resign"),
        button("Best", "Play the best move (space)", tried(best)),
        el("button", { type: "button", id: "turn", title: "Let the other side sit below (t)", onclick: turn }, "Turn"),
      ),
      el("div", { class: "controls", id: "views" },
        check("Hide values", "hide", (event) => { state.hidden = event.target.checked; changed(); }),
        check("Edit", "edit", (event) => { state.editing = event.target.checked; changed(); }),
        el("label", {}, "Server thinks ", el("select", { id: "thinking", onchange: (event) => { state.thinking = Number(event.target.value); changed(); } },
          ...THINKING.map((seconds) => option(seconds, seconds ? `${seconds} s` : "not")))),
        el("button", { type: "button", id: "analyse", title: "Show the values and the errors of both players", onclick: tried(analyse) }, "Analyse this game"),
      ),
      el("div", { class: "controls", id: "editing" },
        el("label", {}, el("input", { type: "radio", name: "stone", checked: true, onchange: () => { state.adding = true; } }), " Add stones"),
        el("label", {}, el("input", { type: "radio", name: "stone", onchange: () => { state.adding = false; } }), " Remove stones"),
        button("Other side to move", "Let the other side move", () => begin({ ...now(), side: now().side === "S" ? "N" : "S" })),
        button("Clear", "Remove all stones", () => begin({ pits: Array(12).fill(0), stores: [0, 0], side: "S" })),
      ),
      evaluationElements(),
    ),
    el("div", { class: "panel" },
      ...historyElements(),
      reviewElements(),
      lineElements(),
      el("div", { id: "line" }),
      el("div", { id: "moves" }),
      bookElements(),
    ),
    el("div", { class: "more" },
      el("div", { id: "histogram" }),
      ...libraryElements({ begin, load, stones }),
      el("details", {}, el("summary", {}, "Keys"),
        el("p", {}, "1 to 6 play A to F of the player to move (add a stone while editing, remove one with Shift), ← and → go back and forward, Home to the start, End to the last move, space plays the best move, t turns the board, h hides values, e edits."),
      ),
    ),
  );
  byId("graph").addEventListener("click", (event) => go(moveAt(event, state.letters.length)));
}

function noAnswer() {
  notice = "The server does not answer.";
  banner();
}

/**
 * Updates the address and the page after a change of state. Successive changes of one kind are one step of the browser
 * history, and so is a move with its reply; otherwise, going back would trigger the reply again. A change by one move is
 * shown as it happens: `letter` names it. `words` are said with the new position.
 */
function changed(kind = "", letter = "", words = "", isReview = false) {
  // The analysis of a game ends with the game; going to another of its moves is no change.
  if (reviewing && !isReview && !["go", "turn"].includes(kind)) {
    reviewing.abort();
    reviewing = null;
    showProgress(null);
  }
  const isSame = kind === "reply" || (kind && kind === lastChange);
  try {
    history[isSame ? "replaceState" : "pushState"](null, "", address());
  } catch {
    // Some browsers limit the rate. The next update contains all changes.
  }
  lastChange = kind;
  notice = "";
  refresh(letter, words);
}

const busy = (is) => byId("main").setAttribute("aria-busy", String(is));

async function refresh(letter = "", words = "") {
  const ticket = ++asked;
  searching.abort();
  moving.abort();
  [searching, moving] = [new AbortController(), new AbortController()];
  busy(true);
  try {
    const { positions } = game();
    const before = positions.at(-2);
    const move = letter && before && hasMotion() && moves(before).find((one) => pitName(one.pit) === letter);
    if (move) {
      await showMove(byId("board"), before, move, moving.signal);
      if (ticket !== asked) return;
    }
    // All that describes a position changes when its last stone is sown, not before.
    ({ outcome } = game());
    position = now();
    [answer, analysis] = [null, null];
    isThinking = false;
    notice = words;
    show();
    const found = await probed(position);
    if (ticket !== asked) return;
    answer = found;
    noteAnswer(position, found);
    show();
    const inBook = isHidden() || outcome ? null : await booked(position, DEPTH);
    if (ticket !== asked) return;
    showBook(inBook, (letters) => address(played() + letters));
    // Bounds of the short search are shown unless a longer one follows.
    const isShown = !isHidden() && !outcome && (typeof found.score === "number" || (found.score !== undefined && !state.thinking));
    const parts = isShown ? await rendered(position) : {};
    if (ticket !== asked) return;
    for (const id of PARTS) byId(id).replaceWith(parts[id]?.cloneNode(true) ?? el("div", { id }));
    const isReply = isComputers();
    if (isReply) {
      isThinking = typeof found.score !== "number";
      banner();
      await answerOfComputer(ticket);
    }
    if (!isReply && !reviewing && !isHidden() && !outcome && typeof found.score !== "number") think(ticket);
  } catch {
    if (ticket === asked) noAnswer();
  } finally {
    // Only the last of several requests ends the busy state.
    if (ticket === asked) busy(false);
  }
}

/** Whether the computer is to move at the shown position. */
const isComputers = () => [position.side, "both"].includes(state.computer) && !outcome && !state.editing && state.at === state.letters.length;

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
      noteAnalysis(position, found);
      showValues(byId("board"), view());
      // A banner that changed with each iteration would be read aloud each time.
      if (isFinal) {
        isThinking = false;
        banner();
        trail();
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
  byId("hide").checked = isHidden();
  byId("edit").checked = state.editing;
  byId("editing").hidden = !state.editing;
  byId("resign").disabled = state.computer === "both" || Boolean(gameTo(state.letters.length).outcome);
  byId("analyse").disabled = state.letters.length === 0;
  // After the end of a game, its analysis is what comes next.
  byId("analyse").classList.toggle("main", Boolean(outcome));
  byId("thinking").value = state.thinking;
  if (document.activeElement !== byId("pos")) byId("pos").value = written(position);
  // The parts are stale until the server has rendered those of this position.
  for (const id of PARTS) byId(id).classList.add("stale");
  trail();
}

/** Returns what a pit is worth, as text, what it is besides, and class: a known value, or else an estimate. */
function valueOf(at) {
  if (isHidden() || outcome) return null;
  const isHere = (one) => pitOf(one.pit) === at;
  const known = answer?.moves?.find(isHere);
  const searched = analysis?.moves.find(isHere);
  if (!known && !searched) return null;
  const shown = (text, { category }, isBest, isEstimated) => ({
    text,
    words: [...(isEstimated ? ["estimated"] : []), ...(isBest ? ["best"] : [])],
    tone: `${category}${isBest ? " best" : ""}${isEstimated ? " estimated" : ""}`,
  });
  if (!searched && known.estimate !== undefined) return shown(estimated(known, 1), known, answer.moves[0] === known, true);
  if (!searched || typeof known?.value === "number") return shown(worth(known), known, known.best, false);
  const isBest = analysis.moves[0] === searched;
  const { proved: { lo, hi }, category } = searched;
  return lo === hi ? shown(worth({ value: lo, category }), searched, isBest, false) : shown(estimated(searched, 1), searched, isBest, true);
}

/** Returns what the board shows, and what its places do. */
const view = () => ({
  position: outcome?.stores && !state.editing ? { ...position, pits: Array(12).fill(0), stores: outcome.stores } : position,
  turned: state.turned,
  legal: outcome ? [] : moves(position).map((one) => one.pit),
  sown: state.at && !state.editing ? pitOf(state.letters[state.at - 1]) : undefined,
  moves: outcome ? "" : position.side,
  editing: state.editing,
  value: valueOf,
  press: (at, event) => (state.editing ? edit(at, state.adding && !event.shiftKey ? 1 : -1) : play(at)),
  take: (at) => edit(at, -1),
});

/** Shows what is proved and what is estimated about this position. */
function evaluation() {
  const score = answer?.score;
  if (isHidden() || outcome || (score === undefined && !analysis)) return showEvaluation(position, null);
  const [lo, hi] = typeof score === "number" ? [score, score] : [score?.lo ?? -Infinity, score?.hi ?? Infinity];
  const found = typeof score === "number" ? null : analysis;
  const bounds = { lo: Math.max(lo, found?.proved.lo ?? lo), hi: Math.min(hi, found?.proved.hi ?? hi) };
  const link = (letters) => address(played() + letters);
  const beyond = answer?.estimate !== undefined && !found ? `no ${stonesOf(position)}-stone database here${reach()}` : "";
  return showEvaluation(position, { ...found, proved: bounds, estimate: found?.estimate ?? answer?.estimate, link, beyond });
}

/** Formats the stones of the largest database. */
function reach() {
  const most = databases.filter((one) => one.state === "sound").at(-1);
  return most ? ` (the largest has ${count(most.stones)})` : "";
}

function verdict() {
  const side = sideName(position.side);
  if (outcome) return `The game is over: ${outcomeText(outcome)}.`;
  if (isThinking && isComputers()) return `${side} to move; the computer is thinking.`;
  if (isHidden() || !answer) return `${side} to move.`;
  if (typeof answer.score !== "number" && analysis?.isFinal) {
    const { lo, hi } = analysis.proved;
    return lo === hi ? `${side} to move: ${provedText(analysis.proved, position.side)}.` : `${side} to move.`;
  }
  if (isThinking) return `${side} to move; the server is thinking.`;
  if (answer.score === undefined) return `${side} to move; ${answer.message}.`;
  // What is estimated stands below the board.
  if (answer.estimate !== undefined) return `${side} to move.`;
  const hasPairs = document.documentElement.dataset.repetition === "own-side" && answer.source !== "search";
  if (typeof answer.score !== "number" && hasPairs) return `${side} to move can force ${signed(answer.score.lo)}, and be held to ${signed(answer.score.hi)} stones.`;
  if (typeof answer.score !== "number") return `${side} to move: between ${signed(answer.score.lo)} and ${signed(answer.score.hi)} stones.`;
  if (answer.score === 0) return `${side} to move: the stones on the board are shared.`;
  return `${side} to move ${answer.score > 0 ? "wins" : "loses"} by ${count(Math.abs(answer.score))}.`;
}

function banner() {
  const category = !isHidden() && !outcome && (answer?.category ?? (analysis?.isFinal && analysis.category));
  byId("banner").className = `banner ${category || ""}`;
  byId("banner").textContent = notice ? `${notice} ${verdict()}` : verdict();
}

/** Shows the moves of the game, their errors and the graph of the values. */
function trail() {
  const { positions, outcome: end } = gameTo(state.letters.length);
  const steps = [...state.letters].map((letter, number) => {
    const { captures } = moves(positions[number]).find((one) => pitName(one.pit) === letter);
    return { letter, captures, loss: isHidden() ? undefined : lossOf(positions[number], pitOf(letter)) };
  });
  showHistory(steps, { ...state, side: state.start.side, go });
  showReview({ positions, letters: state.letters, outcome: end, at: state.at, isHidden: isHidden(), go });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-moves]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  playAll(link.dataset.moves);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("#pos, #stones, textarea, dialog")) return;
  const digit = /^Digit([1-6])$/.exec(event.code) ?? /^Numpad([1-6])$/.exec(event.code);
  // Form controls keep all other keys.
  if (!digit && event.target.closest("select, [type=radio]")) return;
  const place = event.target.dataset?.place;
  if (digit) {
    // A move may still be shown as it happens.
    const pit = ownPits(now().side)[Number(digit[1]) - 1];
    if (state.editing) edit(pit, event.shiftKey ? -1 : 1);
    else play(pit);
  } else if (state.editing && place !== undefined && ["+", "-", "Delete"].includes(event.key)) edit(Number(place), event.key === "+" ? 1 : -1);
  else if (event.key === "ArrowLeft") go(state.at - 1);
  else if (event.key === "ArrowRight") go(state.at + 1);
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(state.letters.length);
  else if (event.key === "t") turn();
  else if (event.key === " " && !event.target.closest("button, summary, a, input")) best().catch(noAnswer);
  else if (event.key === "h") { state.hidden = !isHidden(); changed(); }
  else if (event.key === "e") { state.editing = !state.editing; changed(); }
  else return;
  event.preventDefault();
});

addEventListener("popstate", () => { lastChange = ""; refresh("", fromAddress()); });

let mistake = fromAddress();
try {
  ({ databases } = await (await fetch("v1/databases")).json());
} catch {
  mistake = "The server does not answer.";
}
// The server has already rendered this address.
const parts = partsOf(document);
if (parts.moves && !mistake) note(now(), parts);
build();
refresh("", mistake);
