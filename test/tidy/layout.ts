import { holdsNoCode, holdsOnlyTypes } from "./syntax.js";
import { sources, type Check, type Offence, type Tree, type TreeFile } from "./tree.js";

/** Files of src that are tested elsewhere than in the test of their name, and where. */
export const TESTED_ELSEWHERE: Readonly<Record<string, string>> = {
  "src/http/http2/codes.ts": "test/http/http2/sessions.test.ts has the codes that clients see",
  "src/http/http2/session.ts": "test/http/http2/sessions.test.ts has connections by the frames that come over them",
  "src/http/http2/stream-answer.ts": "test/http/http2-requests.test.ts has requests by what clients see of their answers",
  "src/http/http2/stream-request.ts": "test/http/http2-requests.test.ts has requests by what clients see of their answers",
  "src/http/request/list-query.ts": "test/http/handlers/list.test.ts has queries that are taken and refused",
  "src/options/faults.ts": "test/options.test.ts checks values of each kind",
  "src/options/spec.ts": "test/options.test.ts writes values of each kind",
  "src/options/access.ts": "rows of the table: test/options.test.ts",
  "src/options/behaviour.ts": "rows of the table: test/options.test.ts",
  "src/options/limits.ts": "rows of the table: test/options.test.ts",
  "src/options/log.ts": "rows of the table: test/options.test.ts",
  "src/options/network.ts": "rows of the table: test/options.test.ts",
  "src/options/storage.ts": "rows of the table: test/options.test.ts",
  "src/options/tls.ts": "rows of the table: test/options.test.ts",
  "src/server/metrics-report.ts": "test/http/handlers/metrics.test.ts reads it as Prometheus does",
  "src/server/context-of.ts": "test/http/access has each setting that it looks at",
  "src/storage/file/backup/journal-copy.ts": "test/storage/file/backup/backup.test.ts has copies of real journals, restored",
  "src/storage/file/backup/stream-copy.ts": "test/storage/file/backup/backup.test.ts has copies of real streams, restored",
  "src/storage/file/backup/tally.ts": "test/storage/file/backup/backup.test.ts reads its counts",
  "src/storage/file/directory/names-file.ts": "test/storage/file/directory/name-log.test.ts has files that are sound and damaged",
  "src/storage/file/directory/stream-names.ts": "test/storage/file/name-index.test.ts has names of real directories",
  "src/storage/file/disk/whole-files.ts": "test/storage/file/disk/files.test.ts has it on real files",
  "src/storage/file/disk/file-errors.ts": "test/storage/file/disk/files.test.ts has the errors of real calls",
  "src/storage/file/segments/index-writer.ts": "test/storage/file/segments/segment-writer-persist.test.ts has it write beside the segments",
  "src/storage/file/segments/stream-files.ts": "test/helpers/file-rooms.ts makes them for every test of a room",
  "src/storage/file/engine-figures.ts": "test/storage/file/file-storage-figures.test.ts has those of a real engine",
  "src/storage/nats/open-cluster.ts": "test/nats/serve.test.ts opens it on real servers",
  "src/storage/nats/jetstream/bucket.ts": "test/nats/bucket.test.ts makes and compares buckets on real servers",
  "src/storage/nats/sweep-lease.ts": "test/storage/nats/cluster-storage.test.ts has two servers that want to sweep",
  "src/storage/nats/log/replicated-log.ts": "the interface: test/helpers/memory-log.ts keeps it in memory",
  "src/storage/nats/memory/cluster-stream.ts": "test/storage/nats/cluster-storage.test.ts has the contract of every engine",
  "src/storage/nats/reading/message-search.ts": "test/storage/nats/cluster-storage.test.ts finds any place of a long stream",
  "src/storage/nats/reading/places.ts": "test/storage/nats/cluster-storage.test.ts finds any place of a long stream",
  "src/storage/nats/reading/state-reader.ts": "test/storage/nats/cluster-storage.test.ts loads what another server has made",
  "src/storage/nats/writing/batch.ts": "test/storage/nats/cluster-storage.test.ts has thousands of producers and long batches",
  "src/stream/creations.ts": "test/stream/registry.test.ts creates by the registry, and registry-shared.test.ts where others do too",
  "src/storage/storage.ts": "the interface: test/contract/ is its test, for every engine",
};

