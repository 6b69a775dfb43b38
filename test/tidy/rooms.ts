import { posix } from "node:path";
import { importsOf } from "./syntax.js";
import { sources, type Check, type Offence, type Tree } from "./tree.js";

const MAX_ROOM_FILES = 14;

/**
 * The rooms of src, from the top floor down, as docs/architecture.md has them: a file imports only what lies in its own
 * room or on a floor below. A room is a folder with the files directly in it, or a file that has a floor to itself.
 */
export const FLOORS: readonly string[] = [
  "src/cli/",
  "src/cli/systemd/",
  "src/cli/completions/",
  "src/cli/client/",
  "src/cli/client/archive/",
  "src/cli/client/bench/",
  "src/cli/client/append/",
  "src/cli/client/reading/",
  "src/cli/client/streams/",
  "src/cli/client/session/",
  "src/cli/client/remote/",
  "src/cli/command/",
  "src/index.ts",
  "src/server.ts",
  "src/server/",
  "src/http/",
  "src/http/listen/",
  "src/http/handlers/",
  "src/http/reading/list/",
  "src/http/reading/",
  "src/http/context/",
  "src/http/answer/",
  "src/http/access/",
  "src/http/exchange/",
  "src/http/request/",
  "src/http/bounds/",
  "src/http/http2/",
  "src/http/node/",
  "src/http/encoding/",
  "src/auth/",
  "src/auth/jwt/",
  "src/auth/rights/",
  "src/stream/",
  "src/stream/eviction/",
  "src/stream/loaded/",
  "src/stream/rules/",
  "src/metrics/",
  "src/storage/nats/",
  "src/storage/nats/writing/",
  "src/storage/nats/reading/",
  "src/storage/nats/memory/",
  "src/storage/nats/jetstream/",
  "src/storage/nats/client/",
  "src/storage/nats/log/",
  "src/storage/file/offline/",
  "src/storage/file/backup/",
  "src/storage/file/upgrade/",
  "src/storage/file/survey/",
  "src/storage/file/",
  "src/storage/file/recovery/",
  "src/storage/file/writing/",
  "src/storage/file/segments/",
  "src/storage/file/journal/",
  "src/storage/file/directory/",
  "src/storage/file/memory/",
  "src/storage/file/disk/",
  "src/storage/file/format/",
  "src/storage/",
  "src/ops/lock/",
  "src/ops/lines/",
  "src/ops/",
  "src/protocol/json/",
  "src/protocol/names/",
  "src/protocol/",
  "src/options.ts",
  "src/options/",
  "src/net/",
];

/** The measures of the rooms. */
export const ROOM_CHECKS: readonly Check[] = [
  {
    title: "a room imports only rooms on the floors below it",
    find: waysUp,
    planted: {
      "src/http/dispatch.ts": 'import "./handlers/read.js";\n',
      "src/http/handlers/read.ts": 'import "../../ops/log.js";\nimport type { A } from "../dispatch.js";\n',
      "src/http/answer/respond.ts": 'export { a } from "../context/context.js";\n',
      "src/storage/file/memory/file-stream.ts": 'import "../segments/flusher.js";\n',
    },
    found: ["src/http/handlers/read.ts:2", "src/http/answer/respond.ts:1", "src/storage/file/memory/file-stream.ts:1"],
    fine: {
      "src/http/dispatch.ts": 'import "./handlers/read.js";\nimport "./http-server.js";\nimport "node:http";\n',
      "src/http/handlers/read.ts": 'import "../answer/respond.js";\nimport "./head.js";\n',
      "src/server.ts": 'import "./http/dispatch.js";\n',
    },
  },
  {
    title: "every folder of src is a room with a floor, and every floor is there",
    find: roomsWithoutFloor,
    planted: { ...everyFloor(), "src/http/cellar/a.ts": "", "src/lost.ts": "" },
    found: ["src/http/cellar/a.ts:1", "src/lost.ts:1"],
    fine: everyFloor(),
  },
  {
    title: `no room has more than ${MAX_ROOM_FILES} files`,
    find: fullRooms,
    planted: Object.fromEntries(Array.from({ length: MAX_ROOM_FILES + 1 }, (_, at) => [`src/ops/a${at}.ts`, ""])),
    found: ["src/ops/"],
    fine: Object.fromEntries(Array.from({ length: MAX_ROOM_FILES }, (_, at) => [`src/ops/a${at}.ts`, ""])),
  },
];

function everyFloor(): Record<string, string> {
  return Object.fromEntries(FLOORS.map((room) => [room.endsWith("/") ? `${room}a.ts` : room, ""]));
}

/** The room that a file is in. */
function roomOf(path: string): string {
  return FLOORS.includes(path) ? path : `${posix.dirname(path)}/`;
}

function waysUp(tree: Tree): Offence[] {
  return sources(tree).flatMap((file) => {
    const room = roomOf(file.path);
    return importsOf(file).flatMap(({ specifier, line }) => {
      if (!specifier.startsWith(".")) return [];
      const target = roomOf(posix.join(posix.dirname(file.path), specifier).replace(/\.js$/, ".ts"));
      if (FLOORS.indexOf(target) >= FLOORS.indexOf(room)) return [];
      return [{ at: `${file.path}:${line}`, says: `imports from ${target}, which is above ${room}: move what both need below both` }];
    });
  });
}

function roomsWithoutFloor(tree: Tree): Offence[] {
  const paths = sources(tree).map((file) => file.path);
  const rooms = new Set(paths.map(roomOf));
  return [
    ...paths
      .filter((path) => !FLOORS.includes(roomOf(path)))
      .map((path) => ({ at: `${path}:1`, says: `is in ${roomOf(path)}, which has no floor in test/tidy/rooms.ts` })),
    ...FLOORS.filter((room) => !rooms.has(room)).map((room) => ({ at: room, says: "has a floor in test/tidy/rooms.ts and is not there" })),
  ];
}

function fullRooms(tree: Tree): Offence[] {
  return [...filesByRoom(tree)]
    .filter(([, count]) => count > MAX_ROOM_FILES)
    .map(([room, count]) => ({
      at: room,
      says: `has ${count} files; at most ${MAX_ROOM_FILES}: find the second noun in it and give it a room`,
    }));
}

function filesByRoom(tree: Tree): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { path } of sources(tree)) counts.set(roomOf(path), (counts.get(roomOf(path)) ?? 0) + 1);
  return counts;
}
