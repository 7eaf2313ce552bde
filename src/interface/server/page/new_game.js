// The dialog that begins a game: who plays which side, at which level, from which position.

import { byId, el } from "./format.js";
import { LEVELS } from "./state.js";

/** What each level gives away on average, measured in positions of ten stones (see the guide). */
const STRENGTHS = {
  beginner: "gives away about 1 stone a move",
  casual: "1 stone in 2 moves",
  strong: "1 stone in 4 moves",
  expert: "1 stone in 40 moves",
  perfect: "nothing that a database or a search of a second finds",
};

/** The choices of the sides, each with the sides that the computer plays. */
const SIDES = [["South, and move first", "N"], ["North", "S"], ["both sides", ""], ["neither side, and watch", "both"]];

/** Makes the dialog. `begin` gets the sides of the computer, its level, and whether the game begins at the shown position. */
export function newGameElements(begin) {
  const radio = (name, value, label) => el("label", {}, el("input", { type: "radio", name, value }), ` ${label}`);
  const submit = (event) => {
    const chosen = new FormData(event.target);
    begin({ computer: chosen.get("computer"), level: chosen.get("level"), isFromHere: chosen.get("from") === "here" });
  };
  const dialog = el("dialog", { id: "new-game", "aria-labelledby": "new-game-title" },
    el("form", { method: "dialog", onsubmit: submit },
      el("h2", { id: "new-game-title" }, "New game"),
      el("fieldset", {}, el("legend", {}, "I play"), ...SIDES.map(([label, value]) => radio("computer", value, label))),
      el("fieldset", {}, el("legend", {}, "The computer is"),
        ...LEVELS.map((level) => el("label", {}, el("input", { type: "radio", name: "level", value: level }), ` ${level}: ${STRENGTHS[level]}`))),
      el("fieldset", {}, el("legend", {}, "Begin at"), radio("from", "opening", "the opening"), radio("from", "here", "the shown position")),
      el("div", { class: "controls" },
        el("button", { id: "begin", class: "main" }, "Begin"),
        el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
  return dialog;
}

/** Opens the dialog with the choices of the last game; a first game is against the computer. */
export function openNewGame({ computer, level, isFirst }) {
  const choose = (name, value) => { byId("new-game").querySelector(`[name=${name}][value="${value}"]`).checked = true; };
  choose("computer", isFirst ? "N" : computer);
  choose("level", level);
  choose("from", "opening");
  byId("new-game").showModal();
  byId("new-game").querySelector("[name=computer]:checked").focus();
}
