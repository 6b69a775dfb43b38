import { posix } from "node:path";
import ts from "typescript";
import { importsOf, judgeNodes } from "./syntax.js";
import { sources, type Check, type Offence, type Tree, type TreeFile } from "./tree.js";

/** What any room above them may import. */
const LEAVES = ["src/protocol/", "src/ops/", "src/options.ts", "src/options/", "src/net/"];

/** What any engine implements, and the one way in which its records make a stream's state. */
const STORAGE_INTERFACE = ["src/storage/storage.ts", "src/storage/state.ts", "src/storage/figures.ts"];

/** What works on a directory beside its server, or without one: it names the file engine itself. */
const OFFLINE = [
  "src/cli/backup.ts",
  "src/cli/verify.ts",
  "src/cli/repair.ts",
  "src/cli/upgrade.ts",
  "src/cli/progress-line.ts",
  "src/cli/existing-directory.ts",
];

interface Room {
  /** A folder, with `/` at its end, or a file. The first room of the table that a file is in counts. */
  readonly room: string;
  readonly may: readonly string[];
}

/** The rooms of docs/architecture.md, and what each may import. */
const ROOMS: readonly Room[] = [
  { room: "bin/", may: ["bin/", "dist/cli/main.js"] },
  ...OFFLINE.map((room) => ({ room, may: ["src/cli/", "src/storage/", ...LEAVES] })),
  // What it knows of a server is what everybody can: the interface.
  { room: "src/cli/client/", may: ["src/cli/client/", "src/cli/command/", ...LEAVES] },
  { room: "src/cli/", may: ["src/cli/", "src/server.ts", "src/auth/", ...LEAVES] },
  { room: "src/index.ts", may: ["src/server.ts", ...LEAVES] },
  { room: "src/server.ts", may: ["src/server/", "src/metrics/", "src/http/", "src/auth/", "src/stream/", "src/storage/", ...LEAVES] },
  { room: "src/server/", may: ["src/server/", "src/metrics/", "src/http/", "src/auth/", "src/stream/", ...LEAVES] },
  { room: "src/http/", may: ["src/http/", "src/metrics/", "src/auth/", "src/stream/", ...LEAVES] },
  { room: "src/auth/", may: ["src/auth/", "src/ops/", "src/protocol/", "src/net/"] },
  { room: "src/stream/", may: ["src/stream/", ...STORAGE_INTERFACE, ...LEAVES] },
  { room: "src/metrics/", may: ["src/metrics/", "src/storage/figures.ts", ...LEAVES] },
  { room: "src/storage/figures.ts", may: [] },
  { room: "src/storage/storage.ts", may: ["src/storage/figures.ts", ...LEAVES] },
  { room: "src/storage/state.ts", may: ["src/storage/storage.ts", ...LEAVES] },
  { room: "src/storage/", may: ["src/storage/", ...LEAVES] },
  { room: "src/protocol/", may: ["src/protocol/"] },
  { room: "src/ops/", may: ["src/ops/"] },
  { room: "src/options.ts", may: ["src/options/", "src/net/"] },
  { room: "src/options/", may: ["src/options/", "src/net/", "src/protocol/"] },
  { room: "src/net/", may: ["src/net/"] },
];

const FILES_DOOR = "src/storage/file/disk/files.ts";

/** The door to small files of configuration, which are no part of the storage that faults are put in. */
const CONFIGURATION_DOOR = "src/ops/watched-file.ts";
/** The locks of those. */
const LOCK_DOOR = "src/ops/lock/file-lock.ts";
/** What the package itself has. */
const PACKAGE_DOOR = "src/ops/packaged-files.ts";

/** The door to the files of Unix sockets. */
const SOCKET_DOOR = "src/http/listen/socket-file.ts";

