// Makes elements. What a stream holds only ever becomes text.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, unknown>} [properties] Functions listen to an event; names with a dash, and `role`, are attributes.
 * @param {...(Node | string | null)} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, String(value));
    else Reflect.set(element, name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`The page has no #${id}.`);
  return element;
}

let noticeTimer = 0;

/**
 * Says something for a few seconds.
 * @param {string} text
 * @param {"good" | "bad"} [mood]
 */
export function notice(text, mood = "good") {
  const element = byId("notice");
  element.textContent = text;
  element.className = mood;
  clearTimeout(noticeTimer);
  // What went wrong is said until something goes well, or it is clicked away.
  if (mood === "good") noticeTimer = setTimeout(() => (element.textContent = ""), 6000);
}

/** Takes away what was said of an error: what came after it has succeeded. */
export function endComplaint() {
  const element = byId("notice");
  if (element.className === "bad") element.textContent = "";
}

/** @param {unknown} error Nothing is wrong where somebody has left what was on its way. */
export function complain(error) {
  if (error instanceof DOMException && error.name === "AbortError") return;
  notice(error instanceof Error ? error.message : String(error), "bad");
}

/**
 * @param {string} text
 * @param {string} what
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    notice(`${what} copied.`);
  } catch {
    // Without TLS, beyond this machine, a browser allows no clipboard.
    notice("This browser allows no copying here.");
  }
}

/**
 * @param {string} label
 * @param {() => void} click
 * @param {Record<string, unknown>} [properties]
 */
export function button(label, click, properties = {}) {
  return el("button", { type: "button", click, ...properties }, label);
}

/**
 * Changes what is in a box, and scrolls it so that an element of it stays where it was.
 * @param {HTMLElement} box
 * @param {() => HTMLElement | null | undefined} find The element, before and after.
 * @param {() => void} change
 */
export function inPlace(box, find, change) {
  const top = () => (box.scrollTop === 0 ? undefined : find()?.getBoundingClientRect().top);
  const before = top();
  change();
  const after = top();
  if (before !== undefined && after !== undefined) box.scrollTop += after - before;
}

/**
 * Disables a button while something is done, and gives it, or what is in its place by then, the focus that it loses by that.
 * @param {HTMLButtonElement} disabled
 * @param {() => Promise<void>} work
 * @param {() => HTMLElement} heir
 */
export async function whileDisabled(disabled, work, heir = () => disabled) {
  const wasFocused = document.activeElement === disabled;
  disabled.disabled = true;
  try {
    await work();
  } finally {
    disabled.disabled = false;
    if (wasFocused && document.activeElement === document.body) {
      heir().focus({ preventScroll: true });
      keepFocus();
    }
  }
}

/** Gives the focus to what is shown, where what had it is gone: the keyboard goes on from there. */
export function keepFocus() {
  const { activeElement: active } = document;
  if (!(active instanceof HTMLElement) || active.offsetParent === null) byId("main").focus({ preventScroll: true });
}
