// Colours, which the style sheet has for light and dark.

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

const kPaletteSize = 8;

function seriesColor(index) {
  return color('series-' + (index % kPaletteSize));
}

// "#rrggbb" made transparent.
function faded(hexColor, alpha) {
  const part = (at) => parseInt(hexColor.slice(at, at + 2), 16);
  return `rgba(${part(1)}, ${part(3)}, ${part(5)}, ${alpha})`;
}

// Calls `redraw` when the reader's system changes between light and dark.
function onThemeChange(redraw) {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
}

function swatch(fill) {
  const mark = element('span', {class: 'swatch', 'aria-hidden': 'true'});
  mark.style.background = fill;
  return mark;
}
