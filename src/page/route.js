// Where the page is: the fragment of its URL. A token is never part of it.

/** @typedef {{ place: "home" | "server" | "stream", name: string, query: Record<string, string> }} Route */

/**
 * @param {string} hash
 * @returns {Route}
 */
export function parseRoute(hash) {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (path === "server") return { place: "server", name: "", query };
  if (!path.startsWith("s/")) return { place: "home", name: "", query };
  try {
    return { place: "stream", name: decodeURIComponent(path.slice(2)), query };
  } catch {
    // A broken link is no stream's.
    return { place: "home", name: "", query: {} };
  }
}

/**
 * @param {string} name
 * @param {Record<string, string>} [query] What is empty is left out.
 * @returns {string}
 */
export function streamRoute(name, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const search = new URLSearchParams(given).toString();
  return `#/s/${encodeName(name)}${search === "" ? "" : `?${search}`}`;
}

/**
 * Goes to a place, also to the one that is shown: it is shown anew.
 * @param {string} route
 */
export function visit(route) {
  const before = location.hash;
  location.hash = route;
  if (location.hash === before) dispatchEvent(new Event("hashchange"));
}

/**
 * A name as a path.
 * @param {string} name
 */
export function encodeName(name) {
  return name.split("/").map(encodeURIComponent).join("/");
}

/**
 * A name for people: what turns the direction of a text, or is not seen, stands there as its number, so that no name looks
 * like another.
 * @param {string} name
 */
export function nameText(name) {
  return name.replace(
    /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
