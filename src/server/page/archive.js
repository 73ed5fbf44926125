// The list of conversations: search, export and import, delete and undo.
const archive = (() => {
  const {byId, element, plural} = shared;

  const MAX_SHOWN = 200;
  let deleted = null;  // the conversation that Undo brings back
  let shown = "";      // the entries of the list, as text

  function entry({conversation, excerpt}) {
    const open = element("button", {type: "button", class: "entry"}, element("span", {class: "title"}, conversation.title),
      ...(excerpt === "" ? [] : [element("span", {class: "excerpt"}, excerpt)]));
    if (conversation.id === chat.id()) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => {
      chat.open(conversation);
      panels.closeDrawer();
    });
    const remove = element("button", {type: "button", class: "quiet", "aria-label": `Delete ${conversation.title}`}, "✕");
    remove.addEventListener("click", () => erase(conversation));
    return element("li", {}, open, remove);
  }

  // The list is made anew only if it differs, so that the focus stays.
  function show() {
    const found = store.search(byId("search").value);
    const entries = found.slice(0, MAX_SHOWN);
    const text = JSON.stringify([chat.id(), entries.map(({conversation, excerpt}) => [conversation.id, conversation.title, excerpt])]);
    if (text !== shown) byId("list").replaceChildren(...entries.map(entry));
    shown = text;
    const isSearch = byId("search").value.trim() !== "";
    byId("found").textContent = found.length > MAX_SHOWN ? `${MAX_SHOWN} of ${found.length} are shown: search for more` :
      isSearch ? `${found.length} found` : found.length === 0 ? "Conversations are kept in this browser." : "";
  }

  async function erase(conversation) {
    if (conversation.id === chat.id()) chat.begin();
    await store.remove(conversation.id);
    deleted = conversation;
    byId("undo").hidden = false;
    byId("undo-title").textContent = `Deleted “${shared.clipped(conversation.title, 30)}”`;
    show();
    byId("undo-button").focus();
  }

  async function undo() {
    byId("undo").hidden = true;
    await store.put(deleted);
    show();
    byId("search").focus();
  }

  function download() {
    const link = element("a", {download: `outrider-${new Date().toISOString().slice(0, 10)}.json`});
    link.href = URL.createObjectURL(new Blob([store.exported(store.newestFirst())], {type: "application/json"}));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  }

  async function upload() {
    const [file] = byId("file").files;
    byId("file").value = "";
    if (file === undefined) return;
    try {
      const count = await store.imported(file);
      show();
      byId("found").textContent = `${plural(count, "conversation")} imported`;
    } catch (error) {
      chat.showError(`not imported: ${error.message}`);
    }
  }

  function start() {
    byId("search").addEventListener("input", show);
    byId("undo-button").addEventListener("click", undo);
    byId("export").addEventListener("click", download);
    byId("import").addEventListener("click", () => byId("file").click());
    byId("file").addEventListener("change", upload);
    show();
  }

  return {start, show};
})();
