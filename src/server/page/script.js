// The chat page: a conversation with the server and the drafted trees of its answers.
(() => {
  const {byId, element, short, milliseconds, percent, plural, factList, hasGuesses, drawTree} = shared;

  // ---- The conversation: messages in the format of the API, and the steps of every answer.

  const messages = [];
  let steps = [];       // steps of the shown answer: {tokens: [span], tree or null}
  let selected = -1;    // index in `steps`
  let isFollowing = true;
  let running = null;   // AbortController of the answer in progress

  const ORIGINS = {accepted: "drafted and accepted", recovered: "corrected", bonus: "bonus", plain: "plain"};
  const MEANINGS = {accepted: "drafted, and accepted by the model", recovered: "corrected: drafts were rejected here",
                    bonus: "bonus: added by the model after accepted drafts", plain: "plain: nothing was drafted here"};

  function showLegend() {
    byId("legend").append(...Object.entries(ORIGINS).map(([origin, meaning]) =>
      element("span", {title: MEANINGS[origin]}, element("b", {class: `token ${origin}`, "aria-hidden": "true"}, "token"), meaning)));
  }

  function addMessage(kind, who, text) {
    byId("welcome")?.remove();
    const body = element("p", {class: "text"}, text);
    const figures = element("p", {class: "figures"});
    const message = element("article", {class: `message ${kind}`}, element("p", {class: "who"}, who), body, figures);
    byId("messages").append(message);
    scrollToEnd(true);
    return {message, body, figures};
  }

  const isNarrow = matchMedia("(max-width: 56rem)");
  function scrollToEnd(always) {
    const box = isNarrow.matches ? document.scrollingElement : byId("messages");
    if (isNarrow.matches) {
      if (always) byId("composer").scrollIntoView({block: "end"});
    } else if (always || box.scrollHeight - box.scrollTop - box.clientHeight < 80) {
      box.scrollTop = box.scrollHeight;
    }
  }

  const say = (text) => { byId("status").textContent = text; };

  // ---- Requests.

  function headers() {
    const key = byId("key").value.trim();
    return key === "" ? {} : {Authorization: `Bearer ${key}`};
  }

  function requestBody() {
    const system = byId("system").value.trim();
    const number = (id, otherwise) => (byId(id).value === "" ? otherwise : Number(byId(id).value));
    const speculative = {mode: byId("mode").value, trace: "detailed"};
    if (byId("budget").value !== "" && speculative.mode !== "off") speculative.budget = number("budget");
    return {
      messages: system === "" ? messages : [{role: "system", content: system}, ...messages],
      temperature: number("temperature", 0), seed: number("seed", 0), max_tokens: number("max-tokens", 256),
      stream: true, stream_options: {include_usage: true}, speculative,
    };
  }

  async function problemOf(response) {
    const text = await response.text();
    try {
      return JSON.parse(text).error.message;
    } catch {
      return `${response.status} ${response.statusText}`;
    }
  }

  // Calls take(object) for every event until [DONE].
  async function readEvents(response, take) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
        if (data === "[DONE]") return;
        if (data !== "") take(JSON.parse(data));
      }
    }
  }

  class Answer {
    constructor() {
      const {message, body, figures} = addMessage("assistant", "Model", "");
      Object.assign(this, {message, body, figures, text: "", tokens: 0, passes: 0, drafted: 0, accepted: 0, timed: 0, speed: 0, firstAt: 0, lastAt: 0});
      this.steps = [];
      body.classList.add("pending");
      byId("messages").setAttribute("aria-busy", "true");
      steps = this.steps;
      selected = -1;
      isFollowing = true;
      showStep(-1);
    }

    take(chunk) {
      if (chunk.error) throw new Error(chunk.error.message || "the server reported an error");
      const choice = (chunk.choices || [])[0];
      if (choice) this.takeChoice(choice);
    }

    takeChoice(choice) {
      const speculation = choice.speculation;
      const content = choice.delta?.content || "";
      const tokens = speculation?.tokens || (content === "" ? [] : [{text: content, origin: "plain"}]);
      if (tokens.length === 0) return;
      const now = performance.now();
      if (this.tokens === 0) this.firstAt = now;
      else this.timed += tokens.length;
      this.lastAt = now;
      const index = this.steps.length;
      const spans = tokens.map(({text, origin}) =>
        element("span", {class: `token ${ORIGINS[origin] ? origin : "plain"}`, title: MEANINGS[origin] || origin}, text));
      for (const span of spans) {
        span.addEventListener("click", () => {
          steps = this.steps;
          isFollowing = false;
          showStep(index);
        });
      }
      this.body.append(...spans);
      this.text += tokens.map(({text}) => text).join("");
      this.tokens += tokens.length;
      this.passes += 1;
      const tree = speculation?.tree || null;
      for (const node of tree ? tree.nodes.slice(1) : []) {
        if (node.fate === "over budget") continue;
        this.drafted += 1;
        this.accepted += node.fate === "accepted" ? 1 : 0;
      }
      this.steps.push({spans, tokens, tree});
      if (steps === this.steps) {
        if (isFollowing) showStep(index);
        else showPlace();
      }
      this.showFigures();
      scrollToEnd(false);
    }

    showFigures() {
      byId("length").textContent = this.passes === 0 ? "–" : (this.tokens / this.passes).toFixed(2);
      byId("rate").textContent = percent(this.accepted, this.drafted);
      const seconds = (this.lastAt - this.firstAt) / 1000;
      this.speed = seconds > 0 ? this.timed / seconds : 0;
      byId("speed").textContent = this.speed > 0 ? short(this.speed) : "–";
      this.figures.textContent = this.summary().join(" · ");
    }

    summary() {
      const parts = [plural(this.tokens, "token")];
      if (this.passes > 0) parts.push(`${(this.tokens / this.passes).toFixed(2)} per pass`);
      if (this.drafted > 0) parts.push(`${percent(this.accepted, this.drafted)} of ${plural(this.drafted, "draft")} accepted`);
      if (this.speed > 0) parts.push(`${short(this.speed)} tokens per second`);
      return parts;
    }

    finish(note) {
      this.body.classList.remove("pending");
      byId("messages").setAttribute("aria-busy", "false");
      const parts = this.summary().concat(note ? [note] : []);
      this.figures.textContent = parts.join(" · ");
      say(`Answer ${note || "complete"}: ${parts.join(", ")}`);
      scrollToEnd(false);
    }
  }

  function setRunning(controller) {
    running = controller;
    byId("send").hidden = controller !== null;
    byId("stop").hidden = controller === null;
  }

  async function ask() {
    const controller = new AbortController();
    setRunning(controller);
    say("Waiting for the answer");
    let answer = null, problem = null;
    try {
      const response = await fetch("/v1/chat/completions", {
        method: "POST", signal: controller.signal,
        headers: {"Content-Type": "application/json", ...headers()}, body: JSON.stringify(requestBody())});
      if (!response.ok) {
        if (response.status === 401) {
          byId("settings").open = true;
          byId("key").focus();
        }
        throw new Error(await problemOf(response));
      }
      answer = new Answer();
      await readEvents(response, (chunk) => answer.take(chunk));
    } catch (error) {
      if (!controller.signal.aborted) problem = error.message;
    }
    setRunning(null);
    if (answer) {
      answer.finish(controller.signal.aborted ? "stopped" : problem ? "broken off" : "");
      messages.push({role: "assistant", content: answer.text});
    }
    if (problem !== null) {
      addMessage("failed", "Error", problem);
      say(`Error: ${problem}`);
    }
    if (answer === null) giveBack();
    poll();
  }

  // A message without an answer returns to the input field.
  function giveBack() {
    const {content} = messages.pop();
    if (byId("input").value === "") byId("input").value = content;
  }

  function send() {
    const text = byId("input").value.trim();
    if (text === "" || running !== null) return;
    byId("input").value = "";
    messages.push({role: "user", content: text});
    addMessage("user", "You", text);
    ask();
  }

  const stop = () => { if (running !== null) running.abort(); };

  function clear() {
    stop();
    messages.length = 0;
    steps = [];
    byId("messages").replaceChildren();
    for (const id of ["length", "rate", "speed"]) byId(id).textContent = "–";
    showStep(-1);
    byId("input").focus();
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

  function showStep(index) {
    for (const span of document.querySelectorAll("#messages .token.chosen")) span.classList.remove("chosen");
    selected = Math.min(index, steps.length - 1);
    showPlace();
    byId("details").replaceChildren();
    const step = steps[selected];
    byId("tree").hidden = !step?.tree;
    byId("tree").replaceChildren();
    if (step === undefined) {
      byId("facts").textContent = "The tree of each step appears here: the accepted path, rejected branches and why.";
      return;
    }
    for (const span of step.spans) span.classList.add("chosen");
    const committed = `${plural(step.tokens.length, "token")} committed`;
    if (!step.tree) {
      byId("facts").textContent = `${committed}, nothing drafted`;
      return;
    }
    const {draft_ms: draft, verify_ms: verify, rows, sequences} = step.tree;
    const times = draft === undefined ? "" : `; draft ${milliseconds(draft)}, verify ${milliseconds(verify)}`;
    const shape = rows === undefined ? "" : `; ${plural(rows, "row")} of ${plural(sequences, "request")}`;
    byId("facts").textContent = committed + times + shape;
    const tree = treeOf(step);
    byId("tree").append(drawTree(tree, hasGuesses(tree), (facts) =>
      byId("details").replaceChildren(factList(facts.filter(([, value]) => value !== "")))));
  }

  function move(by) {
    if (steps.length === 0) return;
    isFollowing = false;
    showStep(Math.max(0, selected + by));
  }

  function follow() {
    isFollowing = !isFollowing;
    if (isFollowing) showStep(steps.length - 1);
    else showPlace();
  }

  // ---- The state of the server, while the page is visible.

  let timer = 0;

  function showStats(stats) {
    byId("model").textContent = [stats.model, stats.drafter].filter((name) => name).join(" · ");
    byId("model").classList.remove("gone");
    byId("batch").textContent = `${stats.running} of ${stats.max_batch}`;
    byId("queue").textContent = `${stats.waiting} waiting`;
    const used = stats.pages > 0 ? stats.used_pages / stats.pages : 0;
    byId("kv").textContent = stats.pages > 0 ? `${(100 * used).toFixed(1)} %` : "–";
    byId("kv-bar").setAttribute("width", 100 * used);
    const speculation = stats.speculation || {};
    byId("speedup").textContent = speculation.speedup > 0 ? `${speculation.speedup.toFixed(2)}×` : "–";
    byId("length-note").textContent = speculation.acceptance_length > 0 ? `server ${speculation.acceptance_length.toFixed(2)}` : "tokens per pass";
    byId("rate-note").textContent = speculation.drafted > 0 ? `server ${(100 * speculation.acceptance_rate).toFixed(1)} %` : "of this answer";
  }

  async function poll() {
    clearTimeout(timer);
    if (document.visibilityState !== "visible") return;
    try {
      const response = await fetch("/stats", {headers: headers()});
      if (!response.ok) throw new Error(response.status === 401 ? "an API key is needed: see Settings" : `the server says ${response.status}`);
      showStats(await response.json());
    } catch (error) {
      byId("model").textContent = error instanceof TypeError ? "the server does not answer" : error.message;
      byId("model").classList.add("gone");
    }
    clearTimeout(timer);
    timer = setTimeout(poll, running === null ? 2000 : 500);
  }

  // ---- Theme, keys, start.

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  function showTheme() {
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    byId("theme").setAttribute("aria-pressed", String(isDark()));
    byId("theme").setAttribute("aria-label", "dark theme");
  }

  // The browser may refuse storage; the page works without it.
  function stored(storage, name, value) {
    try {
      if (value === undefined) return window[storage].getItem(name) || "";
      window[storage].setItem(name, value);
    } catch {}
    return "";
  }

  function listenToKeys(event) {
    if (event.key === "Escape") {
      stop();
      return;
    }
    const isBusy = event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
    if (isBusy || event.altKey || event.ctrlKey || event.metaKey) return;
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (by === undefined || steps.length === 0) return;
    event.preventDefault();
    move(by);
  }

  showLegend();
  const theme = stored("localStorage", "outrider-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  showTheme();
  prefersDark.addEventListener("change", showTheme);
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    stored("localStorage", "outrider-theme", document.documentElement.dataset.theme);
    showTheme();
  });
  byId("key").value = stored("sessionStorage", "outrider-key");
  byId("key").addEventListener("change", () => {
    stored("sessionStorage", "outrider-key", byId("key").value.trim());
    poll();
  });
  byId("settings").open = !isNarrow.matches;
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  byId("input").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  byId("stop").addEventListener("click", stop);
  byId("clear").addEventListener("click", clear);
  byId("previous").addEventListener("click", () => move(-1));
  byId("next").addEventListener("click", () => move(1));
  byId("follow").addEventListener("click", follow);
  document.addEventListener("keydown", listenToKeys);
  document.addEventListener("visibilitychange", poll);
  byId("input").focus();
  poll();
})();
