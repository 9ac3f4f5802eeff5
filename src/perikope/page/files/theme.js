/** Light, dark, or as the system is. */

/** @typedef {"" | "light" | "dark"} Theme */

const KEY = "theme";

/** The chosen theme; empty for that of the system. @returns {Theme} */
export function theme() {
  const stored = localStorage.getItem(KEY);
  return stored === "light" || stored === "dark" ? stored : "";
}

/** Show the page in the chosen theme. */
export function applyTheme() {
  const chosen = theme();
  if (chosen) document.documentElement.dataset.theme = chosen;
  else delete document.documentElement.dataset.theme;
}

/** Choose the next theme: that of the system, light, dark. */
export function nextTheme() {
  /** @type {Record<Theme, Theme>} */
  const next = { "": "light", light: "dark", dark: "" };
  localStorage.setItem(KEY, next[theme()]);
  applyTheme();
}
