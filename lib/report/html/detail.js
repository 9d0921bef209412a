// As many rows of long columns as a chart can show: all where the window is narrow enough, else in each slice of it
// those at which a column is smallest or largest. What is drawn looks as if every row was there, and every row that is
// there is a true one.

const kSlices = 800;        // of the window
const kCoarseSlices = 400;  // of everything, for what lies outside

// Adds the rows of [begin, end) that are worth drawing to `kept`.
function keepExtremes(columns, begin, end, slices, kept) {
  if (end - begin <= 2 * slices) {
    for (let row = begin; row < end; ++row) kept.add(row);
    return;
  }
  for (let slice = 0; slice < slices; ++slice) {
    const from = begin + Math.floor((end - begin) * slice / slices);
    const to = begin + Math.floor((end - begin) * (slice + 1) / slices);
    kept.add(from);
    for (const column of columns) {
      let low = from, high = from;
      for (let row = from + 1; row < to; ++row) {
        if (column[row] < column[low]) low = row;
        if (column[row] > column[high]) high = row;
      }
      kept.add(low);
      kept.add(high);
    }
  }
}

// First index whose value is at least `value`.
function lowerBound(ascending, value) {
  let low = 0, high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// `xs`: ascending; `columns`: arrays as long, or shorter; `always`: rows to keep whatever the window.
class Detail {
  constructor(xs, columns, always = []) {
    this.xs = xs;
    this.columns = columns;
    this.coarse = new Set([0, xs.length - 1, ...always]);
    keepExtremes(columns, 0, xs.length, kCoarseSlices, this.coarse);
  }

  // Numbers of the rows to draw when [low, high] is what is seen, ascending.
  rows(low, high) {
    const begin = Math.max(lowerBound(this.xs, low) - 1, 0);
    const end = Math.min(lowerBound(this.xs, high) + 2, this.xs.length);
    const kept = new Set();
    keepExtremes(this.columns, begin, end, kSlices, kept);
    for (const row of this.coarse) kept.add(row);
    return Float64Array.from(kept).sort();
  }
}
