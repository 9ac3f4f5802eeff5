/** Models as texts, such as `bm25(k1=1.5)`: reading, writing, and the range of a slider for each parameter. */

/** @typedef {import("./types.js").ModelSummary} Model */
/** @typedef {import("./types.js").ModelParameter} Parameter */

/**
 * The name of a model, and its parameters as they are written.
 *
 * @param {string} text
 * @returns {{name: string, values: Map<string, string>}}
 */
export function readModel(text) {
  const open = text.indexOf("(");
  if (open < 0) return { name: text.trim(), values: new Map() };
  const inside = text.slice(open + 1, text.lastIndexOf(")"));
  /** @type {[string, string][]} */
  const pairs = [];
  for (const piece of split(inside)) {
    const equals = piece.indexOf("=");
    if (equals > 0) pairs.push([piece.slice(0, equals).trim(), piece.slice(equals + 1).trim()]);
  }
  return { name: text.slice(0, open).trim(), values: new Map(pairs) };
}

/**
 * A model with the parameters that differ from their defaults.
 *
 * @param {Model} model
 * @param {Map<string, string>} values
 */
export function writeModel(model, values) {
  const given = [...values].filter(([name, value]) => {
    const parameter = model.parameters.find((one) => one.name === name);
    return !parameter || value !== written(parameter.default);
  });
  return given.length ? `${model.name}(${given.map(([name, value]) => `${name}=${value}`).join(",")})` : model.name;
}

/**
 * A value of a parameter as models are written.
 *
 * @param {any} value
 */
export function written(value) {
  if (typeof value === "boolean") return value ? "true" : "false";
  return String(value ?? "");
}

/**
 * How a parameter is set: by a slider, a checkbox, a choice, or not at all.
 *
 * @param {Parameter} parameter
 * @returns {"slider" | "checkbox" | "choice" | ""}
 */
export function control(parameter) {
  if (typeof parameter.default === "boolean") return "checkbox";
  if (numbers(parameter).length && (typeof parameter.default === "number" || parameter.low !== null)) return "slider";
  return parameter.choices.length > 1 && parameter.choices.every((one) => typeof one === "string") ? "choice" : "";
}

/**
 * The scale of a slider. A parameter may have any value up to a billion, of which few are sensible: the slider reaches
 * from the smallest sensible value to twice the largest one that is tried in tuning. A scale over several orders of
 * magnitude is logarithmic.
 *
 * @param {Parameter} parameter
 * @returns {{low: number, high: number, step: number, logarithmic: boolean}}
 */
export function scale(parameter) {
  const tried = numbers(parameter);
  const whole = tried.every(Number.isInteger) && Math.max(...tried) > 1 && !(parameter.high !== null && parameter.high <= 1);
  const largest = Math.max(...tried, 0), positive = tried.filter((value) => value > 0);
  const smallest = Math.min(...positive, largest);
  if (smallest > 0 && largest / smallest >= 100) return { low: smallest / 10, high: largest, step: 0.01, logarithmic: true };
  const limit = parameter.low ?? 0, isShare = parameter.high !== null && parameter.high - limit <= 1;
  const high = Math.max(isShare ? parameter.high ?? 1 : Math.min(parameter.high ?? Infinity, 2 * (largest || 1)), limit + 1e-6);
  const step = whole ? 1 : nice((high - limit) / 100);
  return { low: parameter.low_open ? limit + step : limit, high, step, logarithmic: false };
}

/** @param {Parameter} parameter */
function numbers(parameter) {
  return [parameter.default, ...parameter.choices].filter((value) => typeof value === "number");
}

/** A step of 1, 2 or 5 times a power of ten. @param {number} step */
function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].findLast((factor) => factor * power <= step * 1.0001) ?? 1);
}

/** The pieces of a text between commas that are in no parentheses, brackets or quotes. @param {string} text */
function split(text) {
  const pieces = [];
  let depth = 0, quoted = "", start = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (quoted) quoted = character === quoted ? "" : quoted;
    else if (character === '"' || character === "'") quoted = character;
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character)) depth--;
    else if (character === "," && depth === 0) {
      pieces.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...pieces, text.slice(start)].filter((piece) => piece.trim());
}
