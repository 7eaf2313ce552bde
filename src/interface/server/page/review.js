// What is known about the positions of a game: a graph of the values, the errors of both players, and the analysis of a whole
// game, which finds them.

import { byId, drawn, el, sideName, stonesOfHundredths } from "./format.js";
import { pitOf, written } from "./game.js";

/** The marks of moves that give away at least so many hundredths of a stone. */
const MARKS = [{ least: 500, text: "??", name: "blunder" }, { least: 200, text: "?", name: "mistake" }];

/** Returns the mark of a move that gives away some hundredths of a stone, which may be unknown. */
export const markOf = (loss) => MARKS.find((mark) => loss >= mark.least);

/** The most positions that are remembered; the oldest is dropped first. */
const POSITIONS_MAX = 2000;

/**
 * By position, in hundredths of a stone for the player to move: the value, those of the moves by pit, and the depth of the
 * search that found them, which is infinite if they are proved.
 */
const known = new Map();

function learn(position, found) {
  const key = written(position);
  if (known.get(key)?.depth > found.depth) return;
  known.delete(key);
  if (known.size >= POSITIONS_MAX) known.delete(known.keys().next().value);
  known.set(key, found);
}

/** Notes what the databases or a short search have of a position. */
export function noteAnswer(position, answer) {
  const middle = (value) => (typeof value === "number" ? 100 * value : 50 * (value.lo + value.hi));
  if (answer?.score === undefined) return;
  const isExact = typeof answer.score === "number";
  const moves = new Map(answer.moves.map((one) => [pitOf(one.pit), one.estimate ?? middle(one.value)]));
  learn(position, { value: answer.estimate ?? middle(answer.score), moves, depth: isExact ? Infinity : 0 });
}

/** Notes what a search found out about a position. */
export function noteAnalysis(position, { estimate, proved, moves, depth }) {
  const value = ({ estimate: about, proved: { lo, hi } }) => (lo === hi ? 100 * lo : about);
  const all = new Map(moves.map((one) => [pitOf(one.pit), value(one)]));
  learn(position, { value: value({ estimate, proved }), moves: all, depth: proved.lo === proved.hi ? Infinity : depth });
}

/** Whether the moves of a position were searched deeper than a short search does, or are proved. */
export const isSearched = (position, moves) => known.get(written(position))?.depth > 0 && known.get(written(position)).moves.size >= moves;

/** Returns South's lead at the end of the game by what is known of a position; nothing if that is nothing. */
function leadOf(position) {
  const found = known.get(written(position));
  if (!found) return undefined;
  return position.stores[0] - position.stores[1] + (position.side === "S" ? 1 : -1) * found.value / 100;
}

/** Returns the hundredths of a stone that a move gives away, if they are known. */
export function lossOf(position, pit) {
  const found = known.get(written(position));
  const value = found?.moves.get(pit);
  return value === undefined ? undefined : Math.max(found.value - value, 0);
}