/** Tests in a folder of src that are of no file of it, and of what. Those of test/http are of what is told over HTTP. */
export const TESTS_OF_NO_SOURCE: Readonly<Record<string, string>> = {
  "test/cli/bin.test.ts": "bin/streamdir.js",
  "test/http/http2/event-sources.test.ts": "what a browser does with one connection",
};

const TOP_LEVEL = /^(package(-lock)?\.json|tsconfig(\.\w+)?\.json|src|test|bin|data|docs|LICENSE|README\.md|CHANGELOG\.md|\..+)$/;
const VAGUE_NAMES = /^(utils?|helpers?|managers?|misc|common)$/;

/** The measures of what lies where. */
export const LAYOUT_CHECKS: readonly Check[] = [
  {
    title: "the top level holds only what docs/architecture.md names",
    find: strayTopLevel,
    planted: { "notes.txt": "", "lib/a.ts": "", "lib/b.ts": "", "package.jsonc": "" },
    found: ["notes.txt:1", "lib:1", "package.jsonc:1"],
    fine: { "package.json": "", "tsconfig.build.json": "", "src/a.ts": "", ".ci/run": "", ".gitignore": "", LICENSE: "" },
  },
  {
    title: "no file or folder has a name that says nothing",
    find: vagueNames,
    planted: { "src/utils.ts": "", "src/http/stream-manager.ts": "", "test/common/a.ts": "", "src/helpers/a.ts": "" },
    found: ["src/utils.ts:1", "src/http/stream-manager.ts:1", "test/common/a.ts:1", "src/helpers/a.ts:1"],
    fine: { "test/helpers/server.ts": "", "src/commonwealth.ts": "" },
  },
  {
    title: "every file of src has its test at the same place in test",
    find: untested,
    planted: { "src/http/body.ts": "export const a = 1;\n", "test/body.test.ts": "" },
    found: ["src/http/body.ts:1"],
    fine: {
      "src/http/body.ts": "export const a = 1;\n",
      "test/http/body.test.ts": "",
      "src/types.ts": 'import type { B } from "./b.js";\nexport interface A {}\nexport type { C } from "./c.js";\n',
      "src/index.ts": 'export { a } from "./http/body.js";\n',
    },
  },
  {
    title: "a test in a folder of src is of a file there, or of a theme of one: a.test.ts, a-theme.test.ts",
    find: strayTests,
    planted: {
      "src/storage/journal.ts": "",
      "src/http/body.ts": "",
      "test/storage/rotation.test.ts": "",
      "test/storage/journalled.test.ts": "",
      "test/http/context/raw.test.ts": "",
      "src/http/context/guard.ts": "",
    },
    found: ["test/storage/rotation.test.ts:1", "test/storage/journalled.test.ts:1", "test/http/context/raw.test.ts:1"],
    fine: {
      "src/storage/journal.ts": "",
      "src/storage/open-files.ts": "",
      "test/storage/journal.test.ts": "",
      "test/storage/journal-full-disk.test.ts": "",
      "test/storage/open-files-limit.test.ts": "",
      "src/http/body.ts": "",
      "test/http/timeouts.test.ts": "",
      "test/faults/histories.test.ts": "",
      "test/readme.test.ts": "",
    },
  },
  {
    title: "coverage leaves out the files that hold only types, and no other",
    find: uncounted,
    planted: {
      "package.json": '{\n  "c8": {\n    "exclude": ["src/b.ts", "src/gone.ts"]\n  }\n}\n',
      "src/a.ts": "export type A = 1;\n",
      "src/b.ts": "export const b = 1;\n",
    },
    found: ["src/a.ts:1", "package.json:3", "package.json:3"],
    fine: {
      "package.json": '{ "c8": { "exclude": ["src/a.ts"] } }\n',
      "src/a.ts": "export type A = 1;\n",
      "src/b.ts": 'export { a } from "./a.js";\n',
    },
  },
];

