// Draws the figures of a load test.
(() => {
  const {byId, element, short, clipped, totalsList, plural} = shared;
  const data = JSON.parse(byId("data").textContent);
  const levels = data.levels;
  const failed = (level) => Object.values(level.failed).reduce((total, count) => total + count, 0);
  const fixed = (value, digits) => value.toFixed(digits);
  const load = (level) => level.concurrency || level.request_rate;
  const loadName = levels.some((level) => level.concurrency) ? "requests at a time" : "requests begun per second";

  function table(holder, head, rows) {
    holder.replaceChildren(
      element("thead", {}, element("tr", {}, ...head.map((name) => element("th", {scope: "col"}, name)))),
      element("tbody", {}, ...rows.map(([name, ...cells]) => element("tr", {},
        element("th", {scope: "row"}, name), ...cells.map((cell) => element("td", {}, String(cell)))))));
  }

  // Returns the smallest number of at least `value` that is a power of ten times 1, 1.5, 2, 2.5, 3, 4, 5, 6 or 8.
  function niceTop(value) {
    if (value <= 0) return 1;
    const unit = 10 ** Math.floor(Math.log10(value));
    return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((factor) => factor * unit).find((top) => top >= value * 0.9999);
  }

  // lines: [{points: [[x, y]], second, dots}]; marks: [{x, name}], drawn as vertical lines
  function plot({title, caption, lines, marks = [], xName, yName, width = 440, height = 220, fromZero = true}) {
    const left = 52, right = 14, top = 24, bottom = 40;
    const points = lines.flatMap(({points: some}) => some);
    const xs = points.map(([x]) => x);
    const xLow = fromZero ? 0 : Math.min(...xs), xTop = niceTop(Math.max(...xs, 0)), yTop = niceTop(Math.max(...points.map(([, y]) => y), 0));
    const atX = (x) => left + (x - xLow) / (xTop - xLow || 1) * (width - left - right);
    const atY = (y) => height - bottom - Math.min(y / yTop, 1.02) * (height - top - bottom);
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${caption}`});
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const y = atY(part * yTop), x = atX(xLow + part * (xTop - xLow));
      svg.append(element("line", {x1: left, x2: width - right, y1: y, y2: y, class: "rule"}),
        element("text", {x: left - 6, y: y + 4, "text-anchor": "end", class: "faint"}, short(part * yTop)),
        element("text", {x, y: height - bottom + 16, "text-anchor": "middle", class: "faint"}, short(xLow + part * (xTop - xLow))));
    }
    for (const {x, name} of marks) {
      svg.append(element("line", {x1: atX(x), x2: atX(x), y1: top, y2: height - bottom, class: "rule mark"},
        element("title", {}, `${name}: ${short(x)}`)), element("text", {x: atX(x) + 3, y: top + 9, class: "faint"}, name));
    }
    for (const {points: some, second, dots} of lines) {
      svg.append(element("polyline", {class: second ? "plot second" : "plot",
        points: some.map(([x, y]) => `${atX(x).toFixed(1)},${atY(y).toFixed(1)}`).join(" ")}));
      if (dots) for (const [x, y] of some) svg.append(element("circle", {class: "dot", cx: atX(x), cy: atY(y), r: 3.5},
        element("title", {}, `${short(x)}: ${short(y)}`)));
    }
    svg.append(element("text", {x: left + (width - left - right) / 2, y: height - 6, "text-anchor": "middle", class: "faint"}, xName),
               element("text", {x: 4, y: 9, class: "faint"}, yName));
    return element("figure", {}, element("h3", {}, title), svg, element("figcaption", {}, caption));
  }

  function showTotals() {
    const best = levels.reduce((a, b) => (b.output_throughput > a.output_throughput ? b : a));
    const goals = Object.entries(data.goals).map(([name, value]) => `${name.replace("_ms", "").toUpperCase()} ≤ ${value} ms`);
    byId("totals").append(...totalsList([
      ["most output tokens per second", fixed(best.output_throughput, 1)],
      ["reached at", best.name],
      ["requests answered", levels.reduce((total, level) => total + level.completed, 0)],
      ["requests failed", levels.reduce((total, level) => total + failed(level), 0)]]));
    byId("about").textContent = `${data.model} at ${data.server}, ${data.endpoint}; ${plural(data.prompts, "prompt")}, ` +
      `at most ${data.max_tokens} tokens each, temperature ${data.temperature}, seed ${data.seed}` +
      (goals.length > 0 ? `; goals: ${goals.join(", ")}` : "") + (data.interrupted ? "; interrupted" : "");
  }

  function showLevels() {
    const hasGoals = Object.keys(data.goals).length > 0;
    const head = ["", "output tok/s", "requests/s"].concat(hasGoals ? ["goodput/s"] : [],
      ["TTFT p50", "TTFT p99", "TPOT p50", "ITL mean", "ITL p99", "E2EL p50", "E2EL p99", "answered", "failed", "accept. length"]);
    table(byId("levels"), head, levels.map((level) => [level.name, fixed(level.output_throughput, 1), fixed(level.request_throughput, 2)]
      .concat(hasGoals ? [fixed(level.goodput, 2)] : [], [level.ttft_ms.p50, level.ttft_ms.p99, level.tpot_ms.p50, level.token_latency_ms.mean,
        level.token_latency_ms.p99, level.e2e_ms.p50, level.e2e_ms.p99].map((value) => fixed(value, 2)),
        [level.completed, failed(level), level.speculation ? fixed(level.speculation.acceptance_length, 2) : "–"])));
  }

  function showLoad() {
    byId("load-section").hidden = levels.length < 2;
    if (levels.length < 2) return;
    const over = (value) => levels.map((level) => [load(level), value(level)]);
    byId("load").append(
      plot({title: "Output throughput", caption: "Tokens per second of all requests together.", xName: loadName, yName: "tok/s",
            lines: [{points: over((level) => level.output_throughput), dots: true}]}),
      plot({title: "Inter-token latency", caption: "Mean (line) and 99th percentile (dashed), per token.", xName: loadName, yName: "ms",
            lines: [{points: over((level) => level.token_latency_ms.mean), dots: true},
                    {points: over((level) => level.token_latency_ms.p99), second: true}]}),
      plot({title: "Time to first token", caption: "Median (line) and 99th percentile (dashed).", xName: loadName, yName: "ms",
            lines: [{points: over((level) => level.ttft_ms.p50), dots: true}, {points: over((level) => level.ttft_ms.p99), second: true}]}));
  }

  const LATENCIES = [["ttft_ms", "Time to first token (TTFT)"], ["tpot_ms", "Time per output token (TPOT)"],
    ["token_latency_ms", "Inter-token latency (ITL), per token"], ["chunk_gap_ms", "Gap between chunks"], ["e2e_ms", "End to end (E2EL)"]];

  function showLevel(level) {
    const shown = LATENCIES.filter(([key]) => level.distributions[key].length > 0);
    byId("timeline").replaceChildren(...(level.timeline.length < 2 ? [] : [plot({title: "Inter-token latency over the run",
      caption: "Median (line) and 99th percentile (dashed) of the tokens of each slice of time.", xName: "seconds", yName: "ms", width: 1000, height: 220,
      lines: [{points: level.timeline.map(([at, middle]) => [at, middle])}, {points: level.timeline.map(([at, , high]) => [at, high]), second: true}]})]));
    byId("distributions").replaceChildren(...shown.map(([key, title]) => plot({title,
      caption: `Share of the ${level[key].count} values at or below.`, xName: "ms", yName: "%",
      lines: [{points: level.distributions[key].slice(0, 100).map((value, i) => [value, i])}],
      marks: [{x: level[key].p50, name: "p50"}, {x: level[key].p90, name: "p90"}]})));
    table(byId("spreads"), ["milliseconds", "count", "mean", "p50", "p90", "p99", "max"], LATENCIES.map(([key, title]) =>
      [title, level[key].count, ...["mean", "p50", "p90", "p99", "max"].map((name) => fixed(level[key][name], 2))]));
    const notes = Object.entries(level.failed).map(([kind, count]) => `${plural(count, "request")} failed: ${kind}`);
    if (level.speculation) {
      const told = level.speculation;
      notes.push(`Speculation: acceptance length ${fixed(told.acceptance_length, 2)}, ${fixed(100 * told.acceptance_rate, 1)} % of ` +
        `${told.draft_tokens} drafted tokens accepted, by ${told.source}`);
    }
    notes.push(`Tokens counted by ${Object.keys(level.tokens_counted_by).join(" and ") || "nothing"}; ` +
      `${plural(level.output_tokens, "token")} in ${fixed(level.duration_s, 2)} s`);
    byId("notes").replaceChildren(...notes.map((note) => element("p", {}, note)));
  }

  if (levels.length === 0) {
    byId("about").textContent = "Interrupted before anything was measured.";
    return;
  }
  showTotals();
  showLevels();
  showLoad();
  byId("chosen").append(...levels.map((level, i) => element("option", {value: i}, clipped(level.name, 40))));
  byId("chosen").hidden = levels.length < 2;
  byId("chosen").addEventListener("change", () => showLevel(levels[Number(byId("chosen").value)]));
  byId("chosen").value = String(levels.length - 1);
  showLevel(levels[levels.length - 1]);
})();
