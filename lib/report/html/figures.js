// The sections that are text: the verdict and the comparison.

function drawVerdict(parent, trace) {
  parent.append(element('ul', {class: 'verdict'}, trace.verdict.map((line, index) =>
    element('li', {class: trace.policies[index].survives ? 'good' : 'bad'}, line))));
  if (trace.recorded_ooms) parent.append(element('pre', {}, trace.recorded_ooms.trimEnd()));
}

function textTable({columns, rows}) {
  const cell = ({text, best}, index) => element(index === 0 ? 'th' : 'td',
    {scope: index === 0 ? 'row' : undefined, class: best ? 'best' : undefined}, text + (best ? ' *' : ''));
  return element('div', {class: 'wide'}, element('table', {class: 'comparison'},
    element('thead', {}, element('tr', {}, columns.map((title) => element('th', {scope: 'col'}, title)))),
    element('tbody', {}, rows.map((row) => element('tr', {}, row.map(cell))))));
}

function drawTable(parent, trace) {
  parent.append(textTable(trace.table), element('p', {class: 'note'},
    'A star marks the best of a column. "over need" is peak reserved over the least that any allocator needs.'));
}
