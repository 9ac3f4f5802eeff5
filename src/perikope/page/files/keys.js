/**
 * All keys of the page. The table makes both the listener and the visible list of keys, so the list is always right.
 *
 * A key becomes an event `command` of the document, whose `detail` is the name of the command. Components listen to the
 * commands that they know. `texts.js` has a sentence for each command in `keys`.
 */

/** @typedef {import("./state.js").Store} Store */
/** @typedef {keyof typeof import("./texts/en.js").default["keys"]["commands"]} Command */
/** @typedef {"everywhere" | "results" | "document"} Where */

/** @type {ReadonlyArray<{keys: readonly string[], command: Command, where: Where}>} */
export const KEYS = [
  { keys: ["/"], command: "search", where: "everywhere" },
  { keys: ["m"], command: "models", where: "everywhere" },
  { keys: ["w"], command: "worklist", where: "everywhere" },
  { keys: ["t"], command: "theme", where: "everywhere" },
  { keys: ["?"], command: "keys", where: "everywhere" },
  { keys: ["Escape"], command: "close", where: "everywhere" },
  { keys: ["j", "ArrowDown"], command: "next", where: "results" },
  { keys: ["k", "ArrowUp"], command: "previous", where: "results" },
  { keys: ["Enter", "o"], command: "open", where: "results" },
  { keys: ["e"], command: "explain", where: "results" },
  { keys: ["n"], command: "neighbors", where: "results" },
  { keys: ["s"], command: "keep", where: "results" },
  { keys: ["d"], command: "discard", where: "results" },
  { keys: ["c"], command: "cite", where: "results" },
  { keys: ["g"], command: "group", where: "results" },
  { keys: ["f"], command: "filters", where: "results" },
  { keys: ["n", "j"], command: "nextHit", where: "document" },
  { keys: ["p", "k"], command: "previousHit", where: "document" },
  { keys: ["e"], command: "explain", where: "document" },
  { keys: ["c"], command: "cite", where: "document" },
];

// Keys that buttons, links and fields need for themselves.
const NEEDED_BY_CONTROLS = new Set(["Enter", "ArrowDown", "ArrowUp"]);

/**
 * Turn keys into commands from now on.
 *
 * @param {Store} store
 */
export function listenToKeys(store) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.key !== "Escape" && target.closest("input:not([type=range], [type=checkbox]), textarea, select, [contenteditable]")) return;
    if (NEEDED_BY_CONTROLS.has(event.key) && target.closest("a, button, input, summary, [role=tree], [role=slider]")) return;
    if (document.querySelector("dialog[open]")) return;
    const where = store.state.document ? "document" : "results";
    const found = KEYS.find((entry) => entry.keys.includes(event.key) && (entry.where === where || entry.where === "everywhere"));
    if (!found) return;
    event.preventDefault();
    command(found.command);
  });
}

/**
 * Send a command to the components, as its key does.
 *
 * @param {Command} name
 */
export function command(name) {
  document.dispatchEvent(new CustomEvent("command", { detail: name }));
}

/** How a key is shown. @param {string} key */
export function keyLabel(key) {
  return { Escape: "Esc", ArrowDown: "↓", ArrowUp: "↑", Enter: "⏎" }[key] ?? key;
}
