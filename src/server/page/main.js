// Theme, keys, the state of the server, and the start of the page.
(() => {
  const {byId} = shared;

  // ---- The state of the server, while the page is visible.

  let timer = 0;
  let isKnown = false;  // the models were read

  async function poll() {
    clearTimeout(timer);
    if (document.visibilityState !== "visible") return;
    try {
      if (!isKnown) await settings.showModels();
      isKnown = true;
      const stats = await api.get(`stats${settings.ofModel()}`);
      speculation.showStats(stats);
      byId("model").classList.remove("gone");
      if (stats.speculation) await settings.showDefaults(stats.model);
    } catch (error) {
      byId("model").textContent = error instanceof TypeError ? "the server does not answer" :
        error.status === 401 ? "an API key is needed: see Settings" : error.message;
      byId("model").classList.add("gone");
    }
    clearTimeout(timer);
    const isUrgent = byId("model").classList.contains("gone") || (chat.isRunning() && !byId("speculation").hidden);
    timer = setTimeout(poll, isUrgent ? 500 : 2000);
  }

  // ---- Theme and keys.

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
  function showTheme() {
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    byId("theme").setAttribute("aria-pressed", String(isDark()));
  }

  function startTheme() {
    const theme = settings.stored("localStorage", "outrider-theme");
    if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
    showTheme();
    prefersDark.addEventListener("change", showTheme);
    byId("theme").addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      settings.stored("localStorage", "outrider-theme", document.documentElement.dataset.theme);
      showTheme();
    });
  }

  function listenToKeys(event) {
    if (event.key === "Escape") {
      if (!panels.closeDrawer()) chat.stop();
      return;
    }
    const isBusy = event.target instanceof Element && event.target.closest("input, textarea, select") !== null;
    const by = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (isBusy || event.altKey || event.ctrlKey || event.metaKey || by === undefined) return;
    if (byId("speculation").hidden || !speculation.hasSteps()) return;
    event.preventDefault();
    speculation.move(by);
  }

  // ---- Start.

  // Opens the conversation that the address names, or a new one.
  function openAddress() {
    const named = store.get(location.hash.slice(1));
    if (named === undefined) chat.begin();
    else if (named.id !== chat.id()) chat.open(named);
  }

  async function start() {
    settings.makeFields();
    panels.start();
    startTheme();
    speculation.start(chat.choose);
    chat.start(archive.show);
    try {
      await store.open();
    } catch {
      chat.showError("this browser refuses storage: conversations end with this tab");
    }
    openAddress();
    archive.start();
    byId("key").addEventListener("change", poll);
    window.addEventListener("hashchange", openAddress);
    document.addEventListener("keydown", listenToKeys);
    document.addEventListener("visibilitychange", poll);
    document.body.dataset.ready = "true";
    poll();
  }

  start();
})();
