//! A script that finds faults in the layout of a page.

/// A script that returns faults: elements that are wider than the window, overlap, are cut off or are too
/// small to touch, and text of low contrast (WCAG 2.2, 1.4.3 and 2.5.8).
pub(crate) const FAULTS: &str = r#"
const faults = [];
const name = (one) => `${one.tagName} ${one.id || one.className || ""} ${one.textContent.slice(0, 20)}`;
// A phone widens the window to fit an element, but not the page.
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) faults.push(`${document.documentElement.scrollWidth} pixels wide`);

// Moves that are scrolled out of their box are not seen.
const isInside = (one, box) => !box || (one.getBoundingClientRect().top >= box.getBoundingClientRect().top - 1
  && one.getBoundingClientRect().bottom <= box.getBoundingClientRect().bottom + 1);

// A dialog lies upon the page, which is inert.
const open = document.querySelector("dialog[open]");

const all = [...document.querySelectorAll("h1, .badge, .store, .pit, #banner, #evaluation p, #bar figcaption, button, label, input, select, summary, textarea, #line a, #lines a, nav a, #tools a, .example .board, caption, th, td, svg, figcaption, footer p")]
  .filter((one) => one.checkVisibility() && one.getClientRects().length && isInside(one, one.closest('#history')) && (!open || open.contains(one)));
const boxes = all.map((one) => one.getBoundingClientRect());
all.forEach((one, at) => {
  const box = boxes[at];
  if (box.left < -0.5 || box.right > width + 0.5) faults.push(`beyond the edge: ${name(one)}`);
  if (one.matches("button, .pit, .store") && one.scrollWidth > one.clientWidth + 1) faults.push(`cut off: ${name(one)}`);
  if (one.matches("button, summary, #line a, #lines a, nav a, #tools a") && (box.width < 24 || box.height < 24)) faults.push(`too small: ${name(one)}`);
  all.slice(at + 1).forEach((other, next) => {
    if (one.contains(other) || other.contains(one)) return;
    const with_ = boxes[at + 1 + next];
    const wide = Math.min(box.right, with_.right) - Math.max(box.left, with_.left);
    const high = Math.min(box.bottom, with_.bottom) - Math.max(box.top, with_.top);
    if (wide > 1 && high > 1) faults.push(`one upon the other: ${name(one)}, ${name(other)}`);
  });
});

const rgb = (text) => text.match(/[\d.]+/g).map(Number);
const light = (text) => {
  const [red, green, blue] = rgb(text).slice(0, 3).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ground = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if ((rgb(color)[3] ?? 1) === 1) return color;
  }
  return "rgb(255, 255, 255)";
};
for (const one of document.querySelectorAll("h1, .badge, .name, .stones, .value, #banner, #evaluation p, button, label, input, select, textarea, summary, a, td, th, caption, figcaption, footer p")) {
  if (!one.checkVisibility() || !one.textContent.trim()) continue;
  const [a, b] = [light(getComputedStyle(one).color), light(ground(one))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) faults.push(`contrast of ${contrast.toFixed(2)}: ${name(one)}`);
}
return [...new Set(faults)];
"#;
