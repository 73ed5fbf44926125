// The panel that shows speculation: live figures, the marks of tokens, and the drafted tree of each step of an answer. A
// step is {tokens: [{text, origin}], tree}; its tree is null if nothing was drafted, and undefined once it is forgotten.
const speculation = (() => {
  const {byId, element, short, milliseconds, percent, plural, factList, hasGuesses, drawTree} = shared;

  const MAX_TREES = 4000;  // of the newest steps; a tree takes some kilobytes
  const MEANINGS = {accepted: ["drafted and accepted", "drafted, and accepted by the model"],
                    recovered: ["corrected", "corrected: drafts were rejected here"],
                    bonus: ["bonus", "bonus: added by the model after accepted drafts"],
                    plain: ["plain", "plain: nothing was drafted here"]};

  const withTrees = [];
  let steps = [];      // of the answer that is shown
  let selected = -1;   // index in `steps`
  let isFollowing = true;
  let onSelect = () => {};  // called with the selected step, or undefined

  const originOf = ({origin}) => (MEANINGS[origin] ? origin : "plain");
  const meaningOf = (token) => MEANINGS[originOf(token)][1];

  function showLegend() {
    byId("legend").append(...Object.entries(MEANINGS).map(([origin, [name, meaning]]) =>
      element("span", {title: meaning}, element("b", {class: `token ${origin}`, "aria-hidden": "true"}, "token"), name)));
  }

  // Remembers the tree of a new step and forgets the oldest.
  function remember(step) {
    if (step.tree === null) return;
    withTrees.push(step);
    if (withTrees.length > MAX_TREES) withTrees.shift().tree = undefined;
  }

  // ---- The tree of one step.

  function treeOf(step) {
    const nodes = step.tree.nodes.map(({text, parent, fate, cause, q, p}) =>
      ({text, parent, fate, cause, draft: q ?? null, target: p ?? null, sources: []}));
    const last = step.tokens[step.tokens.length - 1];
    return {nodes, own: last.origin === "accepted" ? null : {text: last.text, origin: last.origin, target: null}};
  }

  function showPlace() {
    byId("previous").disabled = selected <= 0;
    byId("next").disabled = selected >= steps.length - 1;
    byId("follow").setAttribute("aria-pressed", String(isFollowing));
    byId("tree-title").textContent = selected < 0 ? "Tree of the step" : `Step ${selected + 1} of ${steps.length}`;
  }

  function factsOf(step) {
    const committed = `${plural(step.tokens.length, "token")} committed`;
    if (step.tree === null) return `${committed}, nothing drafted`;
    if (step.tree === undefined) return `${committed}; only the newest ${MAX_TREES} trees are kept`;
    const {draft_ms: draft, verify_ms: verify, rows, sequences} = step.tree;
    const times = draft === undefined ? "" : `; draft ${milliseconds(draft)}, verify ${milliseconds(verify)}`;
    const shape = rows === undefined ? "" : `; ${plural(rows, "row")} of ${plural(sequences, "request")}`;
    return committed + times + shape;
  }

  function showStep(index) {
    selected = Math.min(index, steps.length - 1);
    showPlace();
    byId("details").replaceChildren();
    byId("tree").replaceChildren();
    const step = steps[selected];
    onSelect(step);
    byId("tree").hidden = !step?.tree;
    byId("facts").textContent = step === undefined ?
      "The tree of each step appears here: the accepted path, rejected branches and why." : factsOf(step);
    if (!step?.tree || byId("speculation").hidden) return;
    const tree = treeOf(step);
    byId("tree").append(drawTree(tree, hasGuesses(tree), (facts) =>
      byId("details").replaceChildren(factList(facts.filter(([, value]) => value !== "")))));
  }

  // Shows the steps of an answer from now on, the newest as they come.
  function showAnswer(answerSteps) {
    steps = answerSteps;
    isFollowing = true;
    showStep(steps.length - 1);
  }

  // Shows one step, and stays there.
  function select(answerSteps, index) {
    steps = answerSteps;
    isFollowing = false;
    showStep(index);
  }

  // An answer has a new step.
  function update(answerSteps) {
    if (steps !== answerSteps) return;
    if (isFollowing) showStep(steps.length - 1);
    else showPlace();
  }

  function move(by) {
    if (steps.length > 0) select(steps, Math.max(0, selected + by));
  }

  function follow() {
    isFollowing = !isFollowing;
    if (isFollowing) showStep(steps.length - 1);
    else showPlace();
  }

  // ---- Figures of the answer and of the server.

  function showFigures({tokens, passes, drafted, accepted, speed}) {
    byId("length").textContent = passes === 0 ? "–" : (tokens / passes).toFixed(2);
    byId("rate").textContent = percent(accepted, drafted);
    byId("speed").textContent = speed > 0 ? short(speed) : "–";
  }

  const clearFigures = () => showFigures({tokens: 0, passes: 0, drafted: 0, accepted: 0, speed: 0});

  function showStats(stats) {
    byId("model").textContent = [stats.model, stats.drafter].filter((name) => name).join(" · ");
    if (!stats.speculation) return;  // the model is not loaded
    byId("batch").textContent = `${stats.running} of ${stats.max_batch}`;
    byId("queue").textContent = `${stats.waiting} waiting`;
    const used = stats.pages > 0 ? stats.used_pages / stats.pages : 0;
    byId("kv").textContent = stats.pages > 0 ? `${(100 * used).toFixed(1)} %` : "–";
    byId("kv-bar").setAttribute("width", 100 * used);
    const {speedup, acceptance_length: length, drafted, acceptance_rate: rate} = stats.speculation;
    byId("speedup").textContent = speedup > 0 ? `${speedup.toFixed(2)}×` : "–";
    byId("length-note").textContent = length > 0 ? `server ${length.toFixed(2)}` : "tokens per pass";
    byId("rate-note").textContent = drafted > 0 ? `server ${(100 * rate).toFixed(1)} %` : "of this answer";
  }

  function start(select) {
    onSelect = select;
    showLegend();
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    byId("follow").addEventListener("click", follow);
  }

  return {start, remember, showAnswer, select, update, move, redraw: () => showStep(selected), showFigures, clearFigures, showStats,
          originOf, meaningOf, hasSteps: () => steps.length > 0};
})();
