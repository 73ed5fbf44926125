// The settings: everything that a request says besides its messages. An empty field means the default of the server.
const settings = (() => {
  const {byId, element} = shared;

  // [field of the request, label, attributes]
  const NUMBERS = [
    ["temperature", "Temperature", {min: 0, max: 2, step: 0.05}],
    ["top_k", "Top-k", {min: -1, step: 1}],
    ["top_p", "Top-p", {min: 0, max: 1, step: 0.01}],
    ["min_p", "Min-p", {min: 0, max: 1, step: 0.01}],
    ["repetition_penalty", "Repetition penalty", {min: 0.01, max: 100, step: 0.01}],
    ["presence_penalty", "Presence penalty", {min: -2, max: 2, step: 0.1}],
    ["frequency_penalty", "Frequency penalty", {min: -2, max: 2, step: 0.1}],
    ["max_tokens", "Max tokens", {min: 1, step: 1}],
    ["seed", "Seed", {step: 1}],
  ];
  const CHOICES = [
    ["thinking", "Thinking", [["", "the model's"], ["on", "on"], ["off", "off"]]],
    ["mode", "Speculation", [["auto", "auto"], ["fixed", "fixed"], ["off", "off"]]],
  ];
  const TEXTS = [
    ["stop-texts", "Stop texts, one per line", ""],
    ["schema", "JSON schema of the answer", '{"type": "object"}'],
    ["more", "Further fields, as JSON", '{"logit_bias": {"42": -5}}'],
  ];
  const NAMES = [...NUMBERS, ...CHOICES, ["budget"], ...TEXTS].map(([name]) => name);

  // ---- What the browser keeps. It may refuse storage; the page works without it.

  function stored(storage, name, value) {
    try {
      if (value === undefined) return window[storage].getItem(name) || "";
      window[storage].setItem(name, value);
    } catch {}
    return "";
  }

  const keep = () => stored("localStorage", "outrider-settings",
                            JSON.stringify(Object.fromEntries(NAMES.map((name) => [name, byId(name).value]))));

  function fill() {
    let values = {};
    try {
      values = JSON.parse(stored("localStorage", "outrider-settings") || "{}");
    } catch {}
    for (const name of NAMES) if (typeof values[name] === "string") byId(name).value = values[name];
    byId("key").value = stored("sessionStorage", "outrider-key");
  }

  function reset() {
    for (const name of NAMES) byId(name).value = "";
    byId("mode").value = "auto";
    keep();
  }

  // ---- The form.

  function makeFields() {
    const labelled = (label, field, kind) => element("label", kind ? {class: kind} : {}, label, field);
    byId("sampling").append(
      ...NUMBERS.map(([id, label, limits]) => labelled(label, element("input", {id, type: "number", inputmode: "decimal", placeholder: "default", ...limits}))),
      ...CHOICES.map(([id, label, values]) => labelled(label, element("select", {id}, ...values.map(([value, text]) => element("option", {value}, text))))),
      labelled("Tree nodes, at most", element("input", {id: "budget", type: "number", min: 1, step: 1, placeholder: "default"})),
      ...TEXTS.map(([id, label, placeholder]) => labelled(label, element("textarea", {id, rows: 2, placeholder, spellcheck: "false"}), "wide")));
    fill();
    byId("settings").addEventListener("change", keep);
    byId("key").addEventListener("change", () => stored("sessionStorage", "outrider-key", byId("key").value.trim()));
    byId("reset").addEventListener("click", reset);
  }

  // Shows the defaults of the model in the empty fields, once.
  let shown = "";
  async function showDefaults(model) {
    if (model === shown) return;
    const {default_generation_settings: {params}} = await api.get(`props${ofModel()}`);
    shown = model;
    const defaults = {...params, repetition_penalty: params.repeat_penalty};
    for (const [name] of NUMBERS)
      if (defaults[name] !== undefined) byId(name).placeholder = Number(defaults[name].toPrecision(4));
  }

  // Offers the models of the server where there are several.
  async function showModels() {
    const {data} = await api.get("v1/models");
    byId("models").replaceChildren(...data.map(({id}) => element("option", {}, id)));
    byId("models").hidden = data.length < 2;
    byId("model").hidden = data.length >= 2;
  }

  // The query for the chosen one of several models.
  const ofModel = () => byId("models").hidden ? "" : `?model=${encodeURIComponent(byId("models").value)}`;

  // ---- The request.

  function json(id) {
    const label = byId(id).closest("label").firstChild.data;
    try {
      const value = JSON.parse(byId(id).value);
      if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
    } catch (error) {
      throw new Error(`${label}: not valid JSON: ${error.message}`);
    }
    throw new Error(`${label}: expected a JSON object`);
  }

  // The body of a request. Throws where a field cannot be read.
  function body(messages) {
    const value = (id) => byId(id).value.trim();
    const made = {messages, stream: true, stream_options: {include_usage: true},
                  speculative: {mode: value("mode") || "auto", trace: "detailed"}};
    if (value("models") !== "") made.model = value("models");
    for (const [name] of NUMBERS) if (value(name) !== "") made[name] = Number(value(name));
    if (value("budget") !== "" && made.speculative.mode !== "off") made.speculative.budget = Number(value("budget"));
    if (value("thinking") !== "") made.enable_thinking = value("thinking") === "on";
    if (value("stop-texts") !== "") made.stop = byId("stop-texts").value.split("\n").filter((line) => line !== "");
    if (value("schema") !== "") made.response_format = {type: "json_schema", json_schema: {name: "answer", schema: json("schema")}};
    return value("more") === "" ? made : Object.assign(made, json("more"));
  }

  return {makeFields, showDefaults, showModels, ofModel, body, stored};
})();
