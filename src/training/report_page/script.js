// Draws the figures of a training run.
(() => {
  const {byId, element, short, totalsList} = shared;
  const data = JSON.parse(byId("data").textContent);
  const {evaluations, baselines} = data;
  const isServed = evaluations.some(({tree}) => tree > 0);
  const worth = ({shared_tree, tree, foreseen}) => shared_tree || tree || foreseen;
  const best = evaluations.reduce((a, b) => (a === null || worth(b) > worth(a) ? b : a), null);

  // lines: [{name, points: [[x, y]], second, dots}]; levels: [{name, y}] are drawn across.
  function plot({title, caption, lines, levels = [], yName, low = 0}) {
    const width = 440, height = 230, left = 46, right = 12, top = 24, bottom = 36;
    const points = lines.flatMap((line) => line.points);
    const xTop = Math.max(1, ...points.map(([x]) => x));
    const yTop = Math.max(low + 0.001, ...points.map(([, y]) => y), ...levels.map(({y}) => y)) * 1.05;
    const atX = (x) => left + x / xTop * (width - left - right);
    const atY = (y) => height - bottom - (y - low) / (yTop - low) * (height - top - bottom);
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${caption}`});
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const value = low + part * (yTop - low), y = atY(value);
      const step = Math.round(part * xTop);  // the label stands where it says
      svg.append(element("line", {x1: left, x2: width - right, y1: y, y2: y, class: "rule"}),
        element("text", {x: left - 6, y: y + 4, "text-anchor": "end", class: "faint"}, short(value)),
        element("text", {x: atX(step), y: height - bottom + 15, "text-anchor": part < 1 ? "middle" : "end", class: "faint"},
          String(step)));
    }
    for (const {name, y} of levels) {
      svg.append(element("line", {x1: left, x2: width - right, y1: atY(y), y2: atY(y), class: "rule mark"}),
        element("text", {x: width - right, y: atY(y) - 4, "text-anchor": "end", class: "faint"}, name));
    }
    for (const {points: some, second, dots} of lines) {
      svg.append(element("polyline", {class: second ? "plot second" : "plot",
        points: some.map(([x, y]) => `${atX(x).toFixed(1)},${atY(y).toFixed(1)}`).join(" ")}));
      if (dots) for (const [x, y] of some) {
        svg.append(element("circle", {class: second ? "dot second" : "dot", cx: atX(x), cy: atY(y), r: 3},
          element("title", {}, `step ${x}: ${short(y)}`)));
      }
    }
    svg.append(element("text", {x: width / 2, y: height - 4, "text-anchor": "middle", class: "faint"}, "step"),
      element("text", {x: 4, y: 10, class: "faint"}, yName));
    return element("figure", {}, element("h3", {}, title), svg, element("figcaption", {}, caption));
  }

  function table(holder, head, rows) {
    holder.replaceChildren(
      element("thead", {}, element("tr", {}, ...head.map((name) => element("th", {scope: "col"}, name)))),
      element("tbody", {}, ...rows.map(([name, ...cells]) => element("tr", {},
        element("th", {scope: "row"}, name), ...cells.map((cell) => element("td", {}, cell))))));
  }

  byId("title").textContent = `Training of a drafter: ${data.kind}`;
  byId("about").textContent = `For ${data.target}; ${data.steps} steps, ${short(data.parameters / 1e6)} million parameters trained.`;
  byId("totals").append(...totalsList(best === null ? [] : [
    ["acceptance length, tree", isServed ? best.tree.toFixed(2) : "not served here"],
    ["acceptance length, chain", isServed ? best.chain.toFixed(2) : "not served here"],
    ["foreseen on held-out text", best.foreseen.toFixed(2)],
    ["best step", best.step]]));
  const over = (key) => evaluations.map((point) => [point.step, point[key]]);
  byId("curves").append(
    plot({title: "Loss", caption: "Training (blue), held-out text (orange).", yName: "nats",
      lines: [{points: data.training}, {points: data.held_out, second: true, dots: true}]}),
    plot({title: "Acceptance length", yName: "tokens per pass", low: 1,
      caption: isServed ? "As served, greedy: tree (blue) and chain (orange)." : "Foreseen on held-out text, chain.",
      lines: isServed ? [{points: over("tree"), dots: true}, {points: over("chain"), second: true, dots: true}]
                      : [{points: over("foreseen"), dots: true}],
      levels: baselines.filter(({tokens_per_pass}) => tokens_per_pass > 1).map(({name, tokens_per_pass}) => ({name, y: tokens_per_pass}))}));
  const rows = baselines.map(({name, tokens_per_pass, by_depth}) => [name, tokens_per_pass, by_depth]);
  if (best !== null && isServed) rows.push([`${data.kind}, chain`, best.chain, best.accepted], [`${data.kind}, tree`, best.tree, []]);
  if (best !== null && best.shared_tree > 0) rows.push(["all drafts in one tree", best.shared_tree, []]);
  if (best !== null) rows.push([`${data.kind}, held-out text`, best.foreseen, best.agreement]);
  const depths = Math.max(1, ...rows.map(([, , shares]) => shares.length));
  table(byId("depths"), ["", "acceptance length", ...Array.from({length: depths}, (_, i) => `depth ${i + 1}`)],
    rows.map(([name, length, shares]) => [name, length.toFixed(2),
      ...Array.from({length: depths}, (_, i) => (i < shares.length ? `${(100 * shares[i]).toFixed(1)} %` : "–"))]));
})();
