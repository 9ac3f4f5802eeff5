/** The texts of the interface, in the language of the user. Each language is one file in `texts`. */

import en from "./texts/en.js";

/** @typedef {typeof en} Texts */

/** The languages of the interface, by code. English is always loaded, and others are loaded when they are chosen. */
export const LANGUAGES = { en: "English", de: "Deutsch" };

/** @type {Texts} */
export let t = en;

/** The code of the language of the interface. */
export let language = "en";

/** Load the language that the user has chosen, or that the browser asks for. Call it before anything is shown. */
export async function loadLanguage() {
  const wanted = [localStorage.getItem("language") ?? "", ...navigator.languages].map((code) => code.slice(0, 2));
  language = wanted.find((code) => code in LANGUAGES) ?? "en";
  if (language !== "en") t = (await import(`./texts/${language}.js`)).default;
  document.documentElement.lang = language;
}

/** @param {string} code */
export function chooseLanguage(code) {
  localStorage.setItem("language", code);
  location.reload();
}
