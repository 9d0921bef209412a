// Puts the page together: a section for each thing that the data has something for.

// `drawn(trace)`: whether there is anything to draw. `draw` returns what has a `destroy` and may have a `redraw` for
// when another policy is chosen.
const kSections = [
  {title: 'Explanation', drawn: (trace) => trace.explanation, draw: drawExplanation},
  {title: 'Verdict', drawn: (trace) => trace.verdict, draw: drawVerdict},
  {title: 'Comparison', drawn: (trace) => trace.table, draw: drawTable},
  {title: 'Reserved and allocated memory', drawn: hasSeries, draw: drawLevels},
  {title: 'Use of reserved memory', drawn: hasSeries, draw: drawWaste, ofPolicy: true},
  {title: 'Memory map', drawn: hasSeries, draw: drawMap, ofPolicy: true},
];

function hasSeries(trace) {
  return trace.policies.length > 0 && trace.policies.every((policy) => policy.series);
}

function drawTrace(place, trace, view) {
  view.shared = new SharedWindow();
  view.peak = () => trace.policies[view.policy].maps[0].op;
  const followers = [];
  for (const section of kSections) {
    if (!section.drawn(trace)) continue;
    const body = element('section', {}, element('h2', {}, section.title));
    place.append(body);
    if (section.ofPolicy && trace.policies.length > 1) body.append(policySelection(trace, view, followers));
    const made = section.draw(body, trace, view);
    if (made && made.redraw) followers.push(made);
    if (made) view.made.push(made);
  }
}

// All of a page's selections show the same policy.
function policySelection(trace, view, followers) {
  const made = selection('policy', trace.policies.map((policy) => policy.label), view.policy, (index) => {
    view.policy = index;
    for (const select of document.querySelectorAll('.of-policy select')) select.selectedIndex = index;
    for (const follower of followers) follower.redraw();
  });
  made.classList.add('of-policy');
  return made;
}

function heading(trace) {
  const facts = [trace.format, 'device ' + trace.device, count(trace.ops) + ' ops', trace.completeness,
    trace.limits,
    trace.needed === undefined ? null : `at least ${size(trace.needed)} are needed`].filter((fact) => fact);
  const header = element('header', {}, element('h1', {}, trace.path), element('p', {class: 'facts'}, facts.join(' · ')));
  if (trace.starts) header.append(element('p', {class: 'facts'}, trace.starts));
  return header;
}

function drawPage(data) {
  const page = document.getElementById('page');
  const view = {trace: 0, byTime: false, policy: 0, made: []};
  const redraw = () => {
    const trace = data.traces[view.trace];
    for (const made of view.made.splice(0)) made.destroy();
    page.replaceChildren();
    if (!trace) return page.append(element('p', {}, 'There is nothing to show.'));
    view.policy = Math.min(view.policy, Math.max(trace.policies.length - 1, 0));
    view.byTime = view.byTime && Boolean(trace.seconds);
    document.title = trace.path + ' · fragsim';
    const several = data.traces.length > 1;
    page.append(heading(trace), element('div', {class: 'controls'},
      several ? selection('trace', data.traces.map((one) => `${one.path}, device ${one.device}`), view.trace,
        (index) => {
          view.trace = index;
          redraw();
          page.querySelector('.selection select').focus();
        }) : null,
      trace.seconds ? choice('x axis', ['ops', 'time'], view.byTime ? 1 : 0,
        (index) => {
          view.byTime = index === 1;
          redraw();
          page.querySelector('.choice input:checked').focus();
        }) : null));
    drawTrace(page, trace, view);
  };
  document.getElementById('foot').textContent = `fragsim ${data.version}; charts: dygraphs ${Dygraph.VERSION}, ` +
    'MIT licence, in this page';
  onThemeChange(redraw);
  redraw();
}

unpack(document.getElementById('data').textContent.trim()).then((data) => {
  data.traces.forEach(unpackTrace);
  drawPage(data);
  // After the browser has painted: from now on the page answers.
  requestAnimationFrame(() => setTimeout(() => {
    document.documentElement.dataset.ready = performance.now().toFixed(0);
  }));
}).catch((error) => {
  const text = 'This page could not be drawn: ' + error.message;
  document.getElementById('page').replaceChildren(element('p', {class: 'bad'}, text));
  throw error;
});
