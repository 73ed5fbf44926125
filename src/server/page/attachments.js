// Text files that go along with the next message, as blocks of code after its text.
const attachments = (() => {
  const {byId, element} = shared;

  const MAX_BYTES = 1 << 20;
  let files = [];  // {name, text}
  let complain = () => {};

  function show() {
    byId("files").hidden = files.length === 0;
    byId("files").replaceChildren(...files.map((file) => {
      const remove = element("button", {type: "button", class: "quiet", "aria-label": `Remove ${file.name}`}, "✕");
      remove.addEventListener("click", () => {
        files = files.filter((other) => other !== file);
        show();
        byId("input").focus();
      });
      return element("li", {}, file.name, remove);
    }));
  }

  // Throws where the file is too long or no text.
  async function read(file) {
    if (file.size > MAX_BYTES) throw new Error(`${file.name} has more than ${MAX_BYTES >> 20} MiB`);
    try {
      const text = new TextDecoder("utf-8", {fatal: true}).decode(await file.arrayBuffer());
      if (!text.includes("\0")) return {name: file.name, text};
    } catch {}
    throw new Error(`${file.name} is no text in UTF-8; only text can be attached`);
  }

  async function add(list) {
    for (const file of list) {
      try {
        files.push(await read(file));
      } catch (error) {
        complain(error.message);
      }
    }
    show();
  }

  // The fence is longer than any that the text has.
  function block({name, text}) {
    const fence = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map(([run]) => run.length + 1)));
    const ending = /\.([a-z0-9]+)$/i.exec(name);
    return `File ${name}:\n${fence}${ending ? ending[1].toLowerCase() : ""}\n${text.replace(/\n$/, "")}\n${fence}`;
  }

  // The message with the files, which are let go.
  function joinedTo(text) {
    const joined = [text, ...files.map(block)].filter((part) => part !== "").join("\n\n");
    files = [];
    show();
    return joined;
  }

  function start(onProblem) {
    complain = onProblem;
    byId("attach").addEventListener("click", () => byId("attached").click());
    byId("attached").addEventListener("change", async ({target}) => {
      await add([...target.files]);
      target.value = "";
      byId("input").focus();
    });
    byId("chat").addEventListener("dragover", (event) => event.preventDefault());
    byId("chat").addEventListener("drop", (event) => {
      event.preventDefault();
      add([...event.dataTransfer.files]);
    });
    byId("input").addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      add([...event.clipboardData.files]);
    });
  }

  return {start, add, joinedTo, count: () => files.length};
})();
