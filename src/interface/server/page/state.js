// The state of the page: a game, a place in it, and choices. The URL holds all of it.

import { OPENING, read, replay, resignation, written } from "./game.js";

/** The levels of the computer, the weakest first, and what each is like. */
export const LEVELS = ["beginner", "casual", "strong", "expert", "perfect"];
const LEVEL_DEFAULT = "casual";
/** The seconds that the server may think about a position, and those of an address without them. */
export const THINKING = [0, 1, 5, 20, 60];
const THINKING_DEFAULT = 5;
/** The values of `computer`: the side or sides that the computer plays. */
export const COMPUTERS = ["", "S", "N", "both"];

export const state = {
  start: read(OPENING), letters: "", at: 0,
  /** The side that has resigned after the last move. */
  resigned: "",
  /** Whether values are hidden; `null` until somebody has chosen. */
  hidden: null,
  computer: "", level: LEVEL_DEFAULT, thinking: THINKING_DEFAULT,
  /** Whether the board is turned, so that North sits below. */
  turned: false,
  editing: false, adding: true,
};

/** The letters of the moves up to the shown position. */
export const played = () => state.letters.slice(0, state.at);

/** Returns the game up to the shown position. */
export const game = () => gameTo(state.at);

/** Returns the game up to a move. */
export function gameTo(at) {
  const { positions, outcome } = replay(state.start, state.letters.slice(0, at));
  const resigns = state.resigned && at === state.letters.length && !outcome;
  return { positions, outcome: resigns ? resignation(state.resigned) : outcome };
}

/** Whether a person plays the computer, and the game is not over. */
export const isAgainstComputer = () => ["S", "N"].includes(state.computer) && !gameTo(state.letters.length).outcome;

/** Whether values are hidden: unless somebody has chosen, while a person plays the computer. */
export const isHidden = () => state.hidden ?? isAgainstComputer();

/** Returns the address of this state, or of other moves. */
export function address(letters = state.letters) {
  const query = new URLSearchParams({ pos: written(state.start) });
  if (letters) query.set("moves", letters);
  if (letters === state.letters && state.at < letters.length) query.set("at", state.at);
  if (letters === state.letters && state.resigned) query.set("resigned", state.resigned);
  if (state.hidden !== null) query.set("hide", state.hidden ? "1" : "0");
  if (state.computer) query.set("computer", state.computer);
  if (state.level !== LEVEL_DEFAULT) query.set("level", state.level);
  if (state.thinking !== THINKING_DEFAULT) query.set("think", state.thinking);
  if (state.turned) query.set("turned", "1");
  if (state.editing) query.set("edit", "1");
  return `?${query}`;
}

/** Reads the state from the URL of the page. Returns what is wrong with it, or nothing. */
export function fromAddress() {
  const query = new URLSearchParams(location.search);
  const oneOf = (all, name, otherwise) => (all.includes(query.get(name)) ? query.get(name) : otherwise);
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
  state.resigned = oneOf(["S", "N"], "resigned", "");
  state.hidden = { 0: false, 1: true }[query.get("hide")] ?? null;
  state.computer = oneOf(COMPUTERS, "computer", "");
  state.level = oneOf(LEVELS, "level", LEVEL_DEFAULT);
  const thinking = Number(query.get("think") ?? THINKING_DEFAULT);
  state.thinking = THINKING.includes(thinking) ? thinking : THINKING_DEFAULT;
  state.turned = query.get("turned") === "1";
  state.editing = query.get("edit") === "1";
  return mistake;
}
