// The panels beside the conversation: the list on the left, speculation or settings on the right. On a phone one covers
// the page at a time.
const panels = (() => {
  const {byId} = shared;
  const NAMES = ["archive", "speculation", "settings"];
  const isNarrow = matchMedia("(max-width: 56rem)");

  function set(name, isOpen) {
    byId(name).hidden = !isOpen;
    byId(`${name}-button`).setAttribute("aria-expanded", String(isOpen));
    if (name === "archive" && !isNarrow.matches) settings.stored("localStorage", "outrider-list", isOpen ? "open" : "closed");
    if (name === "speculation" && isOpen) speculation.redraw();
  }

  const others = (name) => (isNarrow.matches ? NAMES : name === "archive" ? [] : ["speculation", "settings"]).filter((each) => each !== name);

  // Opens a panel and moves to a field of it.
  function show(name, field) {
    for (const other of others(name)) if (!byId(other).hidden) set(other, false);
    set(name, true);
    field?.focus();
  }

  // Closes all that cover the page. False: none did.
  function closeDrawer() {
    const open = NAMES.filter((name) => isNarrow.matches && !byId(name).hidden);
    for (const name of open) set(name, false);
    return open.length > 0;
  }

  function start() {
    for (const name of NAMES) {
      const toggle = () => (byId(name).hidden ? show(name) : set(name, false));
      byId(`${name}-button`).addEventListener("click", toggle);
      byId(name).querySelector(".close").addEventListener("click", () => {
        set(name, false);
        byId(`${name}-button`).focus();
      });
    }
    if (!isNarrow.matches && settings.stored("localStorage", "outrider-list") !== "closed") set("archive", true);
    isNarrow.addEventListener("change", closeDrawer);
  }

  return {start, show, closeDrawer};
})();
