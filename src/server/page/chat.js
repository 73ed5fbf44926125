// The open conversation: sending, streaming, stopping, editing and regenerating.
const chat = (() => {
  const {byId, element} = shared;

  const SAVE_EVERY = 1000;  // milliseconds, while an answer arrives

  let conversation = store.create("");
  let views = [];       // of conversation.messages
  let running = null;   // AbortController of the answer in progress
  let onChange = () => {};  // called when the list of conversations has changed

  const isNarrow = matchMedia("(max-width: 56rem)");
  const say = (text) => { byId("status").textContent = text; };

  // The messages stay scrolled to their end unless the user scrolled away from it.
  let isAtEnd = true;
  let last = {top: 0, width: 0};  // of the messages at the last scroll event
  // A new width moves the text as well, which is nobody's wish.
  function follow(box) {
    if (box.scrollHeight - box.scrollTop - box.clientHeight < 80) isAtEnd = true;
    else if (box.scrollTop < last.top && box.clientWidth === last.width) isAtEnd = false;
    last = {top: box.scrollTop, width: box.clientWidth};
  }
  function scrollToEnd(always) {
    const box = byId("messages");
    if (always || isAtEnd) box.scrollTop = box.scrollHeight;
  }

  function showError(text) {
    byId("messages").append(element("article", {class: "message failed"},
      element("h2", {class: "who"}, "Error"), element("div", {class: "text plain-text"}, text)));
    say(`Error: ${text}`);
    scrollToEnd(true);
  }

  // ---- The messages on the page.

  const actions = {
    edit(view, text) {
      if (running !== null) return;
      const index = views.indexOf(view);
      if (view.message.role === "user") {
        ask([...conversation.messages.slice(0, index), {role: "user", content: text}]);
        return;
      }
      view.forgetSteps();
      Object.assign(view.message, {content: text, figures: "edited"});
      view.render();
      save(conversation);
    },
    regenerate(view) {
      if (running === null) ask(conversation.messages.slice(0, views.indexOf(view)));
    },
    grown: () => scrollToEnd(false),
  };

  // Makes the page show the messages; views of unchanged ones stay.
  function showMessages() {
    const {messages} = conversation;
    let same = 0;
    while (same < views.length && views[same].message === messages[same]) ++same;
    views = [...views.slice(0, same), ...messages.slice(same).map((message) => new MessageView(message, actions))];
    byId("messages").replaceChildren(...views.map(({root}) => root));
    if (views.length === 0) byId("messages").append(byId("welcome").content.cloneNode(true));
    scrollToEnd(true);
  }

  function setRunning(controller) {
    running = controller;
    byId("send").hidden = controller !== null;
    byId("stop").hidden = controller === null;
    byId("messages").classList.toggle("running", controller !== null);
    byId("messages").setAttribute("aria-busy", String(controller !== null));
  }

  // ---- Keeping.

  async function save(changed) {
    if (changed.messages.length === 0) return;
    changed.title ||= changed.messages[0].content.trim().replace(/\s+/g, " ").slice(0, 80);
    changed.changed = Date.now();
    try {
      await store.put(changed);
    } catch (error) {
      showError(`the conversation was not kept: ${error.message}`);
    }
    onChange();
  }

  // Puts the conversation's id into the address, so that a reload returns to it.
  function showAddress() {
    const fragment = conversation.messages.length === 0 ? "" : `#${conversation.id}`;
    if (location.hash !== fragment) history.replaceState(null, "", location.pathname + fragment);
  }

  function open(next) {
    stop();
    conversation = next;
    byId("system").value = conversation.system;
    showMessages();
    speculation.clearFigures();
    speculation.showAnswer(views.at(-1)?.steps || []);
    showAddress();
    onChange();
    if (!isNarrow.matches) byId("input").focus();
  }

  const begin = () => open(store.create(byId("system").value));

  // ---- Asking.

  function requestBody() {
    const messages = conversation.messages.map(({role, content}) => ({role, content}));
    const system = conversation.system.trim();
    return settings.body(system === "" ? messages : [{role: "system", content: system}, ...messages]);
  }

  // Shows an answer while it arrives. Returns what went wrong, or "".
  async function readAnswer(view, chunks, signal) {
    const answer = new Answer();
    view.begin(answer);
    speculation.showAnswer(answer.steps);
    let savedAt = performance.now(), problem = "";
    try {
      for await (const chunk of chunks) {
        if (!answer.take(chunk)) continue;
        view.update();
        speculation.update(answer.steps);
        speculation.showFigures(answer);
        if (performance.now() - savedAt < SAVE_EVERY) continue;
        savedAt = performance.now();
        save(conversation);
      }
    } catch (error) {
      if (!signal.aborted) problem = error.message;
    }
    Object.assign(view.message, {content: answer.text, reasoning: answer.reasoning});
    view.finish(signal.aborted ? "stopped" : problem === "" ? "" : "broken off");
    say(`Answer ${problem === "" ? "complete" : "broken off"}: ${view.message.figures}`);
    return problem;
  }

  // Lets the model answer the messages, which become the conversation's. False: it did not answer, and the
  // conversation is as it was.
  async function ask(messages) {
    if (store.isFull({...conversation, messages})) {
      showError("this conversation is as long as can be kept: begin a new one");
      return false;
    }
    const asked = conversation, before = conversation.messages, controller = new AbortController();
    conversation.messages = messages;
    showMessages();
    setRunning(controller);
    say("Waiting for the answer");
    let problem = "", hasAnswer = false;
    try {
      const chunks = await api.chat(requestBody(), controller.signal);
      controller.signal.throwIfAborted();  // by another conversation, which is open now
      hasAnswer = true;
      messages.push({role: "assistant", content: "", reasoning: "", figures: ""});
      showMessages();
      showAddress();
      save(conversation);
      problem = await readAnswer(views.at(-1), chunks, controller.signal);
    } catch (error) {
      if (!controller.signal.aborted) problem = error.message;
      if (error.status === 401) panels.show("settings", byId("key"));
    }
    setRunning(null);
    if (!hasAnswer) asked.messages = before;
    if (asked === conversation) {
      if (!hasAnswer) showMessages();
      if (problem !== "") showError(problem);
      scrollToEnd(false);
    }
    // One that was deleted meanwhile stays deleted.
    if (asked === conversation || store.get(asked.id) !== undefined) await save(asked);
    return hasAnswer;
  }

  async function send() {
    if (running !== null || (byId("input").value.trim() === "" && attachments.count() === 0)) return;
    const text = attachments.joinedTo(byId("input").value.trim());
    byId("input").value = "";
    const isAnswered = await ask([...conversation.messages, {role: "user", content: text}]);
    if (!isAnswered && byId("input").value === "") byId("input").value = text;
  }

  const stop = () => { if (running !== null) running.abort(); };

  function start(changed) {
    onChange = changed;
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    byId("input").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    });
    byId("messages").addEventListener("scroll", ({target}) => follow(target));
    new ResizeObserver(() => scrollToEnd(false)).observe(byId("messages"));  // a panel opens
    attachments.start(showError);
    byId("stop").addEventListener("click", stop);
    byId("new").addEventListener("click", begin);
    byId("system").addEventListener("change", () => {
      conversation.system = byId("system").value;
      save(conversation);
    });
    byId("marks").addEventListener("change", () => views.forEach((view) => view.render()));
  }

  return {start, open, begin, stop, showError, choose: (step) => views.forEach((view) => view.choose(step)),
          isRunning: () => running !== null, id: () => conversation.id};
})();
