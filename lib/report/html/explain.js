// What `explain` found out: the verdict with its arithmetic, where the waste is, who pins it, and what would have helped.

function drawExplanation(parent, trace) {
  const {moments, waste, pinners, settings, notes, recommendation} = trace.explanation;
  const part = (title, ...content) => parent.append(element('h3', {}, title), ...content.filter((one) => one));
  parent.append(element('p', {class: 'cause'}, moments[0].sentence), element('pre', {}, moments[0].arithmetic.trimEnd()));
  if (moments.length > 1)
    part('The others', element('ul', {}, moments.slice(1).map(({sentence}) => element('li', {}, sentence))));
  part('Where reserved memory is', textTable(waste));
  if (pinners) part('Who keeps the free ranges apart', element('pre', {}, pinners.trimEnd()));
  part('What would have carried the run', textTable(settings), notes && element('pre', {}, notes.trimEnd()),
    element('pre', {class: 'advice'}, recommendation.trimEnd()));
}
