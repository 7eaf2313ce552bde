// Elements, and values as text.

/** Makes an element with attributes, event handlers (`onclick`) and children. */
export function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** Makes an element of a drawing. */
export function drawn(name, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

export const byId = (id) => document.getElementById(id);

/** Formats a number with a sign. */
export const signed = (score) => (score > 0 ? `+${score}` : score < 0 ? `−${-score}` : "0");

/** Formats a score or its bounds. */
export const text = (value) => (typeof value === "number" ? signed(value) : `${signed(value.lo)} to ${signed(value.hi)}`);

/** Formats an estimate in hundredths of a stone, with a number of decimals. */
export function stonesOfHundredths(hundredths, decimals) {
  const unit = 10 ** (2 - decimals);
  const size = (Math.round(Math.abs(hundredths) / unit) * unit / 100).toFixed(decimals);
  return Number(size) === 0 ? size : `${hundredths > 0 ? "+" : "−"}${size}`;
}

/** Formats the value of a move, with its category unless that is unknown. */
export const worth = (move) => (move.category === "unknown" ? text(move.value) : `${text(move.value)} ${move.category}`);

export const count = (stones) => (stones === 1 ? "1 stone" : `${stones} stones`);
export const sideName = (side) => (side === "S" ? "South" : "North");
