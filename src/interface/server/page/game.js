// The rules of the family, and positions as text. Knows nothing of the page.
//
// Pits are numbered from South's side, whoever is to move: 0 to 5 are A to F, 6 to 11 are a to f.

export const OPENING = "4-4-4-4-4-4-4-4-4-4-4-4-0-0-S";
export const STONES_MAX = 48;

// The parameters of the rules, as `Rules` in the crate `game` has them. Those of awari until `playBy` is called.
let parameters = { slam: "illegal-unless-all", rest: "opponent", repetition: "split" };

/** Sets the parameters of the rules: slam, rest and repetition. */
export function playBy(rules) {
  parameters = { slam: rules.slam, rest: rules.rest, repetition: rules.repetition };
}

export const pitName = (pit) => "ABCDEFabcdef"[pit];
export const pitOf = (name) => "ABCDEFabcdef".indexOf(name);
export const stonesOf = (position) => position.pits.reduce((sum, stones) => sum + stones, 0);
export const ownPits = (side) => (side === "S" ? [0, 1, 2, 3, 4, 5] : [6, 7, 8, 9, 10, 11]);
const other = (side) => (side === "S" ? "N" : "S");

/** Formats a position in the long form, `4-4-...-0-0-S`. */
export function written(position) {
  return [...position.pits, ...position.stores, position.side].join("-");
}

/** Parses a position in the long form, or twelve numbers from South's first pit with South to move. Throws an error. */
export function read(text) {
  const parts = text.trim().split(text.includes("-") ? "-" : /[\s,]+/);
  const numbers = parts.slice(0, parts.length === 15 ? 14 : 12).map((part) => {
    if (!/^\d{1,2}$/.test(part.trim())) throw new Error(`"${part}" is no number of stones`);
    return Number(part);
  });
  const side = parts.length === 15 ? parts[14] : "S";
  if (parts.length !== 12 && parts.length !== 15) throw new Error(`expected 12 or 15 parts, found ${parts.length}`);
  if (side !== "S" && side !== "N") throw new Error(`"${side}" is not S or N`);
  const position = { pits: numbers.slice(0, 12), stores: [numbers[12] ?? 0, numbers[13] ?? 0], side };
  const stones = numbers.reduce((sum, one) => sum + one, 0);
  if (stones > STONES_MAX) throw new Error(`expected at most ${STONES_MAX} stones, found ${stones}`);
  return position;
}

/** Sows and captures without checking that the move is legal. */
function sown(position, pit) {
  const pits = [...position.pits];
  let hand = pits[pit];
  let at = pit;
  const path = [];
  pits[pit] = 0;
  while (hand > 0) {
    at = (at + 1) % 12;
    if (at === pit) continue;
    pits[at] += 1;
    path.push(at);
    hand -= 1;
  }
  const theirs = ownPits(other(position.side));
  const taken = [];
  while (theirs.includes(at) && (pits[at] === 2 || pits[at] === 3)) {
    taken.push(at);
    at -= 1;
  }
  const isSlam = taken.length > 0 && theirs.every((pit) => pits[pit] === 0 || taken.includes(pit));
  if (isSlam && parameters.slam === "no-capture") taken.length = 0;
  if (isSlam && parameters.slam === "leave-first") taken.shift();
  if (isSlam && parameters.slam === "leave-last") taken.pop();
  const captures = taken.reduce((sum, pit) => sum + pits[pit], 0);
  for (const pit of taken) pits[pit] = 0;
  const stores = [...position.stores];
  stores[position.side === "S" ? 0 : 1] += captures;
  return { pit, captures, path, taken, isSlam, next: { pits, stores, side: other(position.side) } };
}

const starved = (position) => ownPits(position.side).every((pit) => position.pits[pit] === 0);

/** Returns the legal moves: pit, captures, the pits sown to and those captured from (in order), next. */
export function moves(position) {
  const all = ownPits(position.side).filter((pit) => position.pits[pit] > 0).map((pit) => sown(position, pit));
  const legal = all.filter((move) => !(move.isSlam && parameters.slam === "illegal"));
  const feeding = legal.filter((move) => !starved(move.next) || (move.isSlam && parameters.slam === "capture"));
  // Where each player keeps the own row, a game ends when no move feeds the opponent.
  return feeding.length > 0 || parameters.rest === "own-side" ? feeding : legal;
}

/** Returns the positions of a game, and its outcome if it is over. Throws an error at an illegal move. */
export function replay(start, letters) {
  const positions = [start];
  const seen = new Set();
  let outcome = over(start, seen);
  [...letters].forEach((letter, number) => {
    const what = `move ${number + 1}, ${letter}`;
    if (outcome) throw new Error(`${what}: the game is over`);
    const move = moves(positions.at(-1)).find((one) => pitName(one.pit) === letter);
    if (!move) throw new Error(`${what}: not a legal move`);
    positions.push(move.next);
    outcome = over(move.next, seen);
  });
  return { positions, outcome };
}

/**
 * Returns the outcome if a position, given the previous ones, ends the game: the reason, the lead of South, and the stores with
 * the remaining stones, of which a player may get half of an odd number.
 */
function over(now, seen) {
  const lead = now.stores[0] - now.stores[1];
  const rows = ["S", "N"].map((side) => ownPits(side).reduce((sum, pit) => sum + now.pits[pit], 0));
  const byRows = lead + rows[0] - rows[1];
  if (moves(now).length === 0) {
    const left = stonesOf(now);
    const name = now.side === "S" ? "South" : "North";
    const taken = lead + (now.side === "S" ? -left : left);
    return ended(now, `${name} cannot move`, parameters.rest === "own-side" ? byRows : taken);
  }
  // Stores are part of the text and only grow.
  const text = written(now);
  if (seen.has(text)) {
    return ended(now, "the position is repeated", parameters.repetition === "own-side" ? byRows : lead);
  }
  seen.add(text);
  return null;
}

function ended(now, why, lead) {
  const all = stonesOf(now) + now.stores[0] + now.stores[1];
  return { why, lead, stores: [(all + lead) / 2, (all - lead) / 2] };
}

/** Returns the outcome of a game that a side resigns: the stones stay where they are. */
export const resignation = (side) => ({ why: `${side === "S" ? "South" : "North"} resigns`, winner: other(side) });

/** Formats stones in a store, which may be half of an odd number. */
export const held = (stones) => (stones % 1 ? `${Math.floor(stones) || ""}½` : String(stones));

/** Describes an outcome, with the stones of both players as the board shows them. */
export function outcomeText({ why, lead, stores, winner }) {
  if (winner) return `${why}; ${winner === "S" ? "South" : "North"} wins`;
  const [most, least] = [Math.max(...stores), Math.min(...stores)].map(held);
  return `${why}; ${lead === 0 ? "a draw," : `${lead > 0 ? "South" : "North"} wins`} ${most} to ${least}`;
}