/** The measures of who may know whom. */
export const IMPORT_CHECKS: readonly Check[] = [
  {
    title: "imports go one way: bin → cli → server → http → stream → storage/storage.ts",
    find: wrongWays,
    planted: {
      "src/http/handlers/read.ts": 'import type { Storage } from "../../storage/storage.js";\n',
      "src/stream/stream.ts": 'import { a } from "./a.js";\nexport { j } from "../storage/file/journal.js";\n',
      "src/protocol/offset.ts": 'import { log } from "../ops/log.js";\n',
      "src/cli/serve.ts": 'const files = await import("../storage/file/file-storage.js");\n',
      "src/options.ts": 'let x: import("./ops/log.js").Log;\n',
      "src/auth/authority.ts": 'import "../http/dispatch.js";\n',
      "src/cli/client/cat.ts": 'import "../../stream/registry.js";\n',
      "src/loose.ts": "export {};\n",
      "bin/streamdir.js": 'import "../dist/server.js";\n',
    },
    found: [
      "src/http/handlers/read.ts:1",
      "src/stream/stream.ts:2",
      "src/protocol/offset.ts:1",
      "src/cli/serve.ts:1",
      "src/options.ts:1",
      "src/auth/authority.ts:1",
      "src/cli/client/cat.ts:1",
      "src/loose.ts:1",
      "bin/streamdir.js:1",
    ],
    fine: {
      "bin/streamdir.js": '#!/usr/bin/env node\nimport "../dist/cli/main.js";\n',
      "src/cli/main.ts": 'import { createServer } from "../server.js";\nimport { OPTIONS } from "../options.js";\nimport "./config.js";\n',
      "src/server.ts": 'import "./http/dispatch.js";\nimport "./storage/file/file-storage.js";\n',
      "src/stream/stream.ts": 'import type { Storage } from "../storage/storage.js";\nimport http from "node:http";\n',
      "src/storage/file/journal.ts": 'import "../storage.js";\nimport "../../protocol/offset.js";\n',
      "test/stream/stream.test.ts": 'import "../../src/storage/file/file-storage.js";\n',
    },
  },
  {
    title: "src imports no package",
    find: packages,
    planted: { "src/a.ts": 'import a from "left-pad";\nimport "fs";\n' },
    found: ["src/a.ts:1", "src/a.ts:2"],
    fine: { "src/a.ts": 'import "node:fs";\nimport "./b.js";\n', "test/a.test.ts": 'import ts from "typescript";\n' },
  },
  {
    title:
      "only storage/file/disk/files.ts, ops/watched-file.ts, ops/lock/file-lock.ts, ops/packaged-files.ts and http/listen/socket-file.ts touch node:fs",
    find: doorsToFiles,
    planted: {
      "src/cli/config.ts": '// files\nimport { readFileSync } from "node:fs";\n',
      "src/ops/log.ts": 'import fs from "node:fs/promises";\nrequire("fs");\n',
    },
    found: ["src/cli/config.ts:2", "src/ops/log.ts:1", "src/ops/log.ts:2"],
    fine: {
      [FILES_DOOR]: 'import fs from "node:fs";\n',
      [CONFIGURATION_DOOR]: 'import fs from "node:fs";\n',
      "src/a.ts": '// not node:fs\nimport "node:os";\n',
      "test/a.test.ts": 'import "node:fs";\n',
    },
  },
  {
    title: "no files of src import one another in a circle",
    find: circles,
    planted: {
      "src/a.ts": 'import "./b.js";\n',
      "src/b.ts": 'import "./c/c.js";\n',
      "src/c/c.ts": '//\nimport type { A } from "../a.js";\n',
    },
    found: ["src/c/c.ts:2"],
    fine: { "src/a.ts": 'import "./b.js";\nimport "./c.js";\n', "src/b.ts": 'import "./c.js";\n', "src/c.ts": "export {};\n" },
  },
];

/** The file that a relative specifier names; itself when it is a package's or Node's. */
function targetOf(file: TreeFile, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  const path = posix.join(posix.dirname(file.path), specifier);
  return path.startsWith("src/") ? path.replace(/\.js$/, ".ts") : path;
}

function isIn(path: string, room: string): boolean {
  return room.endsWith("/") ? path.startsWith(room) : path === room;
}

function wrongWays(tree: Tree): Offence[] {
  const files = tree.filter((file) => file.path.startsWith("bin/") || (file.path.startsWith("src/") && file.path.endsWith(".ts")));
  return files.flatMap((file) => {
    const room = ROOMS.find(({ room }) => isIn(file.path, room));
    if (room === undefined)
      return [
        {
          at: `${file.path}:1`,
          says: "is in no room of docs/architecture.md: move it into one, or give the room a line in test/tidy/imports.ts",
        },
      ];
    return importsOf(file).flatMap(({ specifier, line }) => {
      if (!specifier.startsWith(".") || room.may.some((allowed) => isIn(targetOf(file, specifier), allowed))) return [];
      return [
        {
          at: `${file.path}:${line}`,
          says: `imports ${targetOf(file, specifier)}; ${room.room} may import ${room.may.join(", ") || "nothing of ours"}`,
        },
      ];
    });
  });
}

function packages(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) =>
    importsOf(file)
      .filter(({ specifier }) => !/^(\.|node:)/.test(specifier))
      .map(({ specifier, line }) => ({
        at: `${file.path}:${line}`,
        says: `imports "${specifier}"; there is no runtime dependency, and Node's own modules are named node:...`,
      })),
  );
}

function doorsToFiles(tree: Tree): Offence[] {
  const doors = [FILES_DOOR, CONFIGURATION_DOOR, LOCK_DOOR, PACKAGE_DOOR, SOCKET_DOOR];
  const others = sources(tree).filter((file) => !doors.includes(file.path));
  return judgeNodes(others, (node) => {
    if (!ts.isStringLiteralLike(node) || !/^(node:)?fs(\/promises)?$/.test(node.text)) return null;
    return `names "${node.text}"; only ${FILES_DOOR} does, so that faults can be put in there, and ${CONFIGURATION_DOOR} for configuration: ask one of them`;
  });
}

function circles(tree: Tree): Offence[] {
  const byPath = new Map(sources(tree).map((file) => [file.path, file]));
  const done = new Set<string>();
  const offences: Offence[] = [];
  const visit = (file: TreeFile, above: readonly string[]) => {
    const way = [...above, file.path];
    for (const { specifier, line } of importsOf(file)) {
      const next = byPath.get(targetOf(file, specifier));
      if (next === undefined || done.has(next.path)) continue;
      const start = way.indexOf(next.path);
      if (start < 0) visit(next, way);
      else
        offences.push({
          at: `${file.path}:${line}`,
          says: `closes a circle: ${[...way.slice(start), next.path].join(" → ")}; move what both need below both`,
        });
    }
    done.add(file.path);
  };
  for (const file of byPath.values()) if (!done.has(file.path)) visit(file, []);
  return offences;
}
