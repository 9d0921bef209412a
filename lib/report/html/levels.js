// Reserved, allocated and requested memory of every policy, by op or by time.

const kMeasures = ['reserved', 'allocated', 'requested'];
const kLines = {
  reserved: {strokeWidth: 2, alpha: 1, text: 'thick'},
  allocated: {strokeWidth: 1, alpha: 0.65, text: 'thin'},
  requested: {strokeWidth: 1, alpha: 0.4, text: 'pale'},
};
const kMarked = 30;  // out of memory marks a policy, evenly among all; more would hide the chart

// What dygraphs calls annotations, with the op of each: requests that a policy refused.
function oomMarks(trace, xs) {
  const mark = (policy, asked, text) => {
    const op = Math.min(asked, xs.length - 1);
    return {op, x: xs[op], series: policy + ' reserved', shortText: '✕', text, cssClass: 'oom', width: 16, height: 16,
      tickHeight: 6};
  };
  return trace.policies.flatMap(({label, ooms, recorded_ooms: recorded}, policy) => [
    ...ooms.filter((oom, number) => number % Math.ceil(ooms.length / kMarked) === 0).map((oom) => mark(policy, oom.op,
      `${label}: out of memory at op ${count(oom.op)}: ${size(oom.requested)} asked for, largest free range ` +
      `${size(oom.largest_free)}; cause: ${oom.cause}`)),
    ...recorded.filter((oom) => !oom.served).map((oom) => mark(policy, oom.op,
      `${label}: refuses the ${size(oom.requested)} that the recorded run did not get, before op ${count(oom.op)}`)),
  ]);
}

function drawLevels(parent, trace, view) {
  const several = trace.policies.length > 1;
  const shown = {policies: trace.policies.map(() => true),
    measures: {reserved: true, allocated: trace.policies.length <= 3, requested: !several}};
  const xs = xAxis(trace, view), marks = oomMarks(trace, xs);
  const columns = trace.policies.flatMap((policy) => kMeasures.map((measure) => policy.series[measure]));
  const series = {}, labels = [view.byTime ? 'time' : 'op'], colors = [];
  trace.policies.forEach((policy, index) => kMeasures.forEach((measure) => {
    const name = index + ' ' + measure;
    labels.push(name);
    colors.push(faded(seriesColor(index), kLines[measure].alpha));
    const fillGraph = !several && measure === 'reserved';
    series[name] = {strokeWidth: kLines[measure].strokeWidth, fillGraph, fillAlpha: 0.12};
  }));
  if (trace.bound) {
    labels.push('bound');
    columns.push(Array.from(xs, (_, op) => op === 0 || op === xs.length - 1 ? trace.bound : null));
    colors.push(color('limit'));
    series.bound = {strokePattern: [6, 4], highlightCircleSize: 0, connectSeparatedPoints: true, stepPlot: false};
  }
  const visibility = () => [...trace.policies.flatMap((policy, index) =>
    kMeasures.map((measure) => shown.policies[index] && shown.measures[measure])), ...(trace.bound ? [true] : [])];

  const values = element('div', {class: 'readout', 'aria-live': 'polite'});
  const say = (row) => {
    const op = row === null ? xs.length - 1 : row;
    const at = 'op ' + count(op) + (trace.seconds ? ', ' + seconds(trace.seconds[op]) : '');
    readout(values, [row === null ? 'at the end, ' + at : at, ...kMeasures], trace.policies.map((policy, index) => {
      const last = policy.series.reserved.length - 1;
      return [element('span', {}, swatch(seriesColor(index)), policy.label),
        ...kMeasures.map((measure) => policy.series[measure][Math.min(op, last)])];
    }));
  };

  const toggle = (text, state, key, mark) => element('label', {class: 'toggle'}, element('input', {type: 'checkbox',
    checked: state[key], onchange: (event) => {
      state[key] = event.target.checked;
      chart.graph.setVisibility(Object.fromEntries(visibility().map((seen, index) => [index, seen])));
    }}), mark || null, text);
  parent.append(element('div', {class: 'controls'},
    several ? trace.policies.map((policy, index) =>
      toggle(policy.label, shown.policies, index, swatch(seriesColor(index)))) : [],
    element('span', {class: 'group'}, kMeasures.map((measure) =>
      toggle(`${measure} (${kLines[measure].text})`, shown.measures, measure))),
    trace.bound ? element('span', {class: 'legend'}, element('span', {class: 'dash', 'aria-hidden': 'true'}),
      trace.limits) : null));

  const chart = new Chart(parent, {label: 'Memory by ' + labels[0], xs, columns, always: marks.map((mark) => mark.op),
    shared: view.shared, onPoint: say, options: {
    labels, series, colors, visibility: visibility(), showRangeSelector: true, axes: axes(view.byTime),
  }});
  chart.graph.setAnnotations(marks);
  parent.append(values);
  say(null);
  return chart;
}
