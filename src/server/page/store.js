// The conversations that this browser keeps in IndexedDB, and the files they are exported to. All are in memory, too, so
// that search needs no queries. A conversation is {id, title, system, changed, messages}, where `changed` is in
// milliseconds since 1970 and a message is {role, content} and, from the model, {reasoning, figures}.
const store = (() => {
  const LIMITS = {conversations: 1000, messages: 2000, characters: 2_000_000, fileBytes: 64 << 20};
  const FORMAT = "outrider-conversations";
  const conversations = new Map();
  let database = null;  // null: the browser refuses storage, and everything ends with the tab

  const finished = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const table = (mode) => database.transaction("conversations", mode).objectStore("conversations");

  const size = ({system, messages}) =>
    messages.reduce((sum, {content, reasoning}) => sum + content.length + (reasoning || "").length, system.length);
  const isFull = (conversation) =>
    conversation.messages.length >= LIMITS.messages || size(conversation) >= LIMITS.characters;

  const isText = (value) => typeof value === "string";
  const isMessage = (value) => value !== null && typeof value === "object" && ["user", "assistant"].includes(value.role) &&
    isText(value.content) && isText(value.reasoning ?? "") && isText(value.figures ?? "");
  const isConversation = (value) => value !== null && typeof value === "object" && isText(value.id) && value.id !== "" &&
    isText(value.title) && isText(value.system) && Number.isFinite(value.changed) && Array.isArray(value.messages) &&
    value.messages.length <= LIMITS.messages && value.messages.every(isMessage) && size(value) <= 2 * LIMITS.characters;
  const cleaned = ({id, title, system, changed, messages}) => ({id, title, system, changed,
    messages: messages.map(({role, content, reasoning = "", figures = ""}) => ({role, content, reasoning, figures}))});

  // Reads what is kept. Throws where the browser refuses storage.
  async function open() {
    const request = indexedDB.open("outrider", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("conversations", {keyPath: "id"});
    database = await finished(request);
    for (const each of await finished(table("readonly").getAll()))
      if (isConversation(each)) conversations.set(each.id, each);
  }

  const create = (system) => ({id: crypto.randomUUID?.() || `${Date.now()}-${Math.random()}`, title: "", system, changed: 0, messages: []});

  // Keeps the conversation. Throws where it is not written.
  async function put(conversation) {
    if (!conversations.has(conversation.id) && conversations.size >= LIMITS.conversations)
      throw new Error(`${LIMITS.conversations} conversations are kept, and no more: export and delete some`);
    conversations.set(conversation.id, conversation);
    if (database !== null) await finished(table("readwrite").put(cleaned(conversation)));
  }

  async function remove(id) {
    conversations.delete(id);
    if (database !== null) await finished(table("readwrite").delete(id));
  }

  const newestFirst = () => [...conversations.values()].sort((a, b) => b.changed - a.changed);

  // The newest first; of each the text around the first word that was found. Every word must occur in it.
  function search(query) {
    const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
    if (words.length === 0) return newestFirst().map((conversation) => ({conversation, excerpt: ""}));
    return newestFirst().flatMap((conversation) => {
      const text = [conversation.title, ...conversation.messages.map(({content}) => content)].join("\n");
      const small = text.toLowerCase();
      if (!words.every((word) => small.includes(word))) return [];
      const at = small.indexOf(words[0], small.indexOf("\n"));
      return [{conversation, excerpt: at < 0 ? "" : text.slice(Math.max(0, at - 30), at + 60)}];
    });
  }

  const exported = (list) => JSON.stringify({format: FORMAT, version: 1, conversations: list.map(cleaned)}, null, 1);

  // Adds the conversations of an exported file, of two with one id the one changed last. Returns how many were taken.
  async function imported(file) {
    if (file.size > LIMITS.fileBytes) throw new Error(`the file has more than ${LIMITS.fileBytes >> 20} MiB`);
    let value = null;
    try {
      value = JSON.parse(await file.text());
    } catch (error) {
      throw new Error(`the file is not JSON: ${error.message}`);
    }
    if (value?.format !== FORMAT || value.version !== 1 || !Array.isArray(value.conversations))
      throw new Error(`expected a file with "format": "${FORMAT}" and "version": 1`);
    const wrong = value.conversations.findIndex((each) => !isConversation(each));
    if (wrong >= 0) throw new Error(`conversation ${wrong + 1} of the file is not complete or too long; nothing was imported`);
    const taken = value.conversations.filter(({id, changed}) => !(conversations.get(id)?.changed >= changed));
    for (const each of taken) await put(cleaned(each));
    return taken.length;
  }

  return {LIMITS, open, create, put, remove, get: (id) => conversations.get(id), newestFirst, search, isFull, exported, imported};
})();
