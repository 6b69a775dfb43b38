import ts from "typescript";
import { commentsOf, judgeNodes } from "./syntax.js";
import { sources, type Check, type Offence, type Tree } from "./tree.js";

/** The only room that may use what Node does not promise to keep. */
const ROOM = "src/http/node/";
/** What the client of NATS does not promise to keep has a file of its own. */
const CLIENT_FILE = "src/storage/nats/client/header-bytes.ts";
/** Members of Node's own objects that are private without an underscore. */
const UNMARKED = new Set(["parser", "onIncoming", "httpAllowHalfOpen"]);
/** Ways to reach private members without naming them. */
const BACK_DOORS = new Set(["getOwnPropertySymbols", "binding", "internalBinding"]);

/** The measures of what is used of Node. */
export const PRIVATE_NAME_CHECKS: readonly Check[] = [
  {
    title: `only ${ROOM} names what is private to Node`,
    find: privateNames,
    planted: {
      "src/http/a.ts":
        'socket._handle;\nconst { _httpMessage: b } = socket;\nsocket["_paused"] = c;\ninterface D {\n  readonly _header: string;\n}\nObject.assign(server, { httpAllowHalfOpen: true });\nsocket.parser?.onIncoming();\nReflect.get(socket, "_server");\nObject.getOwnPropertySymbols(socket);\nprocess.binding("fs");\nclass E extends F {\n  _read() {}\n}\n',
    },
    found: [1, 2, 3, 5, 7, 8, 8, 9, 10, 11, 13].map((line) => `src/http/a.ts:${line}`),
    fine: {
      "src/http/node/a.ts": "// Private name: `_handle`.\nsocket._handle;\n",
      [CLIENT_FILE]: "// Private name: `_rdata`.\nmessage._rdata;\n",
      "src/http/a.ts": 'f((_req, b) => b);\nconst parser = new Parser();\nconst text = "a _handle";\n// _handle\nfunction binding() {}\n',
      "test/a.test.ts": "socket._handle;\n",
    },
  },
  {
    title: `the first comment of a file of ${ROOM} gives each private name in it`,
    find: unexplained,
    planted: {
      "src/http/node/a.ts": "// Private name: `_handle`.\n\nsocket._handle;\nsocket._server; // private\n",
      "src/http/node/b.ts": "socket._handle;\n",
    },
    found: ["src/http/node/a.ts:4", "src/http/node/b.ts:1"],
    fine: {
      "src/http/node/a.ts":
        "// Reads a socket.\n//\n// Private names: `_handle` and `parser` of a socket.\n\nsocket._handle;\nsocket.parser;\n",
      "src/http/a.ts": "socket.a;\n",
    },
  },
];

function mayName(path: string): boolean {
  return path.startsWith(ROOM) || path === CLIENT_FILE;
}

function privateNames(tree: Tree): Offence[] {
  const others = sources(tree).filter(({ path }) => !mayName(path));
  return judgeNodes(others, (node) => {
    const name = privateNameOf(node);
    return name === null ? null : `names ${name}, which is private to Node; give it a file of its own in ${ROOM}`;
  });
}

function unexplained(tree: Tree): Offence[] {
  return sources(tree)
    .filter(({ path }) => mayName(path))
    .flatMap((file) => {
      const [first] = commentsOf(file);
      const opening = first?.firstLine === 1 ? openingOf(file.text) : "";
      return judgeNodes([file], (node) => {
        const name = privateNameOf(node);
        if (name === null || opening.includes(`\`${name}\``)) return null;
        return `names ${name}; the file's first comment says why, and what happens where Node lacks it`;
      });
    });
}

/** The comment lines that a file begins with. */
function openingOf(text: string): string {
  return /^(?:\/\/.*\n)*/.exec(text)?.[0] ?? "";
}

/** The private name that a node uses as the name of a member; `null` where it uses none. */
function privateNameOf(node: ts.Node): string | null {
  const name = memberNameOf(node);
  return name !== null && (/^_[a-z]/i.test(name) || UNMARKED.has(name) || isBackDoor(node, name)) ? name : null;
}

function isBackDoor(node: ts.Node, name: string): boolean {
  return BACK_DOORS.has(name) && ts.isPropertyAccessExpression(node);
}

function memberNameOf(node: ts.Node): string | null {
  if (ts.isPropertyAccessExpression(node)) return node.name.text;
  if (ts.isBindingElement(node))
    return node.propertyName?.getText() ?? (ts.isObjectBindingPattern(node.parent) ? node.name.getText() : null);
  if (ts.isPropertySignature(node) || ts.isPropertyDeclaration(node) || ts.isPropertyAssignment(node) || ts.isMethodDeclaration(node))
    return node.name.getText();
  return ts.isStringLiteral(node) && !ts.isImportDeclaration(node.parent) ? node.text : null;
}
