/** What is shown before the first search: what the index contains, and what the search box understands. */

import { h } from "./dom.js";
import { count } from "./format.js";
import { t } from "./texts.js";

/**
 * @param {{documents: number, passages: number, fields: Record<string, number>}} summary
 * @returns {HTMLElement}
 */
export function landing(summary) {
  const hasPatents = "patent" in summary.fields || "publication" in summary.fields;
  const understood = [t.landing.words, t.landing.boolean, ...(hasPatents ? [t.landing.patent, t.landing.claim] : [t.landing.paragraph])];
  return h("section", { class: "landing-text", "aria-label": t.landing.title },
    h("p", { class: "contents" }, t.landing.contents(count(summary.passages), count(summary.documents))),
    h("ul", { class: "understood" }, understood.map(([name, example]) => h("li", {}, h("strong", {}, name), " ", example))),
    h("p", { class: "help" }, t.landing.keys[0], h("kbd", {}, "?"), t.landing.keys[1]));
}
