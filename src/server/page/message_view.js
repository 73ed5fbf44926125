// One message on the page: its text as Markdown, or token by token with marks, and the buttons below it.
const MessageView = (() => {
  const {byId, element} = shared;

  const stepsOf = new WeakMap();  // message -> the steps of its answer, only in this tab
  const isMarking = () => byId("marks").checked;

  return class {
    // `actions`: {edit(view, text), regenerate(view), grown()}.
    constructor(message, actions) {
      this.message = message;
      this.actions = actions;
      this.isRunning = false;
      this.timer = 0;
      this.cost = 0;  // milliseconds of the last rendering
      this.shownSteps = 0;  // steps with tokens on the page
      this.spans = new Map();  // step -> its elements
      const isUser = message.role === "user";
      this.reasoning = element("div", {class: "reasoning-text"});
      this.thinking = element("details", {class: "reasoning"}, element("summary", {}, "Thinking"), this.reasoning);
      this.body = element("div", {class: "text"});
      this.figures = element("p", {class: "figures"});
      this.buttons = element("div", {class: "actions"}, ...this.makeButtons(isUser));
      this.root = element("article", {class: `message ${isUser ? "user" : "assistant"}`},
        element("h2", {class: "who"}, isUser ? "You" : "Model"), this.thinking, this.body, this.figures, this.buttons);
      this.render();
    }

    makeButtons(isUser) {
      const made = (name, press) => {
        const button = element("button", {type: "button", class: "quiet"}, name);
        button.addEventListener("click", press);
        return button;
      };
      const list = navigator.clipboard === undefined ? [] :
        [made("Copy", () => navigator.clipboard.writeText(this.message.content))];
      list.push(made("Edit", () => this.edit()));
      if (!isUser) list.push(made("Regenerate", () => this.actions.regenerate(this)));
      return list;
    }

    // The answer that arrives is shown from now on.
    begin(answer) {
      this.isRunning = true;
      this.root.classList.add("pending");
      stepsOf.set(this.message, answer.steps);
      this.answer = answer;
    }

    // The answer has more text. Rendering takes at most a fifth of the time.
    update() {
      Object.assign(this.message, {content: this.answer.text, reasoning: this.answer.reasoning});
      this.figures.textContent = this.answer.summary("");
      if (this.timer !== 0) return;
      this.timer = setTimeout(() => {
        this.timer = 0;
        this.render();
        this.actions.grown();
      }, Math.max(30, 4 * this.cost));
    }

    finish(note) {
      clearTimeout(this.timer);
      this.timer = 0;
      this.isRunning = false;
      this.root.classList.remove("pending");
      this.message.figures = this.answer.summary(note);
      this.render();
    }

    render() {
      const begin = performance.now();
      const {content, reasoning, figures, role} = this.message;
      this.thinking.hidden = !reasoning;
      this.reasoning.textContent = reasoning || "";
      if (!this.isRunning) this.figures.textContent = figures || "";
      const steps = isMarking() ? stepsOf.get(this.message) : undefined;
      this.body.classList.toggle("plain-text", role === "user" || steps !== undefined);
      if (steps !== undefined) {
        this.renderTokens(steps);
      } else {
        this.shownSteps = 0;
        if (role === "user") this.body.textContent = content;
        else markdown.show(this.body, content);
      }
      this.cost = performance.now() - begin;
    }

    // Adds the tokens of new steps. Each leads to the tree of its step.
    renderTokens(steps) {
      if (this.shownSteps === 0) this.body.replaceChildren();
      for (let i = this.shownSteps; i < steps.length; ++i) {
        const spans = steps[i].tokens.map((token) => element("span",
          {class: `token ${speculation.originOf(token)}`, title: speculation.meaningOf(token)}, token.text));
        for (const span of spans) span.addEventListener("click", () => speculation.select(steps, i));
        this.spans.set(steps[i], spans);
        this.body.append(...spans);
      }
      this.shownSteps = steps.length;
    }

    // Outlines the tokens of the step that the panel shows.
    choose(step) {
      for (const span of this.body.querySelectorAll(".token.chosen")) span.classList.remove("chosen");
      for (const span of this.spans.get(step) || []) span.classList.add("chosen");
    }

    // Replaces the text by a field. A user's new text is asked again; a model's is kept.
    edit() {
      const field = element("textarea", {class: "edit", "aria-label": "Text of the message"});
      field.value = this.message.content;
      const save = element("button", {type: "submit"}, this.message.role === "user" ? "Send" : "Save");
      const cancel = element("button", {type: "button"}, "Cancel");
      const form = element("form", {class: "editing"}, field, element("div", {class: "buttons"}, save, cancel));
      const close = () => {
        form.replaceWith(this.body);
        this.buttons.hidden = false;
      };
      cancel.addEventListener("click", close);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        close();
        if (field.value.trim() !== "") this.actions.edit(this, field.value);
      });
      form.addEventListener("keydown", (event) => {
        if (event.key === "Escape") close();
        else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
        else return;
        event.preventDefault();
        event.stopPropagation();
      });
      this.body.replaceWith(form);
      this.buttons.hidden = true;
      field.focus();
    }

    // The text was edited, so its tokens are no longer known.
    forgetSteps() {
      stepsOf.delete(this.message);
    }

    get steps() {
      return stepsOf.get(this.message) || [];
    }
  };
})();
