/** The list of keys, made from the table of keys. */

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { KEYS, keyLabel } from "./keys.js";
import { t } from "./texts.js";

/**
 * A dialog with all keys.
 *
 * @param {() => void} closed
 */
export function keyList(closed) {
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title", onclose: () => (dialog.remove(), closed()) },
    h("header", {}, h("h2", { id: "keys-title" }, t.keys.title), h("button", { class: "icon-button", type: "button", "aria-label": t.app.close, onclick: () => dialog.close() }, icon("close"))),
    /** @type {const} */ (["everywhere", "results", "document"]).map((where) => h("section", {}, h("h3", {}, t.keys.where[where]),
      h("dl", {}, KEYS.filter((entry) => entry.where === where).map(({ keys, command }) => h("div", {},
        h("dt", {}, keys.map((key) => h("kbd", {}, keyLabel(key)))), h("dd", {}, t.keys.commands[command])))))));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  return dialog;
}