/** 1 and up: where `text` is first found in a file; 1 when it is not there. */
function lineWith(file: TreeFile, text: string): number {
  return file.text.slice(0, Math.max(0, file.text.indexOf(text))).split("\n").length;
}

function strayTopLevel(tree: Tree): Offence[] {
  const names = new Set(tree.map((file) => file.path.split("/")[0] ?? ""));
  return [...names]
    .filter((name) => !TOP_LEVEL.test(name))
    .map((name) => ({
      at: `${name}:1`,
      says: "is not among the names of the top level: src, test, bin, data, docs, .ci, package and tsconfig files, LICENSE, README.md, CHANGELOG.md, dotfiles",
    }));
}

function vagueNames(tree: Tree): Offence[] {
  return tree.flatMap((file) => {
    const parts = file.path.replace(/^test\/helpers\//, "").split("/");
    const vague = parts.flatMap((part) => part.replace(/\..*$/, "").split("-")).find((word) => VAGUE_NAMES.test(word));
    return vague === undefined ? [] : [{ at: `${file.path}:1`, says: `"${vague}" says nothing; name the one noun that it holds` }];
  });
}

function untested(tree: Tree): Offence[] {
  const paths = new Set(tree.map((file) => file.path));
  return sources(tree).flatMap((file) => {
    const test = file.path.replace(/^src\//, "test/").replace(/\.ts$/, ".test.ts");
    const listed = file.path in TESTED_ELSEWHERE;
    if (paths.has(test)) return listed ? [{ at: `${file.path}:1`, says: `has ${test}; take it out of TESTED_ELSEWHERE` }] : [];
    return listed || holdsNoCode(file)
      ? []
      : [{ at: `${file.path}:1`, says: `has no test; write ${test}, or name the test that it has in TESTED_ELSEWHERE` }];
  });
}

function strayTests(tree: Tree): Offence[] {
  const named = sources(tree).map(({ path }) => path.replace(/^src\//, "test/").replace(/\.ts$/, ""));
  const rooms = new Set(named.map(folderOf).filter((folder) => folder !== "test" && folder !== "test/http"));
  return tree
    .filter(({ path }) => path.endsWith(".test.ts") && rooms.has(folderOf(path)) && !(path in TESTS_OF_NO_SOURCE))
    .filter(({ path }) => !named.some((name) => path === `${name}.test.ts` || path.startsWith(`${name}-`)))
    .map(({ path }) => ({
      at: `${path}:1`,
      says: "is of no file of src; begin its name with that of the file whose theme it has, or list it in TESTS_OF_NO_SOURCE",
    }));
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function uncounted(tree: Tree): Offence[] {
  const manifest = tree.find((file) => file.path === "package.json");
  if (manifest === undefined) return [];
  const excluded = new Set<string>(JSON.parse(manifest.text).c8?.exclude);
  const onlyTypes = sources(tree)
    .filter(holdsOnlyTypes)
    .map((file) => file.path);
  const missing = onlyTypes.filter((path) => !excluded.has(path));
  const wrong = [...excluded].filter((path) => !onlyTypes.includes(path));
  return [
    ...missing.map((path) => ({
      at: `${path}:1`,
      says: "holds only types, which coverage counts as never run; add it to c8.exclude in package.json",
    })),
    ...wrong.map((path) => ({
      at: `package.json:${lineWith(manifest, path)}`,
      says: `c8.exclude names ${path}, which is not a file that holds only types; take it out`,
    })),
  ];
}
