// Positions and games from elsewhere: presets, random ones, text that is typed or pasted, and text to take away. What is wrong with
// a field is said beside it.

import { byId, count, el } from "./format.js";
import { OPENING, STONES_MAX, read, written } from "./game.js";
import { posted } from "./requests.js";
import { state } from "./state.js";

const PRESETS = [
  ["Opening", OPENING],
  ["Six against six", "0-0-1-2-1-2-1-0-2-1-1-1-18-18-S"],
  ["A lap", "0-0-0-0-0-14-1-1-0-0-0-0-16-16-S"],
  ["Feed or lose", "0-0-0-1-2-3-0-0-0-0-0-0-21-21-S"],
  ["Round and round", "1-0-0-0-0-0-1-0-0-0-0-0-23-23-S"],
];
/** The most moves in an address: the server accepts 4 KiB, including the position. */
const LETTERS_MAX = 3900;

/**
 * Makes the elements. `begin` gets a position, `load` a position and the letters of a game; `stones` are those of the databases.
 */
export function libraryElements({ begin, load, stones }) {
  const button = (label, title, action) => el("button", { type: "button", title, onclick: action }, label);
  const option = (value, label, chosen) => el("option", { value, selected: value === chosen }, label);
  const said = (field) => el("p", { class: "said", id: `${field}-said`, role: "status" });
  const tried = (action) => () => action().catch(() => say("ogn", "The server does not answer.", true));
  const choosePreset = (event) => {
    if (event.target.value) begin(read(event.target.value));
    event.target.value = "";
  };
  return [
    el("details", { open: true },
      el("summary", {}, "Positions"),
      el("div", { class: "controls" },
        el("label", {}, "Preset ", el("select", { id: "preset", onchange: choosePreset },
          option("", "choose"), ...PRESETS.map(([label, value]) => option(value, label)))),
        el("label", {}, "Random of ", el("select", { id: "stones" }, ...stones.map((one) => option(one, count(one), stones.at(-1))))),
        button("Random position", "Random position with this number of stones", () => begin(random(Number(byId("stones").value || 12)))),
      ),
      el("form", { class: "controls", onsubmit: (event) => { event.preventDefault(); setPosition(begin); } },
        el("label", {}, "Position ", el("input", { id: "pos", size: 34, autocomplete: "off", spellcheck: "false", "aria-describedby": "pos-said" })),
        el("button", {}, "Set"),
        button("Copy link", "Copy the URL of this page", copy)),
      said("pos"),
    ),
    el("details", {},
      el("summary", {}, "Import and export"),
      el("label", { for: "ogn" }, "A game: 1. F f 2. B d, F4 f4 B5x2, with tags and comments or without"),
      el("textarea", { id: "ogn", rows: 6, spellcheck: "false", "aria-describedby": "ogn-said" }),
      el("div", { class: "controls" },
        button("Import", "Read the game above", tried(() => importGame(load))),
        button("Export", "Write this game above", tried(exportGame)),
      ),
      said("ogn"),
    ),
  ];
}

/** Says something beside a field: what is wrong with what it holds, or what became of it. */
function say(field, words, isMistake = false) {
  byId(field).setAttribute("aria-invalid", String(isMistake));
  const said = byId(`${field}-said`);
  said.className = isMistake ? "said mistake" : "said";
  said.textContent = words;
  // The button may be at the lower edge of the window.
  if (words) said.scrollIntoView({ block: "nearest" });
}

/** Begins at the position in its field. */
function setPosition(begin) {
  try {
    const position = read(byId("pos").value);
    say("pos", "");
    begin(position);
  } catch (error) {
    say("pos", `Invalid position: ${error.message}.`, true);
  }
}

/** Loads the game in the text field. */
async function importGame(load) {
  const response = await posted("v1/transcript", byId("ogn").value);
  const found = await response.json();
  if (!response.ok) return say("ogn", `Invalid game: ${found.message}.`, true);
  const letters = found.moves.slice(0, found.over?.after);
  if (letters.length > LETTERS_MAX) return say("ogn", `That game has more than ${LETTERS_MAX} moves.`, true);
  load(read(found.start), letters);
  const first = found.games > 1 ? `The text has ${found.games} games; this is the first. ` : "";
  const ignored = letters.length < found.moves.length ? `The game was over after move ${letters.length}; later moves were ignored. ` : "";
  return say("ogn", `${first}${ignored}The board shows the game after ${letters.length === 1 ? "1 move" : `${letters.length} moves`}.`);
}

/** Writes this game into the text field. */
async function exportGame() {
  const query = new URLSearchParams({ pos: written(state.start), moves: state.letters });
  if (state.resigned) query.set("resigned", state.resigned);
  const response = await fetch(`v1/transcript?${query}`);
  if (!response.ok) return say("ogn", `The server cannot export the game: ${(await response.json()).message}.`, true);
  byId("ogn").value = await response.text();
  return say("ogn", "");
}

async function copy() {
  try {
    await navigator.clipboard.writeText(location.href);
    say("pos", "The link is copied.");
  } catch {
    say("pos", `Copy it from here: ${location.href}`);
  }
}

/** Distributes stones randomly over the pits; the stores share the rest. */
function random(stones) {
  const pits = Array(12).fill(0);
  for (let stone = 0; stone < stones; stone += 1) pits[Math.floor(Math.random() * 12)] += 1;
  const left = STONES_MAX - stones;
  return { pits, stores: [Math.ceil(left / 2), Math.floor(left / 2)], side: "S" };
}
