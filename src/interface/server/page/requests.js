// Questions to the server.

import { LINES } from "./analysis.js";
import { written } from "./game.js";
import { played, state } from "./state.js";

/** The ids of the parts that the server renders. */
export const PARTS = ["line", "moves", "histogram"];
/** The most cached answers; the oldest is dropped first. */
const ANSWERS_MAX = 300;
/** The most requests while the server is busy. */
const TRIES_MAX = 20;

const answers = new Map();

/** The codes of refusals after which the same request may succeed. */
const PASSING = ["busy", "too-many-requests"];

/** Returns a cached answer, or requests one and caches it unless the server was busy. */
async function remembered(key, find) {
  if (answers.has(key)) return answers.get(key);
  const answer = await find();
  if (!PASSING.includes(answer.code)) {
    if (answers.size >= ANSWERS_MAX) answers.delete(answers.keys().next().value);
    answers.set(key, answer);
  }
  return answer;
}

export const posted = (path, body) => fetch(path, { method: "POST", body });

/** Requests the values of a position, or an error. In a batch, browsers do not report unknown positions as failures. */
export const probed = (position) => remembered(`probe ${written(position)}`, async () => {
  const response = await patient(() => posted("v1/probe", JSON.stringify({ positions: [written(position)] })));
  const found = await response.json();
  return found.answers ? (found.answers[0].error ?? found.answers[0]) : found;
});

/** Requests what the opening book has of a position. */
export const booked = (position, depth) => remembered(`book ${written(position)}`, async () => {
  const response = await fetch(`v1/book?pos=${written(position)}&depth=${depth}`);
  return response.ok ? response.json() : { code: "busy" };
});

export const partsOf = (page) => Object.fromEntries(PARTS.map((id) => [id, page.getElementById(id)]));

/** Requests the rendered parts for a position. */
export const rendered = (position) => remembered(`page ${written(position)}`, async () => {
  const response = await fetch(`./?pos=${written(position)}`);
  if (!response.ok) return { code: "busy" };
  const parts = partsOf(new DOMParser().parseFromString(await response.text(), "text/html"));
  // A part timed out on the server; a later request may succeed.
  return response.headers.get("cache-control") === "no-store" ? { ...parts, code: "busy" } : parts;
});

/** Notes the rendered parts of the page, which are those of a position. */
export const note = (position, parts) => answers.set(`page ${written(position)}`, parts);

const wait = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

/** Sends a request again while the server is busy, or answers others of this client. */
async function patient(send, signal) {
  for (let tries = 1; ; tries += 1) {
    const response = await send();
    const again = [429, 503].includes(response.status) && response.headers.get("retry-after");
    if (!again || tries === TRIES_MAX) return response;
    await wait(1000 * Number(again));
    signal?.throwIfAborted();
  }
}

/**
 * Analyzes the shown position. `show` receives each result and whether it is the last. Returns a refusal, if there
 * is one. Aborting `signal` ends the search on the server.
 */
export async function analyze(signal, show) {
  const query = new URLSearchParams({ pos: written(state.start), moves: played(), time: 1000 * state.thinking, lines: LINES });
  const response = await patient(() => fetch(`v1/analysis?${query}`, { signal }), signal);
  if (!response.ok) return response.json();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let received = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return null;
    received += value;
    const events = received.split("\n\n");
    received = events.pop();
    for (const event of events) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/.exec(event);
      const found = JSON.parse(data);
      if (name === "error") return found;
      show(found, name === "result");
    }
  }
}

/** Requests a move at a level. */
export const chosen = (level, signal) => {
  const query = new URLSearchParams({ pos: written(state.start), moves: played(), level, seed: Math.floor(Math.random() * 2 ** 32) });
  return patient(() => fetch(`v1/choose?${query}`, { signal }), signal).then((response) => response.json());
};

/** The most positions and milliseconds of a search for the analysis of a whole game. */
const [REVIEW_NODES, REVIEW_TIME] = [100_000, 1000];

/** Searches all moves of the position after some moves of the game. */
export const searched = (at, signal) => {
  const query = new URLSearchParams({
    pos: written(state.start), moves: state.letters.slice(0, at), time: REVIEW_TIME, nodes: REVIEW_NODES, lines: 6, format: "json",
  });
  return patient(() => fetch(`v1/analysis?${query}`, { signal }), signal).then((response) => response.json());
};
