/** Small drawings for buttons, as paths in a square of 20 by 20. They are hidden from screen readers. */

import { svg } from "./dom.js";

const PATHS = {
  search: "M8.5 3a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Zm4 9.5L17 17",
  close: "M5 5l10 10M15 5L5 15",
  sliders: "M3 6h7m4 0h3M3 14h3m4 0h7M12 4v4M8 12v4",
  list: "M5 3.5h10v13l-5-3.5-5 3.5z",
  sun: "M10 6.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7ZM10 2v1.5M10 16.5V18M2 10h1.5M16.5 10H18M4.3 4.3l1.1 1.1M14.6 14.6l1.1 1.1M4.3 15.7l1.1-1.1M14.6 5.4l1.1-1.1",
  moon: "M16 11.8A6.5 6.5 0 0 1 8.2 4a6.5 6.5 0 1 0 7.8 7.8Z",
  half: "M10 3.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM10 3.5v13M12 4v12M14 5v10",
  keys: "M3 5.5h14v9H3zM6 8.5h.01M9 8.5h.01M12 8.5h.01M14.5 8.5h.01M7 11.5h6",
  filter: "M3 5h14M6 10h8M8.5 15h3",
  compare: "M4 4h4v12H4zM12 4h4v12h-4z",
  why: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14ZM8 8.2a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M10 14h.01",
  neighbors: "M4 4h12M4 8h12v4H4zM4 16h12",
  keep: "M6 3.5h8v13l-4-3-4 3z",
  discard: "M10 3.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13ZM5.5 5.5l9 9",
  cite: "M7.5 6H4v4h3.5zM7.5 10c0 2-1 3.5-3 4M16 6h-3.5v4H16zM16 10c0 2-1 3.5-3 4",
  file: "M5.5 3h6l3.5 3.5V17h-9.5zM11 3v4h4",
  up: "M10 15V5M6 9l4-4 4 4",
  export: "M10 3v9M6.5 8.5L10 12l3.5-3.5M4 13v3.5h12V13",
};

/** @param {keyof typeof PATHS} name */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}
