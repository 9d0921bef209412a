// Figures as people read them. Sizes are binary, as everywhere in fragsim.

const kUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

function count(value) {
  return Math.round(value).toLocaleString('en-US');
}

// Three digits and a unit: "9.49 GiB".
function size(bytes) {
  let value = Math.abs(bytes), unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.length) value /= 1024, ++unit;
  const digits = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return (bytes < 0 ? '-' : '') + value.toFixed(digits) + ' ' + kUnits[unit];
}

// For an axis: no digits that say nothing.
function axisSize(bytes) {
  return bytes === 0 ? '0' : size(bytes).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ');
}

function hex(address) {
  return '0x' + address.toString(16);
}

function seconds(value) {
  return value.toFixed(value < 10 ? 3 : 2) + ' s';
}

// An element with attributes and children; text goes in as text, never as markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}
