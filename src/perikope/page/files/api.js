/** Asks the server. The types of options and answers are in `types.d.ts`, made from the declarations of the server. */

/** @typedef {import("./types.js").Requests} Requests */
/** @typedef {import("./types.js").Answers} Answers */

/** Why the server did not answer as asked. */
export class ApiError extends Error {
  /**
   * @param {number} status the status of the answer; 0 if the server could not be reached
   * @param {string} detail what is wrong, and what to do
   * @param {{start?: number, end?: number}} [place] the characters of the query that are wrong, if they are known
   */
  constructor(status, detail, place = {}) {
    super(detail);
    this.status = status;
    this.place = place;
  }
}

/** Asks one index of the server. */
export class Api {
  /** @param {string} index the name of the index */
  constructor(index) {
    this.index = index;
    this.token = sessionStorage.getItem("token") ?? "";
  }

  /**
   * The answer of an operation, such as `search`.
   *
   * @template {keyof Answers} O
   * @param {O} operation
   * @param {Requests[O]} [options] options by name; those that are undefined or "" are left out
   * @param {AbortSignal} [signal]
   * @returns {Promise<Answers[O]>}
   */
  async ask(operation, options = /** @type {Requests[O]} */ ({}), signal) {
    const path = `/indexes/${encodeURIComponent(this.index)}${operation ? `/${operation}` : ""}`;
    const given = Object.entries(options).filter(([, value]) => value !== undefined && value !== "");
    const query = new URLSearchParams();
    for (const [name, value] of given) for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
    const text = query.toString();
    // A long query, such as a claim, does not fit into an address.
    if (text.length > 1500 && !GET_ONLY.has(operation)) return request(path, this.token, signal, Object.fromEntries(given));
    return request(text ? `${path}?${text}` : path, this.token, signal);
  }
}

/** @type {ReadonlySet<string>} */
const GET_ONLY = new Set(["", "document", "outline", "passage", "suggest", "values", "models"]);

/**
 * The names of the indexes that the server offers.
 *
 * @returns {Promise<string[]>}
 */
export async function indexNames() {
  return (await request("/indexes", sessionStorage.getItem("token") ?? "")).indexes;
}

/**
 * @param {string} address
 * @param {string} token
 * @param {AbortSignal} [signal]
 * @param {object} [body]
 * @returns {Promise<any>}
 */
async function request(address, token, signal, body) {
  /** @type {Record<string, string>} */
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  if (body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(address, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "");
  }
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new ApiError(answer.status, problem.detail ?? "", { start: problem.start, end: problem.end });
}
