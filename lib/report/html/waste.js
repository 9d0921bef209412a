// What reserved memory is used for, layer upon layer, for one policy.

// From the bottom up; each is what its layer adds. Requested bytes are of every active block, so those that only wait
// for other streams are taken from them.
const kLayers = [
  {name: 'in use', color: 'layer-0', of: (at) => at.requested - waiting(at)},
  {name: 'waiting for other streams', color: 'layer-1', of: (at) => waiting(at)},
  {name: 'lost to rounding', color: 'layer-2', of: (at) => at.active - at.requested},
  {name: 'free inside reserved', color: 'layer-3', of: (at) => at.reserved - at.active},
];

function waiting(at) {
  return Math.min(at.active - at.allocated, at.requested);
}

function levelAt(series, op) {
  return {requested: series.requested[op], allocated: series.allocated[op], active: series.active[op],
    reserved: series.reserved[op], largestFree: series.largest_free[op]};
}

function drawWaste(parent, trace, view) {
  let chart = null;
  const series = () => trace.policies[view.policy].series;
  const place = element('div'), values = element('div', {class: 'readout', 'aria-live': 'polite'});
  const say = (row) => {
    const op = row === null ? view.peak() : row, at = levelAt(series(), op);
    readout(values, [(row === null ? 'at the peak, op ' : 'op ') + count(op), 'bytes', 'of reserved'],
      [...kLayers.map((layer) => [element('span', {}, swatch(color(layer.color)), layer.name), layer.of(at),
        (at.reserved ? 100 * layer.of(at) / at.reserved : 0).toFixed(1) + ' %']),
      ['reserved', at.reserved, ''], ['largest free range', at.largestFree, '']]);
  };
  const draw = () => {
    if (chart) chart.destroy();
    place.replaceChildren();
    const xs = xAxis(trace, view).subarray(0, series().reserved.length);
    const columns = kLayers.map(() => new Float64Array(xs.length));
    for (let op = 0; op < xs.length; ++op) {
      const at = levelAt(series(), op);
      let top = 0;
      kLayers.forEach((layer, index) => { columns[index][op] = top += layer.of(at); });
    }
    chart = new Chart(place, {label: 'Use of memory', xs, columns, shared: view.shared, onPoint: say, options: {
      labels: ['x', ...kLayers.map((layer) => layer.name)], axes: axes(view.byTime),
      colors: kLayers.map((layer) => color(layer.color)), fillGraph: true, fillAlpha: 1, strokeWidth: 0.5,
    }});
    say(null);
  };
  parent.append(element('div', {class: 'controls'}, kLayers.map((layer) =>
    element('span', {class: 'legend'}, swatch(color(layer.color)), layer.name))), place, values);
  draw();
  return {redraw: draw, destroy: () => chart.destroy()};
}
