// What the opening book has of the shown position: its value, the line of best moves to its end, and the tree of moves.

import { byId, count, el, signed, stonesOfHundredths } from "./format.js";

/** The depth of the tree. */
export const DEPTH = 3;

/** The moves of the line that are shown. */
const LINE_MOVES = 20;

/** Makes the elements of the book. */
export function bookElements() {
  return el("section", { id: "book", "aria-label": "Opening book", hidden: true },
    el("h2", {}, "Opening book"), el("p", { id: "book-value" }), el("p", { class: "line", id: "book-line" }), el("ul", { class: "tree", id: "book-tree" }));
}

/** Formats a value: proved, or an estimate within what is proved. */
export const bookValue = ({ lo, hi, estimate }) => (lo === hi ? `= ${signed(lo)}` : `≈ ${stonesOfHundredths(estimate, 2)}`);

/**
 * Shows what the book has. `found` is null where nothing is shown; `link` returns the address after some moves.
 */
export function showBook(found, link) {
  byId("book").hidden = !found?.positions;
  if (!found?.positions) return;
  const size = `${found.positions.toLocaleString("en")} positions`;
  const ends = found.found && found.moves.length === 0 ? "; the book ends here" : "";
  byId("book-value").textContent = found.found ? `${bookValue(found.value)}${ends} (${size})` : `The book does not have this position (${size}).`;
  const line = found.line.slice(0, LINE_MOVES);
  byId("book-line").replaceChildren();
  if (line.length) {
    const steps = line.map((pit, at) => step(pit, line.slice(0, at + 1).join(""), link));
    const end = found.line.length > line.length ? "…" : `and the book ends after ${found.line.length === 1 ? "1 move" : `${found.line.length} moves`}`;
    byId("book-line").append("Best by the book: ", ...steps.flatMap((one) => [one, " "]), end);
  }
  byId("book-tree").replaceChildren(...found.moves.map((move) => branch(move, "", link)));
}

const step = (pit, letters, link) => el("a", { href: link(letters), "data-moves": letters }, pit);

/** Makes the entry of a move, with those after it folded unless it is a best move. */
function branch(move, before, link) {
  const letters = before + move.pit;
  const taken = move.captures ? `, captures ${count(move.captures)}` : "";
  const end = move.value.lo === move.value.hi ? ", proved" : move.goes_on ? "" : ", the book ends";
  const label = [step(move.pit, letters, link), ` ${bookValue(move.value)}${taken}${end}${move.best ? ", best" : ""}`];
  if (move.moves.length === 0) return el("li", { class: move.best ? "best" : "" }, ...label);
  return el("li", { class: move.best ? "best" : "" },
    el("details", { open: move.best && before.length === 0 }, el("summary", {}, ...label), el("ul", {}, ...move.moves.map((next) => branch(next, letters, link)))));
}
