/**
 * Makes elements. Text of documents is hostile until shown otherwise: it becomes text nodes only, never markup. No other
 * file sets `innerHTML` or the like; a test enforces it.
 */

/** The value of a property until its owner sets it, before the element is connected. @type {any} */
export const GIVEN = undefined;

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element with properties and children.
 *
 * `class`, `role`, `aria-…`, `data-…` and other names with a hyphen are attributes, `on…` are listeners, and all others
 * are properties. A child that is null, undefined or false is left out.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, properties);
  element.append(...nodes(children));
  return element;
}

/**
 * An element of an SVG drawing. All properties are attributes, apart from listeners.
 *
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Replace all children of an element.
 *
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * @param {Element} element
 * @param {Record<string, any>} properties
 */
function assign(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class" || name === "role" || name === "for" || name.includes("-")) {
      if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
    } else /** @type {any} */ (element)[name] = value;
  }
}

/**
 * @param {(Child | Child[])[]} children
 * @returns {(Node | string)[]}
 */
function nodes(children) {
  /** @type {(Node | string)[]} */
  const result = [];
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    result.push(child instanceof Node ? child : String(child));
  }
  return result;
}
