// A chart of dygraphs with what all of ours share: buttons and keys to zoom, a call for what is under the pointer, and
// a window that charts of the same ops have in common.

const kZoomStep = 0.5, kPanStep = 0.2;

// dygraphs' option `axes` for bytes by op, or by time.
function axes(byTime = false, drawGrid = true) {
  return {x: {axisLabelFormatter: (x) => byTime ? x + ' s' : count(x), drawGrid: false},
    y: {labelsKMG2: true, axisLabelFormatter: axisSize, axisLabelWidth: 66, drawGrid}};
}

// Charts that show the same part of the x axis.
class SharedWindow {
  constructor() {
    this.charts = [];
  }
  // A chart that comes later shows what the others do.
  add(chart) {
    if (this.charts.length > 0) chart.updateOptions({dateWindow: this.charts[0].xAxisRange()});
    this.charts.push(chart);
  }
  remove(chart) {
    this.charts = this.charts.filter((other) => other !== chart);
  }
  follow(leader) {
    if (this.busy) return;
    this.busy = true;
    const window = leader.xAxisRange();
    for (const chart of this.charts)
      if (chart !== leader && String(chart.xAxisRange()) !== String(window)) chart.updateOptions({dateWindow: window});
    this.busy = false;
  }
}

// `xs`, `columns`: the data; `always`: rows that are drawn whatever the window. `options`: dygraphs'. `onPoint(row)`:
// of the row that the pointer or the keys are at, null for none.
class Chart {
  constructor(parent, {label, xs, columns, always, options, shared, onPoint = () => {}}) {
    this.xs = xs;
    this.columns = columns;
    this.onPoint = onPoint;
    this.shared = shared;
    this.detail = new Detail(xs, columns, always);
    this.plot = element('div', {class: 'plot', tabindex: '0', role: 'application', 'aria-label':
      label + '. Keys: arrows move, plus and minus zoom, 0 shows all, shift and arrows step through the values.',
      onkeydown: (event) => this.key(event)});
    parent.append(this.plot);
    this.graph = new Dygraph(this.plot, this.rows(xs[0], xs[xs.length - 1]), {
      stepPlot: true, legend: 'never', includeZero: true, strokeWidth: 1.5, highlightCircleSize: 3,
      gridLineColor: color('grid'), axisLineColor: color('axis'), axisLabelFontSize: 12, rightGap: 8,
      rangeSelectorPlotStrokeColor: color('axis'), rangeSelectorPlotFillColor: color('grid'),
      rangeSelectorPlotFillGradientColor: color('grid'), rangeSelectorBackgroundStrokeColor: color('axis'),
      rangeSelectorForegroundStrokeColor: color('axis'), rangeSelectorHeight: 32,
      interactionModel: Dygraph.defaultInteractionModel,  // dragging zooms, also where there is a range selector
      highlightCallback: (event, x, points, row) => this.point(this.drawn[row]),
      unhighlightCallback: () => this.point(null),
      drawCallback: (graph, first) => first || this.drew(),
      ...options,
    });
    this.window = String(this.graph.xAxisRange());
    if (shared) shared.add(this.graph);
    parent.append(this.toolbar());
  }

  // What dygraphs is given to draw [low, high].
  rows(low, high) {
    this.drawn = this.detail.rows(low, high);
    const value = (column, row) => row < column.length ? column[row] : null;
    return Array.from(this.drawn, (row) => [this.xs[row], ...this.columns.map((column) => value(column, row))]);
  }

  // After each drawing: another window needs other rows.
  drew() {
    const window = this.graph.xAxisRange();
    if (this.window === String(window)) return;
    this.window = String(window);
    if (this.detail.coarse.size < this.xs.length) this.graph.updateOptions({file: this.rows(...window)});
    if (this.shared) this.shared.follow(this.graph);
  }

  point(row) {
    this.row = row;
    this.onPoint(row);
  }

  extremes() {
    return this.graph.xAxisExtremes();
  }

  // Moves and scales the window: `move` in its own widths, `scale` of its width.
  change(move, scale) {
    const [low, high] = this.graph.xAxisRange(), [first, last] = this.extremes();
    const width = Math.min((high - low) * scale, last - first);
    let begin = (low + high) / 2 + move * (high - low) - width / 2;
    begin = Math.min(Math.max(begin, first), last - width);
    this.graph.updateOptions({dateWindow: [begin, begin + width]});
  }

  whole() {
    this.graph.resetZoom();
  }

  // To the value `steps` drawn rows from the present one, which is kept in sight.
  step(steps) {
    const [low, high] = this.graph.xAxisRange();
    const at = (row) => lowerBound(this.drawn, row);
    const next = typeof this.row === 'number' ? at(this.row) + steps : at(lowerBound(this.xs, (low + high) / 2));
    const row = this.drawn[Math.min(Math.max(next, 0), this.drawn.length - 1)], x = this.xs[row];
    if (x < low || x > high) this.change((x - (low + high) / 2) / (high - low), 1);
    this.graph.setSelection(at(row));
    this.point(row);
  }

  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps && event.shiftKey) this.step(steps);
    else if (steps) this.change(steps * kPanStep, 1);
    else if (event.key === '+' || event.key === '=') this.change(0, kZoomStep);
    else if (event.key === '-') this.change(0, 1 / kZoomStep);
    else if (event.key === '0' || event.key === 'Home') this.whole();
    else return;
    event.preventDefault();
  }

  toolbar() {
    const button = (text, label, act) =>
      element('button', {type: 'button', title: label, 'aria-label': label, onclick: act}, text);
    return element('div', {class: 'toolbar'},
      button('+', 'zoom in', () => this.change(0, kZoomStep)),
      button('−', 'zoom out', () => this.change(0, 1 / kZoomStep)),
      button('◂', 'move left', () => this.change(-kPanStep, 1)),
      button('▸', 'move right', () => this.change(kPanStep, 1)),
      button('all', 'show all', () => this.whole()),
      element('span', {class: 'hint'}, 'drag to zoom, shift-drag to move, double-click for all; keys ← → + − 0'));
  }

  destroy() {
    if (this.shared) this.shared.remove(this.graph);
    this.graph.destroy();
  }
}

// One of several: buttons of which one is pressed.
function choice(label, entries, chosen, onChange) {
  const name = 'choice-' + ++choice.made;
  return element('fieldset', {class: 'choice'}, element('legend', {}, label),
    entries.map((text, index) => element('label', {}, element('input', {type: 'radio', name, value: index,
      checked: index === chosen, onchange: () => onChange(index)}), element('span', {}, text))));
}
choice.made = 0;

// One of many.
function selection(label, entries, chosen, onChange) {
  return element('label', {class: 'selection'}, label + ' ', element('select',
    {onchange: (event) => onChange(event.target.selectedIndex)},
    entries.map((text, index) => element('option', {selected: index === chosen}, text))));
}

// A table of what is under the pointer; a number is bytes, shown short and in full.
function readout(place, head, rows) {
  const cells = (cell) => typeof cell !== 'number' ? element('td', {}, cell)
    : element('td', {}, element('span', {}, size(cell)), element('small', {}, count(cell) + ' B'));
  place.replaceChildren(element('table', {},
    element('thead', {}, element('tr', {}, head.map((text) => element('th', {scope: 'col'}, text)))),
    element('tbody', {}, rows.map((row) => element('tr', {}, row.map(cells))))));
}
