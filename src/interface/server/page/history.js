// The moves of the game, numbered and in pairs, with captures and the marks of errors. Each is a button that goes there.

import { byId, el, sideName } from "./format.js";
import { markOf } from "./review.js";

/** Makes the elements of the players and of their moves. */
export const historyElements = () => [
  el("p", { id: "players" }),
  el("div", { id: "history" }, el("table", { "aria-labelledby": "players" }, el("tbody"))),
];

/** Says who plays; the heading of the moves. */
function playersText(computer, level) {
  if (!computer) return "Moves";
  if (computer === "both") return `The computer (${level}) against itself`;
  return `You (${sideName(computer === "N" ? "S" : "N")}) against the computer (${level})`;
}

/**
 * Shows the moves. `steps` has the letter, the captured stones and the stones given away of each; `at` is the number of those
 * before the shown position, `side` the side that moves first, `computer` the sides that the computer plays, and at which `level`.
 */
export function showHistory(steps, { at, side, computer, level, go }) {
  const focused = document.activeElement?.dataset?.step;
  const button = ({ letter, captures, loss }, number) => {
    const mark = markOf(loss);
    const move = captures ? `${letter}×${captures}` : letter;
    // The name of a control begins with what it shows.
    const words = [`${move}${mark?.text ?? ""}`, `move ${number}`, ...(mark ? [mark.name] : [])].join(", ");
    return el("button", {
      type: "button", "data-step": number, "aria-label": words,
      "aria-current": number === at ? "step" : undefined, onclick: () => go(number),
    }, move, mark ? el("span", { class: "mark" }, mark.text) : null);
  };
  const buttons = steps.map((step, number) => button(step, number + 1));
  // The first pair of a game that North begins has no move of South.
  if (side === "N" && buttons.length) buttons.unshift("…");
  const rows = Array.from({ length: Math.ceil(buttons.length / 2) }, (_, row) => el("tr", {},
    el("th", { scope: "row" }, `${row + 1}.`), el("td", {}, buttons[2 * row]), el("td", {}, buttons[2 * row + 1])));
  const box = byId("history");
  box.hidden = !steps.length;
  byId("players").hidden = !steps.length && !computer;
  byId("players").textContent = playersText(computer, level);
  box.querySelector("tbody").replaceChildren(...rows);
  if (focused !== undefined) box.querySelector(`[data-step="${focused}"]`)?.focus();
  const here = box.querySelector("[aria-current]");
  if (here) box.scrollTop += here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
  else box.scrollTop = 0;
}