/** Makes the elements of the graph and of the errors. */
export const reviewElements = () => el("section", { id: "review", "aria-label": "Analysis of the game", hidden: true },
  el("figure", { id: "graph" }),
  el("p", { id: "review-progress", hidden: true }, el("label", { for: "review-done" }, "Analysing "), el("progress", { id: "review-done" })),
  el("table", { id: "errors", hidden: true },
    el("caption", {}, "Errors: ? gives away 2 stones or more, ?? 5 or more"),
    el("thead", {}, el("tr", {}, ...["Player", "Moves", "?", "??", "Given away"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody")));

/** Shows the progress of the analysis of the game; `null` ends it. */
export function showProgress(done, all) {
  byId("review-progress").hidden = done === null;
  if (done !== null) Object.assign(byId("review-done"), { value: done, max: all });
}

/**
 * Shows the graph and the errors of a game, by its positions, letters and outcome, the number of moves before the shown position and
 * whether values are hidden. `go` shows the position after a number of moves.
 */
export function showReview({ positions, letters, outcome, at, isHidden, go }) {
  const leads = positions.map(leadOf);
  if (outcome?.stores) leads[leads.length - 1] = outcome.lead;
  const isShown = !isHidden && letters.length > 0 && leads.filter((lead) => lead !== undefined).length > 1;
  byId("review").hidden = !isShown && byId("review-progress").hidden;
  byId("graph").hidden = !isShown;
  byId("errors").hidden = true;
  if (!isShown) return;
  const losses = [...letters].map((letter, number) => lossOf(positions[number], pitOf(letter)));
  byId("graph").replaceChildren(graph(leads, losses, at), el("figcaption", {}, "South's lead at the end, by what is known at each move"));
  if (losses.some((loss) => loss === undefined)) return;
  const focused = document.activeElement?.dataset?.errors;
  byId("errors").hidden = false;
  byId("errors").tBodies[0].replaceChildren(...["S", "N"].map((side) => {
    const isOwn = (number) => positions[number].side === side;
    const own = losses.filter((_, number) => isOwn(number));
    // The number of moves with a mark. A click goes to the next of them, and after the last to the first.
    const marked = ({ text, name }) => {
      const all = losses.flatMap((loss, number) => (isOwn(number) && markOf(loss)?.text === text ? [number + 1] : []));
      const next = all.find((number) => number > at) ?? all[0];
      const words = `${all.length} ${name}${all.length === 1 ? "" : "s"} of ${sideName(side)}; go to the next`;
      return all.length ? el("button", { type: "button", "data-errors": side + text, "aria-label": words, title: words, onclick: () => go(next) }, String(all.length)) : "0";
    };
    const lost = own.reduce((sum, loss) => sum + loss, 0);
    const average = own.length ? ` (${(lost / 100 / own.length).toFixed(2)} a move)` : "";
    return el("tr", {}, el("th", { scope: "row" }, sideName(side)),
      ...[String(own.length), marked(MARKS[1]), marked(MARKS[0]), `${(lost / 100).toFixed(1)}${average}`].map((cell) => el("td", {}, cell)));
  }));
  if (focused !== undefined) byId("errors").querySelector(`[data-errors="${focused}"]`)?.focus();
}

const [WIDTH, HEIGHT] = [400, 90];

/** Draws South's lead over the moves; a click goes to the nearest move. The buttons of the moves do so for the keyboard. */
function graph(leads, losses, at) {
  const most = Math.max(6, ...leads.filter((lead) => lead !== undefined).map(Math.abs));
  const last = leads.length - 1;
  const x = (number) => WIDTH * number / Math.max(last, 1);
  const y = (lead) => HEIGHT / 2 - (HEIGHT / 2 - 4) * lead / most;
  const points = leads.map((lead, number) => [lead, number]).filter(([lead]) => lead !== undefined);
  const line = points.map(([lead, number]) => `${x(number).toFixed(1)},${y(lead).toFixed(1)}`);
  const base = `${x(points[0][1]).toFixed(1)},${y(0)}`;
  const marks = losses.map((loss, number) => [markOf(loss), number + 1]).filter(([mark, number]) => mark && leads[number] !== undefined);
  const here = leads[at] === undefined ? "" : `; at move ${at} ${stonesOfHundredths(100 * leads[at], 1)}`;
  return drawn("svg", {
    viewBox: `-6 0 ${WIDTH + 12} ${HEIGHT}`, role: "img",
    "aria-label": `South's lead after each of ${last} moves, from ${stonesOfHundredths(100 * points[0][0], 1)} to ${stonesOfHundredths(100 * points.at(-1)[0], 1)}${here}`,
  },
    drawn("path", { class: "area", d: `M ${base} L ${line.join(" L ")} L ${x(points.at(-1)[1]).toFixed(1)},${y(0)} z` }),
    drawn("line", { class: "even", x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }),
    drawn("polyline", { class: "lead", points: line.join(" ") }),
    drawn("line", { class: "here", x1: x(at), x2: x(at), y1: 0, y2: HEIGHT }),
    ...marks.map(([mark, number]) => drawn("circle", { class: mark.name, cx: x(number).toFixed(1), cy: y(leads[number]).toFixed(1), r: 3.5 },
      drawn("title", {}, `${number}. ${mark.name}: ${stonesOfHundredths(-losses[number - 1], 1)}`))));
}

/** Returns the move of the graph that is nearest to a click. */
export function moveAt(event, moves) {
  const box = byId("graph").querySelector("svg").getBoundingClientRect();
  const place = ((event.clientX - box.left) / box.width * (WIDTH + 12) - 6) / WIDTH;
  return Math.min(Math.max(Math.round(place * moves), 0), moves);
}

/**
 * Analyses the positions of a game one after the other, by `search` for those that are not proved. `report` is called after
 * each. Returns a refusal, if there is one.
 */
export async function analyseGame({ positions, moves }, search, report) {
  for (const [number, position] of positions.entries()) {
    report(number, positions.length);
    if (!isSearched(position, moves(position))) {
      const found = await search(number);
      if (found.message) return found;
      noteAnalysis(position, found);
    }
  }
  return null;
}
