// The state of the page: a game, a place in it, and choices. The URL holds all of it.

import { OPENING, read, replay, written } from "./game.js";

export const LEVELS = ["fair", "good", "strong", "expert", "perfect"];
/** The seconds that the server may think about a position, and those of an address without them. */
export const THINKING = [0, 1, 5, 20, 60];
const THINKING_DEFAULT = 5;

export const state = {
  start: read(OPENING), letters: "", at: 0, hidden: false, computer: "", level: "good", thinking: THINKING_DEFAULT, editing: false, adding: true,
};

/** The letters of the moves up to the shown position. */
export const played = () => state.letters.slice(0, state.at);

/** Returns the game up to the shown position. */
export const game = () => replay(state.start, played());

/** Returns the address of this state, or of other moves. */
export function address(letters = state.letters) {
  const query = new URLSearchParams({ pos: written(state.start) });
  if (letters) query.set("moves", letters);
  if (letters === state.letters && state.at < letters.length) query.set("at", state.at);
  if (state.hidden) query.set("hide", "1");
  if (state.computer) query.set("computer", state.computer);
  if (state.level !== "good") query.set("level", state.level);
  if (state.thinking !== THINKING_DEFAULT) query.set("think", state.thinking);
  if (state.editing) query.set("edit", "1");
  return `?${query}`;
}

/** Reads the state from the URL of the page. Returns what is wrong with it, or nothing. */
export function fromAddress() {
  const query = new URLSearchParams(location.search);
  let mistake = "";
  try {
    state.start = read(query.get("pos") ?? OPENING);
    state.letters = query.get("moves") ?? "";
    replay(state.start, state.letters);
  } catch (error) {
    mistake = `invalid position in the URL: ${error.message}.`;
    state.start = read(OPENING);
    state.letters = "";
  }
  const at = Number(query.get("at") ?? state.letters.length);
  state.at = Number.isInteger(at) ? Math.min(Math.max(at, 0), state.letters.length) : state.letters.length;
  state.hidden = query.get("hide") === "1";
  state.computer = ["S", "N", "both"].includes(query.get("computer")) ? query.get("computer") : "";
  state.level = LEVELS.includes(query.get("level")) ? query.get("level") : "good";
  const thinking = Number(query.get("think") ?? THINKING_DEFAULT);
  state.thinking = THINKING.includes(thinking) ? thinking : THINKING_DEFAULT;
  state.editing = query.get("edit") === "1";
  return mistake;
}
