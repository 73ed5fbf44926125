// An answer in progress: what its chunks say, added up.
class Answer {
  static MAX_CHARACTERS = 2_000_000;  // a server that never ends must not fill the memory

  constructor() {
    Object.assign(this, {text: "", reasoning: "", steps: [], tokens: 0, passes: 0, drafted: 0, accepted: 0, timed: 0, firstAt: 0, lastAt: 0});
  }

  // Takes one chunk of the stream; false: nothing to show.
  take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message || "the server reported an error");
    const choice = (chunk.choices || [])[0];
    if (choice === undefined) return false;
    const content = choice.delta?.content || "", reasoning = choice.delta?.reasoning_content || "";
    this.text += content;
    this.reasoning += reasoning;
    if (this.text.length + this.reasoning.length > Answer.MAX_CHARACTERS)
      throw new Error(`the answer has more than ${Answer.MAX_CHARACTERS} characters`);
    const text = reasoning + content;
    const tokens = choice.speculation?.tokens || (text === "" ? [] : [{text, origin: "plain"}]);
    if (tokens.length > 0) this.addStep(tokens, choice.speculation?.tree || null);
    return tokens.length > 0;
  }

  addStep(tokens, tree) {
    const now = performance.now();
    if (this.tokens === 0) this.firstAt = now;
    else this.timed += tokens.length;
    this.lastAt = now;
    this.tokens += tokens.length;
    this.passes += 1;
    for (const node of tree === null ? [] : tree.nodes.slice(1)) {
      if (node.fate === "over budget") continue;
      this.drafted += 1;
      this.accepted += node.fate === "accepted" ? 1 : 0;
    }
    const step = {tokens, tree};
    this.steps.push(step);
    speculation.remember(step);
  }

  get speed() {  // tokens per second after the first step; 0: not known
    const seconds = (this.lastAt - this.firstAt) / 1000;
    return seconds > 0 ? this.timed / seconds : 0;
  }

  summary(note) {
    const {plural, percent, short} = shared;
    const parts = [plural(this.tokens, "token")];
    if (this.passes > 0) parts.push(`${(this.tokens / this.passes).toFixed(2)} per pass`);
    if (this.drafted > 0) parts.push(`${percent(this.accepted, this.drafted)} of ${plural(this.drafted, "draft")} accepted`);
    if (this.speed > 0) parts.push(`${short(this.speed)} tokens per second`);
    return parts.concat(note === "" ? [] : [note]).join(" · ");
  }
}
