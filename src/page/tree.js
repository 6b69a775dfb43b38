// Makes a tree of names by their slashes.

/**
 * @template Item
 * @typedef {{ label: string, path: string, item: Item | null, children: Node<Item>[] }} Node
 */

/**
 * Folders that hold nothing but one other are one node. The items are in the order of their names.
 * @template {{ name: string }} Item
 * @param {readonly Item[]} items
 * @returns {Node<Item>[]}
 */
export function treeOf(items) {
  /** @type {Node<Item>} */
  const root = { label: "", path: "", item: null, children: [] };
  /** @type {Map<string, Node<Item>>} */
  const known = new Map();
  for (const item of items) {
    let parent = root;
    let path = "";
    for (const segment of item.name.split("/")) {
      path = path === "" ? segment : `${path}/${segment}`;
      let node = known.get(path);
      if (node === undefined) {
        node = { label: segment, path, item: null, children: [] };
        known.set(path, node);
        parent.children.push(node);
      }
      parent = node;
    }
    parent.item = item;
  }
  return root.children.map(joined);
}

/**
 * @template Item
 * @param {Node<Item>} node
 * @returns {Node<Item>}
 */
function joined(node) {
  const children = node.children.map(joined);
  const [only] = children;
  if (node.item === null && children.length === 1 && only !== undefined)
    return { ...only, label: `${node.label}/${only.label}` };
  return { ...node, children };
}

/**
 * The query of the list for what was typed: the beginning of a name where it has a slash, a pattern where it has a
 * star, else a part of any segment.
 * @param {string} typed
 * @returns {Record<string, string>}
 */
export function listQueryOf(typed) {
  const text = typed.trim();
  if (text === "") return {};
  if (text.includes("*")) return { match: text };
  return text.includes("/") ? { prefix: text } : { match: `**/*${text}*/**` };
}
