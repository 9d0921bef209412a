// The memory map: a rectangle a block, its addresses upwards, its life from left to right. Address space that was not
// in use is left out, so that segments lie upon each other. dygraphs has the axes, the zoom and the canvas; the
// rectangles are drawn in its hook for plotters.

const kWaitingAlpha = 0.4;  // of a block that the program let go and another stream still uses
const kSitesShown = kPaletteSize;
const kSizeClasses = [[2 ** 20, 'up to 1 MiB'], [10 * 2 ** 20, 'up to 10 MiB'], [100 * 2 ** 20, 'up to 100 MiB'],
  [2 ** 30, 'up to 1 GiB'], [Infinity, 'above 1 GiB']];
const kAges = [[0, 'allocated later'], [100, 'less than 100 ops before'], [1000, 'less than 1,000'],
  [10000, 'less than 10,000'], [Infinity, 'older']];

// How far above the bottom each address is drawn.
function placer(ranges) {
  const bottoms = [];
  let top = 0;
  for (const bytes of ranges.bytes) {
    bottoms.push(top);
    top += bytes;
  }
  const place = (address) => {
    let low = 0, high = ranges.address.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ranges.address[middle] <= address) low = middle;
      else high = middle - 1;
    }
    return bottoms[low] + address - ranges.address[low];
  };
  return {place, top};
}

// Columns as rectangles in the chart's own measures.
function rectangles(columns, place) {
  const time = (column, i) => !column || column[i] < 0 ? Infinity : column[i];
  return Array.from(columns.address, (address, i) => ({
    address, bottom: place(address), bytes: columns.bytes[i],
    begin: columns.begin[i], letGo: time(columns.let_go, i), end: time(columns.end, i),
    requested: columns.requested && columns.requested[i], site: columns.site ? columns.site[i] : -1,
  }));
}

// {colorOf(block), entries: [fill, text]}: what the colours mean.
const kColorings = {
  'call site': (trace, map, blocks) => {
    const weights = new Map();  // by site, bytes at the moment
    for (const {site, bytes, begin, end} of blocks)
      if (site >= 0 && begin <= map.op && end > map.op) weights.set(site, (weights.get(site) || 0) + bytes);
    const largest = [...weights].sort((a, b) => b[1] - a[1]).slice(0, kSitesShown);
    const fills = new Map(largest.map(([site], index) => [site, seriesColor(index)]));
    return {colorOf: (block) => fills.get(block.site) || color('other'),
      entries: [...largest.map(([site, bytes]) => [fills.get(site), `${trace.sites[site]} (${size(bytes)})`]),
        [color('other'), 'other call sites']]};
  },
  age: (trace, map) => classes(kAges, 'age-', ({begin}) => begin < 0 ? Infinity : map.op - begin + 1,
    (text, index) => index === 1 ? text + ' op ' + count(map.op) : text),
  size: () => classes(kSizeClasses, 'size-', (block) => block.bytes, (text) => text),
};

function classes(limits, name, valueOf, textOf) {
  const fills = limits.map((limit, index) => color(name + index));
  return {colorOf: (block) => fills[limits.findIndex(([limit]) => valueOf(block) <= limit)],
    entries: limits.map(([limit, text], index) => [fills[index], textOf(text, index)])};
}

function drawRectangles(plot, map, segments, blocks, colorOf) {
  const {drawingContext: context, dygraph: graph, plotArea: area} = plot;
  const [first, last] = graph.xAxisRange(), [low, high] = graph.yAxisRange();
  const x = (op) => graph.toDomXCoord(Math.min(Math.max(op, first), last));
  const fill = (rectangle, begin, end) => {
    if (end <= first || begin >= last || rectangle.bottom >= high || rectangle.bottom + rectangle.bytes <= low) return;
    const left = x(begin), top = graph.toDomYCoord(rectangle.bottom + rectangle.bytes);
    const width = Math.max(x(end) - left, 0.7), height = Math.max(graph.toDomYCoord(rectangle.bottom) - top, 0.5);
    const edge = width > 4 && height > 4 ? 0.5 : 0;  // what touches stays apart as far as there is room
    context.fillRect(left + edge, top + edge, width - 2 * edge, height - 2 * edge);
  };
  context.save();
  context.fillStyle = color('free');
  for (const segment of segments) fill(segment, segment.begin, segment.end);
  for (const block of blocks) {
    context.fillStyle = colorOf(block);
    fill(block, block.begin, Math.min(block.letGo, block.end));
    if (block.letGo >= block.end) continue;
    context.globalAlpha = kWaitingAlpha;
    fill(block, block.letGo, block.end);
    context.globalAlpha = 1;
  }
  context.fillStyle = color('limit');
  if (map.op >= first && map.op <= last) context.fillRect(x(map.op) - 0.5, area.y, 1, area.h);
  context.restore();
}

