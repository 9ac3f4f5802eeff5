/** Asks for the token that the server wants. It is kept until the window is closed. */

import { h } from "./dom.js";
import { t } from "./texts.js";

/**
 * Ask for a token.
 *
 * @returns {Promise<string>} the token; empty if the user gave none
 */
export function askForToken() {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "token", "aria-labelledby": "token-title", onclose: () => (dialog.remove(), resolve(input.value.trim())) },
      h("form", { method: "dialog" },
        h("h2", { id: "token-title" }, t.token.title), h("p", { class: "help" }, t.token.help),
        h("label", { class: "field-label", for: "token" }, t.token.label, input),
        h("button", { class: "button", type: "submit" }, t.token.send)));
    dialog.addEventListener("cancel", () => (input.value = ""));
    document.body.append(dialog);
    dialog.showModal();
  });
}
