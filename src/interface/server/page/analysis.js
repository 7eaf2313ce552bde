// What the server finds out while it searches, shown with what is proved apart from what is estimated.

import { byId, count, drawn, el, sideName, signed, stonesOfHundredths, text } from "./format.js";
import { stonesOf } from "./game.js";

/** The best lines that are shown, and the moves of each. */
export const LINES = 3;
const LINE_MOVES = 10;

/** Returns the text of an estimate. */
export const estimated = (one, decimals = 2) => `${one.at_most ? "≤" : "≈"} ${stonesOfHundredths(one.estimate, decimals)}`;

/** Returns the text of proved bounds. */
export const proved = ({ lo, hi }) => (lo === hi ? `= ${signed(lo)}` : text({ lo, hi }));

/** Describes what is proved about the player to move. */
export function provedText({ lo, hi }, side) {
  const name = sideName(side);
  if (lo === hi) return lo === 0 ? "the stones on the board are shared" : `${name} ${lo > 0 ? "wins" : "loses"} by ${count(Math.abs(lo))}`;
  if (lo > 0) return `${name} wins by ${lo} to ${hi} stones`;
  if (hi < 0) return `${name} loses by ${-hi} to ${-lo} stones`;
  return `between ${signed(lo)} and ${signed(hi)} stones for ${name}`;
}

/** Makes the elements of the evaluation. */
export const evaluationElements = () => el("section", { id: "evaluation", "aria-label": "Evaluation", "aria-busy": "false" },
  el("figure", { id: "bar" }),
  el("p", { id: "proved" }),
  el("p", { id: "estimated" }));

/** Makes the table of the best lines. */
export const lineElements = () => el("table", { id: "lines", hidden: true },
  el("caption", {}),
  el("thead", {}, el("tr", {}, ...["Pit", "Proved", "Estimated", "Best play"].map((name) => el("th", { scope: "col" }, name)))),
  el("tbody", {}, ...Array.from({ length: LINES }, () => el("tr", {},
    el("th", { scope: "row" }), el("td", { class: "proved" }), el("td", { class: "estimated" }),
    el("td", { class: "line" }, ...Array.from({ length: LINE_MOVES }, () => el("a", {})), el("span", {}))))));

/** Whether bounds say more than that nobody can win more stones than there are on the board. */
const isSomethingProved = ({ lo, hi }, stones) => lo > -stones || hi < stones;

/**
 * Shows what is proved, and what is estimated if that is more. `view` may be null; `view.beyond` says why there is only an
 * estimate.
 */
export function showEvaluation(position, view) {
  byId("evaluation").hidden = !view;
  lines(view, stonesOf(position));
  if (!view) return;
  const isExact = view.proved.lo === view.proved.hi;
  const estimate = isExact ? undefined : view.estimate;
  byId("bar").replaceChildren(bar(position, view.proved, estimate));
  // The heading of the page says what is proved to the stone.
  const isProved = !isExact && isSomethingProved(view.proved, stonesOf(position));
  byId("proved").textContent = isProved ? `Proved: ${provedText(view.proved, position.side)}.` : "";
  const about = estimate === undefined ? "…" : `about ${stonesOfHundredths(estimate, 2)} stones for ${sideName(position.side)}`;
  const beyond = view.beyond ? `; ${view.beyond}` : "";
  byId("estimated").textContent = isExact ? "" : `Estimated: ${about}${estimate === undefined ? "" : `${beyond}.`}`;
}

/**
 * Draws the stones that both players are sure of, from South at the left to North at the right; those between are hatched,
 * and a mark shows where the estimate shares them.
 */
function bar(position, { lo, hi }, estimate) {
  const [south, north] = position.stores;
  const board = stonesOf(position);
  const all = Math.max(south + north + board, 1);
  const sign = position.side === "S" ? 1 : -1;
  const place = (score) => 480 * (south + (board + sign * score) / 2) / all;
  const [from, to] = [place(lo), place(hi)].sort((a, b) => a - b);
  const parts = [
    drawn("pattern", { id: "hatch", width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      drawn("rect", { class: "open", width: 8, height: 8 }), drawn("rect", { class: "stripe", width: 2, height: 8 })),
    drawn("rect", { class: "south", x: 0, y: 6, width: from, height: 24 }),
    drawn("rect", { x: from, y: 6, width: to - from, height: 24, class: "between", fill: "url(#hatch)" }),
    drawn("rect", { class: "north", x: to, y: 6, width: 480 - to, height: 24 }),
    drawn("line", { class: "half", x1: 240, x2: 240, y1: 2, y2: 34 }),
  ];
  let label = `South is sure of ${Math.ceil(from * all / 480)}, North of ${Math.floor(all - to * all / 480)} of ${count(all)}`;
  if (estimate !== undefined) {
    const at = place(estimate / 100);
    parts.push(drawn("path", { class: "mark", d: `M ${at} 8 l -6 -8 h 12 z M ${at} 28 l -6 8 h 12 z M ${at - 1} 8 v 20 h 2 v -20 z` }));
    label += `; South is estimated at ${(at * all / 480).toFixed(1)}`;
  }
  return drawn("svg", { viewBox: "-6 -2 492 40", role: "img", "aria-label": `${label}.` }, ...parts);
}

/** Shows the best lines, each move a link that plays it. The links stay as they are: one may be about to be clicked. */
function lines(view, stones) {
  byId("lines").hidden = !view?.moves;
  if (!view?.moves) return;
  const { moves, depth, nodes, milliseconds, isFinal, link } = view;
  // A column that says nothing of any move is not shown.
  byId("lines").classList.toggle("unproved", !moves.some((one) => isSomethingProved(one.proved, stones)));
  const effort = `depth ${depth}, ${nodes.toLocaleString("en")} positions, ${(milliseconds / 1000).toFixed(1)} s`;
  byId("lines").caption.textContent = `${isFinal ? "Best lines" : "Thinking"}: ${effort}`;
  [...byId("lines").tBodies[0].rows].forEach((row, number) => {
    const one = moves[number];
    row.hidden = !one;
    if (!one) return;
    const [pit, known, about, line] = row.cells;
    pit.textContent = one.pit;
    known.textContent = isSomethingProved(one.proved, stones) ? proved(one.proved) : "";
    known.className = `proved ${one.category}`;
    about.textContent = one.proved.lo === one.proved.hi ? "" : estimated(one);
    line.querySelectorAll("a").forEach((move, at) => {
      const letters = one.line.slice(0, at + 1).join("");
      move.hidden = at >= one.line.length;
      move.textContent = one.line[at] ?? "";
      move.href = link(letters);
      move.dataset.moves = letters;
    });
    line.querySelector("span").textContent = one.line.length > LINE_MOVES ? "…" : "";
  });
}
