import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { FLOORS } from "../tidy/rooms.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/architecture.md"), "utf8");
const SOURCES = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"));

/** What stands in backquotes, outside the examples. */
const QUOTED = [...PAGE.matchAll(/`([^`\n]+)`/g)].map(([, quoted = ""]) => quoted);

test("the page on the architecture has every room, from the top floor down", () => {
  const table = PAGE.slice(PAGE.indexOf("| room, "), PAGE.indexOf("Three rules"));
  const rooms = [...table.matchAll(/^\| `(src\/[^`]*)` \|/gm)].map(([, room]) => room);
  assert.deepEqual(rooms, FLOORS);
});

test("the page on the architecture names only files and folders that are there, and each so that it is one", () => {
  const paths = QUOTED.filter((quoted) => /^[\w/.-]+(\.ts|\/)$/.test(quoted) && !quoted.startsWith("../"));
  assert.ok(paths.length > 60, `only ${paths.length} paths were found`);
  for (const path of paths) {
    if (path.startsWith("src/") || path.startsWith("test/")) assert.ok(existsSync(join(ROOT, path)), path);
    else if (path.endsWith(".ts")) assert.equal(SOURCES.filter((source) => `/${source}`.endsWith(`/${path}`)).length, 1, path);
  }
});

test("the picture of the architecture has every room of the engine", () => {
  const picture = readFileSync(join(ROOT, "docs/architecture.svg"), "utf8");
  const rooms = FLOORS.filter((room) => /^src\/(http|stream|storage\/file)\/./.test(room)).map((room) => room.split("/").at(-2) ?? "");
  assert.deepEqual(
    rooms.filter((room) => !picture.includes(`>${room}`)),
    [],
  );
});
