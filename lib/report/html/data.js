'use strict';
// The data of the page: base64 of a deflated JSON document (lib/report/page_data.hpp).

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return JSON.parse(await new Response(stream).text());
}

// Numbers from the first one and the differences from it on.
function summed(differences) {
  const values = new Float64Array(differences.length);
  let value = 0;
  for (let i = 0; i < values.length; ++i) values[i] = value += differences[i];
  return values;
}

// What a chart of ops has on its x axis: the op, or the time since the first one in seconds.
function xAxis(trace, view) {
  const ops = Math.max(...trace.policies.map((policy) => policy.series.reserved.length));
  return view.byTime ? trace.seconds.subarray(0, ops) : Float64Array.from({length: ops}, (_, op) => op);
}

// Undoes what is packed in a trace, in place.
function unpackTrace(trace) {
  if (trace.time_us) {
    trace.time_us = summed(trace.time_us);
    trace.seconds = trace.time_us.map((time) => (time - trace.time_us[0]) / 1e6);
  }
  for (const policy of trace.policies) {
    for (const name in policy.series) policy.series[name] = summed(policy.series[name]);
    for (const map of policy.maps || []) {
      map.ranges.address = summed(map.ranges.address);
      map.segments.address = summed(map.segments.address);
      map.blocks.address = summed(map.blocks.address);
      map.blocks.begin = summed(map.blocks.begin);
    }
  }
}
