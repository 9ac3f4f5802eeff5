/**
 * Conditions on metadata as texts, such as `country="EP"|"US"` and `year>=2010`. The page writes few forms of them. It
 * shows all others as they are.
 */

/**
 * @typedef {object} Condition
 * @property {string} field
 * @property {string} operator `=`, `>=` or `<=`
 * @property {string[]} values
 */

const SIMPLE = /^(?<field>"(?:[^"\\]|\\.)*"|[\p{L}_][\p{L}\p{N}_.-]*)(?<operator>>=|<=|=)(?<rest>.*)$/su;
const QUOTED = /^"((?:[^"\\]|\\.)*)"/su;
const PLAIN_FIELD = /^[\p{L}_][\p{L}\p{N}_.-]*$/u;
// Values of these fields are codes, which match all codes inside them, unless they are in quotes.
const CODE = /^[A-HY]\d\d(?:[A-Z][A-Z0-9/]*)?$/;

/**
 * A condition that the page can change; null for any other.
 *
 * @param {string} text
 * @returns {Condition | null}
 */
export function readCondition(text) {
  const { field, operator, rest } = SIMPLE.exec(text)?.groups ?? {};
  if (!field || !rest) return null;
  if (operator !== "=") return /^[\d.-]+$/.test(rest) ? { field: plain(field), operator, values: [rest] } : null;
  const values = [];
  for (let left = rest; ; left = left.slice(1)) {
    const found = QUOTED.exec(left) ?? /^[^|"*.]+/u.exec(left);
    if (!found) return null;
    values.push(plain(found[0]));
    left = left.slice(found[0].length);
    if (!left) return { field: plain(field), operator, values };
    if (left[0] !== "|") return null;
  }
}

/**
 * @param {string} field
 * @param {string} operator
 * @param {readonly string[]} values
 */
export function writeCondition(field, operator, values) {
  const name = PLAIN_FIELD.test(field) ? field : quote(field);
  return `${name}${operator}${operator === "=" ? values.map((value) => (CODE.test(value) ? value : quote(value))).join("|") : values[0]}`;
}

/**
 * The chosen values of a field.
 *
 * @param {readonly string[]} filters
 * @param {string} field
 */
export function chosenValues(filters, field) {
  return filters.map(readCondition).flatMap((one) => (one?.field === field && one.operator === "=" ? one.values : []));
}

/**
 * Filters with other chosen values of a field.
 *
 * @param {readonly string[]} filters
 * @param {string} field
 * @param {readonly string[]} values
 */
export function withValues(filters, field, values) {
  const others = without(filters, field, ["="]);
  return values.length ? [...others, writeCondition(field, "=", values)] : others;
}

/**
 * The limits of a field, or empty texts.
 *
 * @param {readonly string[]} filters
 * @param {string} field
 */
export function limits(filters, field) {
  const found = filters.map(readCondition).filter((one) => one?.field === field);
  /** @param {string} operator */
  const limit = (operator) => found.find((one) => one?.operator === operator)?.values[0] ?? "";
  return { low: limit(">="), high: limit("<=") };
}

/**
 * Filters with other limits of a field.
 *
 * @param {readonly string[]} filters
 * @param {string} field
 * @param {string} low
 * @param {string} high
 */
export function withLimits(filters, field, low, high) {
  const others = without(filters, field, [">=", "<="]);
  if (low) others.push(writeCondition(field, ">=", [low]));
  if (high) others.push(writeCondition(field, "<=", [high]));
  return others;
}

/**
 * Filters without the conditions of a field that the page can change.
 *
 * @param {readonly string[]} filters
 * @param {string} field
 * @param {readonly string[]} [operators]
 */
export function without(filters, field, operators = ["=", ">=", "<="]) {
  return filters.filter((text) => {
    const condition = readCondition(text);
    return condition?.field !== field || !operators.includes(condition.operator);
  });
}

/** @param {string} text */
function quote(text) {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

/** @param {string} text */
function plain(text) {
  return text[0] === '"' ? text.slice(1, -1).replace(/\\(.)/gsu, "$1") : text;
}
