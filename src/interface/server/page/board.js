// The board: pits and stores with their seeds, and moves as they happen.

import { held as heldText, ownPits, pitName } from "./game.js";
import { count, drawn, el, sideName } from "./format.js";

/** Seeds of a spiral are this angle apart, as in a sunflower: none hides another. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** Time from one sown seed to the next, and the most for all seeds of a move, in milliseconds. */
const STEP = 150;
const SOWING_MAX = 1500;
/** Time for which captured seeds are marked, in milliseconds. */
const CAPTURE = 350;

/** Draws a number of seeds; the server draws them in the same places. */
export function seeds(number, turn) {
  const spread = Math.min(13, 48 / (Math.sqrt(number) + 0.8));
  const circles = Array.from({ length: number }, (_, seed) => {
    const [angle, distance] = [turn + seed * GOLDEN_ANGLE, spread * Math.sqrt(seed + 0.5) * (number === 1 ? 0 : 1)];
    return drawn("circle", { cx: (distance * Math.cos(angle)).toFixed(1), cy: (distance * Math.sin(angle)).toFixed(1), r: (0.8 * spread).toFixed(1) });
  });
  return drawn("svg", { class: "seeds", viewBox: "-50 -50 100 100", "aria-hidden": "true" }, ...circles);
}

/**
 * Draws the board. `view` has the position, the legal pits, the pit of the last move (`sown`), the shown values by pit, whether the
 * board is turned or edited, and the actions of a click (`press`) and of the right button (`take`).
 */
export function drawBoard(board, view) {
  const { position, editing } = view;
  const focused = document.activeElement?.dataset?.place;
  const pit = (at) => el("button", {
    type: "button", class: "pit", "data-place": at,
    "aria-disabled": !editing && !view.legal.includes(at) ? "true" : undefined,
    onclick: (event) => view.press(at, event),
    oncontextmenu: (event) => { if (editing) { event.preventDefault(); view.take(at); } },
  },
    // Blanks keep the words of what is shown apart.
    el("span", { class: "name" }, pitName(at)), " ",
    el("span", { class: "stones" }, String(position.pits[at])), " ",
    seeds(position.pits[at], at),
    el("span", { class: "value" }));
  const store = (side) => {
    const [at, held] = side === "S" ? [12, position.stores[0]] : [13, position.stores[1]];
    const inside = [el("span", { class: "name" }, sideName(side)), " ", el("span", { class: "stones" }, heldText(held)), seeds(Math.floor(held), at)];
    const name = `store ${side === "S" ? "south" : "north"}${view.moves === side ? " moves" : ""}`;
    if (!editing) return el("div", { class: name, "data-store": at }, ...inside);
    return el("button", {
      type: "button", class: name, "data-place": at, "aria-label": `${sideName(side)} ${count(held)}, store`,
      onclick: (event) => view.press(at, event),
      oncontextmenu: (event) => { event.preventDefault(); view.take(at); },
    }, ...inside);
  };
  const places = [
    store("N"),
    el("div", { class: "row north" }, ...[11, 10, 9, 8, 7, 6].map(pit)),
    el("div", { class: "row south" }, ...[0, 1, 2, 3, 4, 5].map(pit)),
    store("S"),
  ];
  board.classList.toggle("turned", view.turned);
  if (view.turned) {
    places.reverse();
    for (const row of places.slice(1, 3)) row.append(...[...row.children].reverse());
  }
  board.replaceChildren(...places);
  showValues(board, view);
  if (focused !== undefined) document.querySelector(`[data-place="${focused}"]`)?.focus();
}

/** Shows the values of the pits. The pits stay as they are: one may be about to be clicked. */
export function showValues(board, view) {
  for (const pit of board.querySelectorAll(".pit")) {
    const at = Number(pit.dataset.place);
    const value = view.value(at);
    const isSown = at === view.sown;
    pit.className = `pit ${value?.tone ?? ""}${isSown ? " sown" : ""}`;
    // The name of a control begins with what it shows.
    const stones = view.position.pits[at];
    const shown = value ? `${stones} ${value.text}` : count(stones);
    pit.setAttribute("aria-label", [`${pitName(at)} ${shown}`, ...(value?.words ?? []), ...(isSown ? ["just sown"] : [])].join(", "));
    pit.querySelector(".value").textContent = value?.text ?? "";
  }
}

/** Whether moves are shown as they happen. */
export const hasMotion = () => !matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Shows a move as it happens, on a board that shows the position before it. Ends early if `signal` is aborted. */
export async function showMove(board, position, move, signal) {
  const held = [...position.pits, ...position.stores];
  const placeOf = (at) => board.querySelector(`[data-place="${at}"], [data-store="${at}"]`);
  const draw = (at) => {
    const place = placeOf(at);
    if (!place) return;
    place.querySelector(".stones").textContent = held[at];
    place.querySelector(".seeds").replaceWith(seeds(held[at], at));
  };
  const pause = (time) => new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
  held.forEach((_, at) => draw(at));
  board.querySelectorAll(".value").forEach((value) => { value.textContent = ""; });
  placeOf(move.pit)?.classList.add("sown");
  const step = Math.min(STEP, SOWING_MAX / move.path.length);
  for (const at of move.path) {
    held[move.pit] -= 1;
    draw(move.pit);
    fly(board, placeOf(move.pit), placeOf(at), step);
    await pause(step);
    if (signal.aborted) return;
    held[at] += 1;
    draw(at);
  }
  const store = ownPits("S").includes(move.pit) ? 12 : 13;
  for (const at of move.taken) {
    placeOf(at)?.classList.add("taken");
    await pause(CAPTURE);
    if (signal.aborted) return;
    fly(board, placeOf(at), placeOf(store), step);
    held[store] += held[at];
    held[at] = 0;
    placeOf(at)?.classList.remove("taken");
    draw(at);
    draw(store);
  }
  await pause(step);
}

/** Moves a seed from one place of the board to another. */
function fly(board, from, to, time) {
  if (!from || !to) return;
  const origin = board.getBoundingClientRect();
  const middle = (place) => {
    const box = place.querySelector(".seeds").getBoundingClientRect();
    return `translate(${box.left + box.width / 2 - origin.left}px, ${box.top + box.height / 2 - origin.top}px)`;
  };
  const seed = el("span", { class: "flying" });
  board.append(seed);
  const flight = seed.animate([{ transform: middle(from) }, { transform: middle(to) }], { duration: time, easing: "ease-in-out" });
  flight.onfinish = flight.oncancel = () => seed.remove();
}