function drawMap(parent, trace, view) {
  const controls = element('div', {class: 'controls'}), place = element('div');
  const key = element('div', {class: 'controls'});
  const values = element('div', {class: 'readout', 'aria-live': 'polite'});
  const colorings = Object.keys(kColorings).filter((name) => name !== 'call site' || trace.sites.some((site) => site));
  let maps = null, moment = 0, coloring = 0, chart = null;

  const draw = () => {
    if (chart) chart.destroy();
    place.replaceChildren();
    const map = maps[moment], {place: bottomOf, top} = placer(map.ranges);
    const segments = rectangles(map.segments, bottomOf), blocks = rectangles(map.blocks, bottomOf);
    const {colorOf, entries} = kColorings[colorings[coloring]](trace, map, blocks);
    key.replaceChildren(...entries.map(([fill, text]) => element('span', {class: 'legend'}, swatch(fill), text)),
      element('span', {class: 'legend'}, swatch(color('free')), 'reserved, free'));

    chart = new Chart(place, {label: 'Memory map', xs: [map.first_op, map.end_op], columns: [[0, top]], options: {
      labels: ['op', 'address'], axes: axes(false, false), valueRange: [0, top], colors: [color('axis')],
      highlightCircleSize: 0,
      plotter: (plot) => drawRectangles(plot, map, segments, blocks, colorOf),
    }});
    const at = (op, level) => (rectangle) => rectangle.begin <= op && rectangle.end > op &&
      rectangle.bottom <= level && rectangle.bottom + rectangle.bytes > level;
    const show = (event) => {
      const [op, level] = chart.graph.toDataCoords(...chart.graph.eventToDomCoords(event));
      const segment = segments.find(at(op, level));
      describe(values, trace, blocks.find(at(op, level)), segment, op, segment ? level - segment.bottom : 0);
    };
    chart.plot.addEventListener('mousemove', show);
    values.replaceChildren(element('p', {}, 'Point at a block to see what it is.'));
  };
  const redraw = () => {  // of another policy, which has other moments
    maps = trace.policies[view.policy].maps;
    moment = Math.min(moment, maps.length - 1);
    controls.replaceChildren(
      choice('around', maps.map((map) => `${map.moment}, op ${count(map.op)}`), moment, (index) => {
        moment = index;
        draw();
      }),
      choice('coloured by', colorings, coloring, (index) => {
        coloring = index;
        draw();
      }));
    draw();
  };
  parent.append(controls, place, key, values);
  redraw();
  return {redraw, destroy: () => chart.destroy()};
}

// Says what is at a point: `offset` bytes above the bottom of `segment`.
function describe(place, trace, block, segment, op, offset) {
  const exact = (bytes) => `${size(bytes)} (${count(bytes)} B)`;
  const say = (text, ...more) => place.replaceChildren(element('p', {}, text, ...more));
  if (!block && !segment) return say(`op ${count(op)}: not reserved`);
  if (!block)
    return say(`op ${count(op)}: free, ${count(offset)} B above the beginning of the segment of ` +
      `${exact(segment.bytes)} at ${hex(segment.address)}`);
  const life = [block.begin < 0 ? 'there from the start' : `allocated at op ${count(block.begin)}`,
    ...(block.letGo < block.end ? [`let go at op ${count(block.letGo)}`] : []),
    block.end === Infinity ? 'never freed' : `freed at op ${count(block.end)}`];
  say(`${exact(block.bytes)}, ${count(block.requested)} B requested, at ${hex(block.address)}: ${life.join(', ')}`,
    block.site >= 0 ? element('span', {class: 'site'}, trace.sites[block.site]) : null);
}
