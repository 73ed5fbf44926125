// Draws the trace of a run.
(() => {
  const {byId, element, short, milliseconds, percent, sum, plural, clipped, factList, totalsList, hasGuesses, drawTree,
         treeKinds, legend} = shared;
  const trace = JSON.parse(byId("data").textContent);
  const steps = trace.steps;
  const tokenText = (token) => trace.token_texts[token];
  // ---- Figures over all steps.

  const total = (step) => step.draft_ms + step.verify_ms + step.other_ms;
  const isVerified = (fate) => fate !== "over budget";
  const guesses = steps.some((step) => hasGuesses(treeOf(step)));

  function passes() {  // a forward pass of several sequences counts once
    const seen = new Set();
    return steps.filter((step) => {
      const key = `${step.run} ${step.step}`;
      return !seen.has(key) && seen.add(key);
    });
  }

  function depths(step) {
    const result = [];
    step.nodes.parents.forEach((parent) => result.push(parent < 0 ? 0 : result[parent] + 1));
    return result;
  }

  // Counts drafted and accepted nodes per key. keys(step) returns a function from the index of a node to its key.
  function acceptance(keys) {
    const groups = new Map();
    for (const step of steps) {
      const keysOf = keys(step);
      step.nodes.fates.forEach((fate, node) => {
        if (node === 0 || !isVerified(fate)) return;
        for (const key of keysOf(node)) {
          if (!groups.has(key)) groups.set(key, {drafted: 0, accepted: 0});
          const group = groups.get(key);
          group.drafted += 1;
          group.accepted += fate === "accepted" ? 1 : 0;
        }
      });
    }
    return groups;
  }

  function sourcesOf(step, node) {
    return trace.sources.filter((_, bit) => (step.nodes.sources[node] >>> bit) & 1);
  }

  function counts(values) {
    const groups = new Map();
    for (const value of values) groups.set(value, (groups.get(value) || 0) + 1);
    return groups;
  }

  function showTotals() {
    const committing = steps.filter((step) => step.committed.tokens.length > 0);
    const tokens = sum(committing.map((step) => step.committed.tokens.length));
    const decoding = committing.filter((step) => step.prompt_rows === 0);
    const keys = new Set(decoding);
    const decodingTime = sum(passes().filter((step) => keys.has(step)).map(total));
    const decoded = sum(decoding.map((step) => step.committed.tokens.length));
    const all = acceptance(() => () => ["all"]).get("all") || {drafted: 0, accepted: 0};
    const time = sum(passes().map(total));
    const rows = [
      ["tokens per second", decodingTime > 0 ? (1000 * decoded / decodingTime).toFixed(1) : "–"],
      ["acceptance length", committing.length > 0 ? (tokens / committing.length).toFixed(2) : "–"],
      ["tokens", tokens],
      ["steps", steps.length],
      ["drafts accepted", percent(all.accepted, all.drafted)],
      ["time drafting", percent(sum(passes().map((step) => step.draft_ms)), time)],
    ];
    if (trace.device !== "cpu")
      rows.push(["time waiting for the device", percent(sum(passes().map((step) => step.device.waited_ms)), time)]);
    byId("totals").append(...totalsList(rows));
    const sampling = trace.temperature === 0 ? "greedy" :
      `temperature ${trace.temperature}` + (trace.top_k > 0 ? `, top-k ${trace.top_k}` : "") +
      (trace.top_p < 1 ? `, top-p ${trace.top_p}` : "") + (trace.min_p > 0 ? `, min-p ${trace.min_p}` : "") +
      `, seed ${trace.seed}`;
    const machine = trace.device === "cpu" ? "" : `${trace.device} device, `;
    byId("about").textContent = `${trace.model}: ${trace.weights}, ${machine}${trace.kernels} kernels, ` +
      `${plural(trace.threads, "thread")}; ${trace.method}, ${trace.acceptance} acceptance, ${sampling}`;
  }

  // bars: [{label, value, text}]; most: the value of a full bar
  function barChart(title, caption, bars, most) {
    const width = 380, row = 24, left = 104, right = 112;
    const height = Math.max(row, bars.length * row);
    const summary = bars.map((bar) => `${bar.label}: ${bar.text}`).join("; ");
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${summary}`});
    bars.forEach((bar, i) => {
      const length = most > 0 ? (width - left - right) * bar.value / most : 0;
      svg.append(
        element("text", {x: left - 8, y: i * row + 16, "text-anchor": "end"}, clipped(bar.label, 14)),
        element("rect", {x: left, y: i * row + 4, width: Math.max(length, 1), height: row - 8, class: "verify", rx: 2}),
        element("text", {x: left + length + 6, y: i * row + 16, class: "faint"}, bar.text));
    });
    if (bars.length === 0) svg.append(element("text", {x: 0, y: 16, class: "faint"}, "nothing was drafted"));
    return element("figure", {}, element("h3", {}, title), svg, element("figcaption", {}, caption));
  }

  function acceptanceBars(groups, label) {
    return [...groups].map(([key, group]) => ({
      label: label(key),
      value: group.accepted / group.drafted,
      text: `${percent(group.accepted, group.drafted)} of ${group.drafted}`,
    }));
  }

  function countBars(groups, label) {
    const all = sum([...groups.values()]);
    return [...groups].map(([key, count]) => ({label: label(key), value: count, text: `${count} (${percent(count, all)})`}));
  }

  const sorted = (groups) => new Map([...groups].sort(([a], [b]) => a - b));
  const largest = (bars) => Math.max(0, ...bars.map((bar) => bar.value));

  function showCharts() {
    const byDepth = sorted(acceptance((step) => {
      const depth = depths(step);
      return (node) => [depth[node]];
    }));
    const bySource = acceptance((step) => (node) => sourcesOf(step, node));
    const committed = sorted(counts(steps.map((step) => step.committed.tokens.length).filter((count) => count > 0)));
    const kMost = 8, kAbsent = 1000;
    const ranks = sorted(counts(steps.flatMap((step) => step.committed.ranks.flatMap((rank, i) => {
      if (rank >= 0) return [Math.min(rank, kMost)];
      return step.committed.origins[i] === "recovered" ? [kAbsent] : [];
    }))));
    const lengths = countBars(committed, (count) => plural(count, "token"));
    const places = countBars(ranks, (rank) => {
      if (rank === kAbsent) return "not drafted";
      return rank === kMost ? `${kMost + 1}th or later` : ["1st", "2nd", "3rd"][rank] || `${rank + 1}th`;
    });
    byId("charts").append(
      barChart("Acceptance by depth", "Accepted share of the nodes drafted at each depth; those at depth 1 follow the pending token.",
               acceptanceBars(byDepth, (depth) => `depth ${depth}`), 1),
      barChart("Acceptance by drafter", "A node that several drafters proposed counts for each of them.",
               acceptanceBars(bySource, (name) => name), 1),
      barChart("Tokens committed per step", "One is what plain decoding commits.", lengths, largest(lengths)),
      barChart("Rank of the target's token", "Its place among what was drafted for the same position, in the order of " +
               "the proposals. Positions nothing was drafted for are left out.", places, largest(places)));
  }

  // ---- Timeline: one bar per step, or per run of steps when there are many.

  const timeline = {width: 1000, height: 150, top: 8, bottom: 18, most: 250};
  timeline.group = Math.max(1, Math.ceil(steps.length / timeline.most));
  timeline.bars = Math.ceil(steps.length / timeline.group);
  timeline.step = timeline.width / Math.max(timeline.bars, 20);

  // The scale ignores prompts and single outliers; their bars are cut at the top.
  function timelineScale(bars) {
    const decoding = bars.filter((bar) => !bar.isPrompt).map((bar) => bar.total).sort((a, b) => a - b);
    const values = decoding.length > 0 ? decoding : bars.map((bar) => bar.total);
    const most = values[values.length - 1] || 1;
    return Math.min(most, 3 * values[Math.floor(0.9 * (values.length - 1))]) * 1.05 || 1;
  }

  function showTimeline() {
    const {width, height, top, bottom, group} = timeline;
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
      "aria-label": `Milliseconds of each of ${steps.length} steps, split into drafting, the target pass and the rest`});
    const bars = [];
    for (let first = 0; first < steps.length; first += group) {
      const part = steps.slice(first, first + group);
      const mean = (key) => sum(part.map((step) => step[key])) / part.length;
      const bar = {first, last: first + part.length, draft: mean("draft_ms"), verify: mean("verify_ms"),
        other: mean("other_ms"), isPrompt: part.some((step) => step.prompt_rows > 0)};
      bar.total = bar.draft + bar.verify + bar.other;
      bars.push(bar);
    }
    const scale = timelineScale(bars);
    const floor = height - bottom;
    for (const tick of [0, 0.5, 1]) {
      const y = floor - tick * (floor - top) / 1.05;
      svg.append(element("line", {x1: 0, x2: width, y1: y, y2: y, class: "rule"}));
    }
    const cursor = element("rect", {class: "cursor", y: 0, height: floor, id: "cursor"});
    svg.append(cursor);
    bars.forEach((bar, i) => {
      const holder = element("g", {}, element("title", {}, timelineTitle(bar)));
      let y = floor;
      for (const part of ["verify", "draft", "other"]) {
        const tall = Math.min(bar[part] / scale * (floor - top), y);
        y -= tall;
        holder.append(element("rect", {class: part, x: i * timeline.step, y,
          width: Math.max(timeline.step * 0.85, 0.5), height: tall}));
      }
      svg.append(holder);
    });
    svg.append(element("polygon", {class: "pointer", id: "pointer"}));
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      const bar = Math.floor((event.clientX - box.left) / box.width * width / timeline.step);
      if (bar >= 0 && bar < timeline.bars) select(bar * group);
    });
    byId("timeline").append(svg, timelineAxis(scale));
    const names = [["verify", "verify: the target pass"], ["draft", "draft"], ["other", "other: scheduling, acceptance, commit, output"]];
    byId("timeline-legend").append(...legend(names));
    byId("timeline-legend").append(element("span", {}, group > 1 ? `each bar: the mean of ${group} steps` :
      "bars beyond the top: prompts and outliers"));
  }

  // The plot is stretched but its labels must not be, so they are separate elements.
  function timelineAxis(scale) {
    const axis = element("div", {class: "axis", "aria-hidden": "true"});
    for (const tick of [0, 0.5, 1]) {
      const y = timeline.height - timeline.bottom -
        tick * (timeline.height - timeline.bottom - timeline.top) / 1.05;
      const label = element("span", {}, milliseconds(tick * scale / 1.05));
      label.style.top = `${y}px`;
      axis.append(label);
    }
    return axis;
  }

  function timelineTitle(bar) {
    const name = bar.last - bar.first > 1 ? `steps ${bar.first + 1} to ${bar.last}` : `step ${bar.first + 1}`;
    return `${name}: draft ${milliseconds(bar.draft)}, verify ${milliseconds(bar.verify)}, other ${milliseconds(bar.other)}`;
  }

  function moveCursor(index) {
    const bar = Math.floor(index / timeline.group);
    const x = bar * timeline.step, middle = x + timeline.step * 0.42;
    const floor = timeline.height - timeline.bottom;
    byId("cursor").setAttribute("x", x - 1);
    byId("cursor").setAttribute("width", Math.max(timeline.step * 0.85, 0.5) + 2);
    byId("pointer").setAttribute("points", `${middle},${floor + 2} ${middle - 6},${floor + 13} ${middle + 6},${floor + 13}`);
  }

  // ---- The selected step.

  // Converts a step to the argument of drawTree().
  function treeOf(step) {
    const {tokens, parents, draft, target, fates, causes} = step.nodes;
    const nodes = tokens.map((id, i) => ({id, parent: parents[i], text: tokenText(id), fate: fates[i], cause: causes[i],
      draft: draft[i], target: target[i], sources: sourcesOf(step, i)}));
    const {origins, tokens: committed, target: chances} = step.committed;
    const last = committed.length - 1;
    const own = last < 0 || origins[last] === "accepted" ? null :
      {id: committed[last], text: tokenText(committed[last]), origin: origins[last], target: chances[last]};
    return {nodes, own};
  }

  function showTree(step) {
    const hint = nodesOf(step) === 0 ? "Prompt tokens alone: nothing to verify." :
      "Point at a node, or go there by Tab, for its probabilities.";
    byId("details").replaceChildren(element("p", {class: "legend"}, hint));
    byId("tree").replaceChildren(...(nodesOf(step) === 0 ? [] :
      [drawTree(treeOf(step), guesses, (facts) => byId("details").replaceChildren(factList(facts)))]));
    byId("tree").hidden = nodesOf(step) === 0;
  }
  const nodesOf = (step) => step.nodes.tokens.length;

  function showText(index) {
    const step = steps[index];
    const kBefore = 60;
    const before = [];
    for (let i = index - 1; i >= 0 && before.length < kBefore && steps[i].run === step.run; --i)
      before.unshift(...steps[i].committed.tokens.map(tokenText));
    const parts = step.committed.tokens.map((token, i) =>
      element("span", {class: step.committed.origins[i]}, tokenText(token)));
    byId("text").replaceChildren(element("span", {class: "before"}, before.slice(-kBefore).join("")), ...parts);
    byId("text").hidden = before.length + parts.length === 0;
  }

  let selected = 0;

  function select(index) {
    selected = Math.min(Math.max(index, 0), steps.length - 1);
    const step = steps[selected];
    byId("step-title").textContent = `Step ${selected + 1} of ${steps.length}`;
    byId("facts").textContent = (step.prompt_rows > 0 ? `${plural(step.prompt_rows, "token")} of the prompt; ` : "") +
      `${step.context} tokens before, ${plural(step.rows, "row")}; draft ${milliseconds(step.draft_ms)}, verify ` +
      `${milliseconds(step.verify_ms)}, other ${milliseconds(step.other_ms)}; ` +
      `${plural(step.committed.tokens.length, "token")} committed` + (step.draft_failed ? "; the drafter failed" : "") +
      ordersOf(step);
    byId("slider").value = selected + 1;
    byId("runs").value = step.run;
    byId("previous").disabled = selected === 0;
    byId("next").disabled = selected === steps.length - 1;
    moveCursor(selected);
    showText(selected);
    showTree(step);
  }

  // What the processor told the device in a step, and how long it waited; the rest of the step is its own time.
  function ordersOf({device}) {
    if (device === null) return "";
    const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} KB`;
    return `; to the device: ${plural(device.lists, "recorded list")}, ${plural(device.launches, "single kernel")}, ` +
      `${kilobytes(device.bytes_to)} there, ${kilobytes(device.bytes_from)} back, ${milliseconds(device.waited_ms)} waited for it`;
  }

  function listenToKeys(event) {
    const isBusy = event.target instanceof Element && event.target.closest("select, input") !== null;
    if (isBusy || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = {ArrowLeft: selected - 1, ArrowRight: selected + 1, Home: 0, End: steps.length - 1}[event.key];
    if (target === undefined) return;
    event.preventDefault();
    select(target);
  }

  function showLegend() {
    byId("tree-legend").append(...legend(treeKinds));
    byId("tree-legend").append(element("span", {}, (guesses ? "q: drafter's probability, " : "") + "p: target's" +
      (trace.temperature === 0 ? " at temperature 1" : "")));
  }

  showTotals();
  showCharts();
  if (steps.length === 0) {
    byId("step-title").textContent = "No steps";
    return;
  }
  byId("runs").append(...trace.runs.map((name, run) => element("option", {value: run}, clipped(name, 40))));
  byId("runs").hidden = trace.runs.length < 2;
  byId("slider").max = steps.length;
  byId("slider").addEventListener("input", () => select(Number(byId("slider").value) - 1));
  byId("runs").addEventListener("change", () => select(steps.findIndex((step) => step.run === Number(byId("runs").value))));
  byId("previous").addEventListener("click", () => select(selected - 1));
  byId("next").addEventListener("click", () => select(selected + 1));
  document.addEventListener("keydown", listenToKeys);
  showTimeline();
  showLegend();
  // page.html#12 opens at step 12. Without a number, the first tree is shown.
  const selectFromAddress = () => {
    const wanted = Number(location.hash.slice(1));
    if (wanted > 0) select(wanted - 1);
  };
  addEventListener("hashchange", selectFromAddress);
  select(Math.max(0, steps.findIndex((step) => step.nodes.tokens.length > 1)));
  selectFromAddress();
})();
