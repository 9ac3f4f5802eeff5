/** Numbers and dates in the language of the interface. */

import { language } from "./texts.js";

/** The country of the user decides on the order of day and month, among those that speak the language. */
const locale = () => navigator.languages.find((code) => code.startsWith(language)) ?? language;

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/** @param {number} value @param {Intl.NumberFormatOptions} options */
function formatted(value, options) {
  const key = `${language}${JSON.stringify(options)}`;
  const format = formats.get(key) ?? new Intl.NumberFormat(locale(), options);
  formats.set(key, format);
  return format.format(value);
}

/** A count. @param {number} value */
export const count = (value) => formatted(value, {});

/** A share from 0 to 1, in percent. @param {number} value */
export const percent = (value) => formatted(value, { style: "percent", maximumFractionDigits: 0 });

/** A score or a value of a parameter. @param {number} value */
export const score = (value) => formatted(value, { maximumSignificantDigits: Math.abs(value) >= 1000 ? 6 : 3 });

/**
 * A date of metadata, such as `2013-04-01`, as people write it. A text that is no date remains as it is.
 *
 * @param {string} text
 */
export function day(text) {
  const [, year, month, date] = /^(\d{4})-(\d\d)(?:-(\d\d))?(?:$|T)/.exec(text) ?? [];
  if (!year) return text;
  const time = new Date(Date.UTC(Number(year), Number(month) - 1, Number(date ?? 1)));
  return new Intl.DateTimeFormat(locale(), { timeZone: "UTC", year: "numeric", month: "short", day: date ? "numeric" : undefined }).format(time);
}
