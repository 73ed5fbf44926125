"use strict";
// Code that all pages share: elements, labels and the drawn tree. Text enters a page only through textContent.
const shared = (() => {
  const byId = (id) => document.getElementById(id);

  const SVG_NAMES = new Set(["svg", "g", "rect", "text", "path", "line", "title", "polygon", "polyline", "circle"]);
  function element(name, attributes, ...children) {
    const isSvg = SVG_NAMES.has(name);
    const made = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const short = (value) => Number(value.toPrecision(3)).toString();
  const brief = (value) => (value > 0 && value < 0.001 ? "<0.001" : value.toFixed(3));  // fits into a node
  const milliseconds = (value) => `${short(value)} ms`;
  const percent = (part, whole) => (whole === 0 ? "–" : `${(100 * part / whole).toFixed(1)} %`);
  const probability = (value) => (value === null ? "not known" : short(value));
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const quoted = (text) => JSON.stringify(text);
  function clipped(text, length) {
    const characters = [...text];
    return characters.length <= length ? text : characters.slice(0, length - 1).join("") + "…";
  }

  const factList = (facts) => element("dl", {class: "facts"}, ...facts.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
  const totalsList = (rows) => rows.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, String(value))));

  // ---- A drafted tree: {nodes: [{parent, text, fate, cause, draft, target, sources}], own}. Node 0 is the pending
  // token; `own`, the target's own token {text, origin, target}, or null, follows the last accepted node. `draft` and
  // `target` are probabilities, or null; `sources` names drafters; fates are named in docs/reference/trace.md.

  // Places the children of each node in their order. A node has the row of its first child.
  function layout({nodes, own}) {
    const children = nodes.map(() => []);
    nodes.forEach(({parent}, node) => { if (parent >= 0) children[parent].push(node); });
    const last = nodes.map(({fate}) => fate).lastIndexOf("accepted");
    const places = [];
    let row = 0;
    const place = (node, depth) => {  // returns the row of the node
      const rows = children[node].map((child) => place(child, depth + 1));
      let ownRow = null;
      if (own && node === last) rows.push(ownRow = row++);
      places[node] = {row: rows.length > 0 ? rows[0] : row++, depth};
      if (ownRow !== null) places.own = {row: ownRow, depth: depth + 1, parent: node};
      return places[node].row;
    };
    if (nodes.length > 0) place(0, 0);
    const depths = places.map(({depth}) => depth);
    return {places, rows: row, columns: 1 + Math.max(0, ...depths, places.own ? places.own.depth : 0)};
  }

  const box = {width: 124, height: 56, gapX: 40, gapY: 10};
  const boxX = (place) => 4 + place.depth * (box.width + box.gapX);
  const boxY = (place) => 4 + place.row * (box.height + box.gapY);

  function edge(from, to, kind) {
    const x1 = boxX(from) + box.width, y1 = boxY(from) + box.height / 2, x2 = boxX(to), y2 = boxY(to) + box.height / 2;
    const middle = (x1 + x2) / 2;
    return element("path", {class: `edge ${kind}`, d: `M${x1},${y1} C${middle},${y1} ${middle},${y2} ${x2},${y2}`});
  }

  const MARKS = {accepted: "✓", rejected: "✗"};

  // Drafters without probabilities give 1 for every node.
  const hasGuesses = (tree) => tree.nodes.some(({draft}) => draft !== null && draft < 1);

  function nodeFacts(node, depth, guesses) {
    const facts = [["token", quoted(node.text)]];
    if (node.id !== undefined) facts.push(["id", node.id]);
    if (node.parent < 0) return [...facts, ["outcome", "pending: committed before this step"]];
    return [...facts, ["depth", depth], ["outcome", node.cause || node.fate],
      ["drafter's probability", guesses ? probability(node.draft) : "none given"],
      ["target's probability", probability(node.target)], ["drafted by", node.sources.join(", ")]];
  }

  function ownFacts(own) {
    const facts = [["token", quoted(own.text)]];
    if (own.id !== undefined) facts.push(["id", own.id]);
    return [...facts, ["outcome", `${own.origin}: chosen by the target`], ["target's probability", probability(own.target)]];
  }

  // Draws the tree as SVG. showFacts gets the [name, value] pairs of the node under the pointer.
  function drawTree(tree, guesses, showFacts) {
    const {places, rows, columns} = layout(tree);
    const width = columns * (box.width + box.gapX) - box.gapX + 8, height = rows * (box.height + box.gapY) + 4;
    const svg = element("svg", {width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
      "aria-label": `Drafted tree of ${plural(tree.nodes.length - 1, "node")}`});
    const add = (place, kind, lines, facts) => {
      const group = element("g", {class: `node ${kind}`, tabindex: 0, role: "button",
        transform: `translate(${boxX(place)},${boxY(place)})`,
        "aria-label": facts.map(([name, value]) => `${name} ${value}`).join(", ")});
      group.append(element("rect", {width: box.width, height: box.height, rx: 6}));
      lines.forEach((line, i) =>
        group.append(element("text", {x: 8, y: 17 + 15 * i, class: i > 0 ? "faint" : "token"}, line)));
      const show = () => {
        for (const other of svg.querySelectorAll(".node.chosen")) other.classList.remove("chosen");
        group.classList.add("chosen");
        showFacts(facts);
      };
      for (const event of ["pointerenter", "focus", "click"]) group.addEventListener(event, show);
      svg.append(group);
      return group;
    };
    tree.nodes.forEach(({parent, fate}, node) => {
      if (parent >= 0) svg.append(edge(places[parent], places[node], fate.split(" ")[0]));
    });
    if (places.own) svg.append(edge(places[places.own.parent], places.own, "own"));
    tree.nodes.forEach((node, i) => {
      const mark = i === 0 ? "" : `${MARKS[node.fate] || "·"} `;
      const numbers = (guesses && node.draft !== null ? `q ${brief(node.draft)}` : "") +
        (node.target === null ? "" : `${guesses ? ", " : ""}p ${brief(node.target)}`);
      const lines = [mark + clipped(quoted(node.text), 14)]
        .concat(i === 0 ? ["pending"] : [numbers, node.cause || node.fate]);
      const facts = nodeFacts(node, places[i].depth, guesses);
      add(places[i], i === 0 ? "root" : node.fate.split(" ")[0], lines, facts).dataset.cause = node.cause;
    });
    if (places.own) {
      const numbers = tree.own.target === null ? "" : `p ${brief(tree.own.target)}`;
      add(places.own, "own", [`+ ${clipped(quoted(tree.own.text), 14)}`, numbers, tree.own.origin], ownFacts(tree.own));
    }
    return svg;
  }

  const treeKinds = [["yes", "✓ accepted"], ["no", "✗ rejected"], ["other", "· not reached, past stop or over budget"],
                     ["own", "+ the target's own token"]];
  const legend = (kinds) => kinds.map(([kind, text]) =>
    element("span", {}, element("i", {class: `swatch-${kind}`}), text));

  return {byId, element, short, milliseconds, percent, sum, plural, quoted, clipped, factList, totalsList, hasGuesses,
          drawTree, treeKinds, legend};
})();
