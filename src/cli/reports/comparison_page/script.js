// Draws the figures of `bench --all`.
(() => {
  const {byId, element, totalsList, plural, percent} = shared;
  const data = JSON.parse(byId("data").textContent);
  const DECODINGS = ["greedy", "sampled"];
  const all = "all prompts";
  const categories = [...new Set(data.drafters.flatMap((row) => DECODINGS.flatMap((decoding) => Object.keys(row[decoding].categories))))];
  const figures = (row, decoding, category) => (category === all ? row[decoding] : row[decoding].categories[category]);
  const name = (row) => `${row.drafter}, ${row.tree}`;
  // The ends of names tell drafters apart, so the middle is left out.
  const abridged = (text) => (text.length <= 25 ? text : `${text.slice(0, 10)}…${text.slice(-14)}`);
  const megabytes = (bytes) => (bytes === 0 ? "–" : (bytes / 1e6).toFixed(2));

  const ORDERS = {
    "as listed": null,
    "by greedy speed-up": (row, category) => figures(row, "greedy", category).speedup,
    "by greedy length": (row, category) => figures(row, "greedy", category).acceptance_length,
    "by sampled speed-up": (row, category) => figures(row, "sampled", category).speedup,
    "by sampled length": (row, category) => figures(row, "sampled", category).acceptance_length,
  };

  function ordered(category, order) {
    const worth = ORDERS[order];
    return worth === null ? data.drafters : [...data.drafters].sort((a, b) => worth(b, category) - worth(a, category));
  }

  function showTable(rows, category) {
    const best = (decoding, key) => Math.max(...rows.map((row) => figures(row, decoding, category)[key]));
    const tops = DECODINGS.map((decoding) => [best(decoding, "acceptance_length"), best(decoding, "speedup")]);
    const cell = (value, top, text) => element("td", value === top ? {class: "best"} : {}, text);
    byId("table").replaceChildren(
      element("thead", {},
        element("tr", {}, element("th", {colspan: 2}), element("th", {colspan: 3, scope: "colgroup"}, "greedy"),
          element("th", {colspan: 3, scope: "colgroup"}, `temperature ${data.temperature}`),
          element("th", {colspan: 2, scope: "colgroup"}, "memory, MB")),
        element("tr", {}, ...["drafter", "tree", "length", "speed-up", "draft", "length", "speed-up", "draft", "weights", "cache"]
          .map((title) => element("th", {scope: "col"}, title)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {title: `--speculative ${row.speculative}`},
        element("th", {scope: "row"}, row.drafter), element("th", {}, row.tree),
        ...DECODINGS.flatMap((decoding, i) => {
          const shown = figures(row, decoding, category);
          return [cell(shown.acceptance_length, tops[i][0],
            `${shown.acceptance_length.toFixed(2)} ± ${shown.acceptance_length_margin.toFixed(2)}`),
            cell(shown.speedup, tops[i][1], `${shown.speedup.toFixed(2)}×`),
            element("td", {}, percent(shown.draft_share, 1))];
        }),
        element("td", {}, megabytes(row.weight_bytes)), element("td", {}, megabytes(row.cache_bytes))))));
  }

  function bars(title, caption, rows, value) {
    const width = 560, left = 235, right = 44, step = 36;
    const height = rows.length * step + 6;
    const top = Math.max(1, ...rows.flatMap((row) => DECODINGS.map((decoding) => value(row, decoding))));
    const atX = (x) => left + x / top * (width - left - right);
    const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}. ${caption}`},
      element("line", {x1: atX(1), x2: atX(1), y1: 0, y2: height, class: "rule mark"}, element("title", {}, "plain decoding: 1")));
    rows.forEach((row, i) => {
      // The kind of tree is what tells rows of one drafter apart, so it is never clipped.
      svg.append(element("text", {x: left - 66, y: i * step + 22, "text-anchor": "end"}, abridged(row.drafter),
        element("title", {}, name(row))),
      element("text", {x: left - 8, y: i * step + 22, "text-anchor": "end", class: "faint"}, row.tree));
      DECODINGS.forEach((decoding, j) => {
        const y = i * step + 5 + 14 * j;
        svg.append(element("rect", {x: left, y, width: Math.max(0, atX(value(row, decoding)) - left), height: 12, class: decoding},
          element("title", {}, `${name(row)}, ${decoding}: ${value(row, decoding).toFixed(2)}`)),
          element("text", {x: atX(value(row, decoding)) + 4, y: y + 10, class: "faint"}, value(row, decoding).toFixed(2)));
      });
    });
    return element("figure", {}, element("h3", {}, title), svg, element("figcaption", {}, caption));
  }

  function show() {
    const category = byId("category").value;
    const rows = ordered(category, byId("order").value);
    showTable(rows, category);
    byId("bars").replaceChildren(
      bars("Acceptance length", "Tokens per target pass; the rule marks plain decoding.", rows,
        (row, decoding) => figures(row, decoding, category).acceptance_length),
      bars("Speed-up", "Over plain decoding of the same prompts; the rule marks plain decoding.", rows,
        (row, decoding) => figures(row, decoding, category).speedup));
  }

  byId("about").textContent = `${data.model}: ${data.weights}, ${data.kernels} kernels, ${plural(data.threads, "thread")}; ` +
    `${plural(data.prompts, "prompt")}, at most ${data.max_tokens} tokens each, ${plural(data.runs, "round")}; ` +
    `at most ${plural(data.nodes, "drafted node")}, ${plural(data.levels, "level")}` +
    (data.skipped_prompts > 0 ? `; ${plural(data.skipped_prompts, "prompt")} left out: too long for the context` : "") +
    (data.complete ? "" : "; the run ended early, or is under way: drafters or rounds are missing");
  byId("left-out-section").hidden = data.left_out.length === 0;
  byId("left-out").append(...data.left_out.map(({name: path, reason}) => element("p", {}, `${path}: ${reason}`)));
  if (data.drafters.length === 0) return;
  for (const [id, names] of [["category", [all, ...categories]], ["order", Object.keys(ORDERS)]]) {
    byId(id).append(...names.map((text) => element("option", {value: text}, text)));
    byId(id).addEventListener("change", show);
  }
  const fastest = ordered(all, "by greedy speed-up")[0], longest = ordered(all, "by greedy length")[0];
  byId("totals").append(...totalsList([
    ["fastest, greedy", `${fastest.greedy.speedup.toFixed(2)}×`], ["by", name(fastest)],
    ["longest, greedy", longest.greedy.acceptance_length.toFixed(2)], ["by", name(longest)]]));
  show();
})();
