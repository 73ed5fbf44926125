// Markdown to elements. A model's output is hostile input, so no text is ever parsed as HTML, which the page's policy
// forbids as well (Trusted Types): marked gives tokens, elements are made for the kinds below, HTML is shown as text, and
// images become links.
const markdown = (() => {
  const {element} = shared;

  const LINKS = /^(?:https?:\/\/|mailto:)/i;
  const MAX_CHARACTERS = 100_000;       // longer texts are shown as they are
  const MAX_PARAGRAPH = 4000;           // characters; marked needs quadratic time for emphasis in longer ones
  const MAX_CODE_CHARACTERS = 20_000;   // longer code has no colours
  const MAX_DEPTH = 24;                 // of quotes and lists within one another; deeper ones are shown as they are
  const CHARACTERS = {amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0"};

  // Formulas in LaTeX between \\( and \\), \\[ and \\], $ and $, $$ and $$. Sums of money are none: after the first $
  // and before the last one is no space, and no digit follows. They are made of MathML, which needs no fonts.
  const MAX_FORMULA = 2000;  // characters
  const INLINE_FORMULA = /^(?:\\\(([^]+?)\\\)|\$\$([^]+?)\$\$|\$((?![\s$])(?:\\[^]|[^$\\\n])*?(?<!\s))\$(?!\d))/;
  const BLOCK_FORMULA = /^ {0,3}(?:\\\[([^]+?)\\\]|\$\$([^]+?)\$\$)[ \t]*(?:\n|$)/;

  const formulaRule = (level, name, pattern, begins) => ({name, level,
    start: (text) => begins.exec(text)?.index,
    tokenizer: (text) => {
      const found = pattern.exec(text);
      if (found === null || found[0].length > MAX_FORMULA) return undefined;
      return {type: name, raw: found[0], text: found.slice(1).find((part) => part !== undefined)};
    }});

  const formulas = new Map();  // text -> element, so that an answer that grows is not read again and again
  function formula(text, displayMode) {
    const key = `${displayMode}${text}`;
    if (!formulas.has(key)) {
      if (formulas.size > 500) formulas.clear();
      const box = element(displayMode ? "div" : "span", displayMode ? {class: "formula"} : {});
      try {
        katex.render(text, box, {displayMode, output: "mathml", throwOnError: true, trust: false, strict: "ignore", maxExpand: 200, maxSize: 20});
      } catch {
        box.replaceChildren(element("code", {}, text));
      }
      formulas.set(key, box);
    }
    return formulas.get(key).cloneNode(true);
  }

  marked.use({extensions: [formulaRule("inline", "formula", INLINE_FORMULA, /\\\(|\$/),
                           formulaRule("block", "displayed", BLOCK_FORMULA, /^ {0,3}(?:\\\[|\$\$)/m)]});
  marked.setOptions({gfm: true, breaks: false, mangle: false, headerIds: false});

  // marked escapes texts for HTML.
  const unescaped = (text) => text.replace(/&(?:#(\d{1,6})|#x([0-9a-f]{1,5})|([a-z]+));/gi, (all, decimal, hex, name) => {
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return name ? CHARACTERS[name] ?? all : code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });

  // Texts and elements of Prism's tokens; a token is a text or {type, alias, content}.
  const coloured = (tokens) => [].concat(tokens).map((token) => (typeof token === "string" ? token :
    element("span", {class: [token.type].concat(token.alias || []).map((name) => `code-${name}`).join(" ")},
            ...coloured(token.content))));

  // The code with colours, if its language is known.
  function coloursOf(code, language) {
    const grammar = Object.hasOwn(Prism.languages, language) ? Prism.languages[language] : null;
    const isKnown = typeof grammar === "object" && grammar !== null && code.length <= MAX_CODE_CHARACTERS;
    return isKnown ? coloured(Prism.tokenize(code, grammar)) : [code];
  }

  // A block of code with its language and a button that copies.
  function codeBlock(code, info) {
    const language = (info || "").trim().split(/\s/)[0].toLowerCase();
    const bar = element("div", {class: "code-bar"}, element("span", {}, language));
    if (navigator.clipboard !== undefined) {  // browsers have it only for HTTPS and this machine
      const button = element("button", {type: "button", class: "quiet"}, "Copy code");
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(code);
        button.textContent = "Copied";
      });
      bar.append(button);
    }
    const pre = element("pre", {tabindex: "0"}, element("code", {}, ...coloursOf(code, language)));  // the keyboard scrolls it
    return element("div", {class: "code"}, bar, pre);
  }

  // The title shows where a link leads, because its text may say anything.
  const link = (href, content) => (!LINKS.test(href) ? content :
    [element("a", {href, title: href, target: "_blank", rel: "noopener noreferrer nofollow"}, ...content)]);

  function table({header, align, rows}, depth) {
    const row = (name, cells) => element("tr", {}, ...cells.map(({tokens}, i) =>
      element(name, align[i] ? {class: align[i]} : {}, ...children(tokens, depth))));
    return element("div", {class: "wide-table", tabindex: "0"}, element("table", {},
      element("thead", {}, row("th", header)), element("tbody", {}, ...rows.map((cells) => row("td", cells)))));
  }

  function list({ordered, start, items}, depth) {
    return element(ordered ? "ol" : "ul", ordered && start !== 1 ? {start} : {}, ...items.map(({task, checked, tokens}) =>
      element("li", {}, ...(task ? [checked ? "☑ " : "☐ "] : []), ...children(tokens, depth))));
  }

  const wrapped = (name) => (token, depth) => [element(name, {}, ...children(token.tokens, depth))];

  // Nodes and texts of a token, by its kind.
  const MAKERS = {
    space: () => [], def: () => [], hr: () => [element("hr")], br: () => [element("br")],
    paragraph: wrapped("p"), blockquote: wrapped("blockquote"), strong: wrapped("strong"), em: wrapped("em"), del: wrapped("del"),
    heading: (token, depth) => wrapped(`h${Math.min(6, token.depth + 2)}`)(token, depth),
    code: ({text, lang}) => [codeBlock(text, lang)],
    list: (token, depth) => [list(token, depth)],
    table: (token, depth) => [table(token, depth)],
    text: ({text, tokens}, depth) => (tokens ? children(tokens, depth) : [unescaped(text)]),
    html: ({raw}) => [raw],
    escape: ({text}) => [unescaped(text)],
    formula: ({text, raw}) => [formula(text, raw.startsWith("$$"))],
    displayed: ({text}) => [formula(text, true)],
    codespan: ({text}) => [element("code", {}, unescaped(text))],
    link: ({href, tokens}, depth) => link(unescaped(href), children(tokens, depth)),
    image: ({href, text}) => link(unescaped(href), [unescaped(text) || href]),
  };

  const children = (tokens, depth) =>
    tokens.flatMap((token) => (depth < MAX_DEPTH && MAKERS[token.type] ? MAKERS[token.type](token, depth + 1) : [token.raw]));

  class BoundedLexer extends marked.Lexer {
    inlineTokens(text, tokens = []) {
      if (text.length <= MAX_PARAGRAPH) return super.inlineTokens(text, tokens);
      tokens.push({type: "html", raw: text});
      return tokens;
    }
  }

  // Replaces the content of `box` by the text.
  function show(box, text) {
    try {
      if (text.length <= MAX_CHARACTERS) {
        box.replaceChildren(...children(new BoundedLexer().lex(text), 0));
        return;
      }
    } catch {}  // marked recurses, and some texts are too deep for it
    box.replaceChildren(element("p", {class: "plain-text"}, text));
  }

  return {show};
})();
