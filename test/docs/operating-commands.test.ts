import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, test } from "node:test";
import { upgradeDirectory } from "../../src/storage/file/upgrade/upgrade.js";
import { Layout } from "../../src/storage/file/format/layout.js";
import { systemFiles } from "../../src/storage/file/disk/files.js";
import { areAs, CHANGED, FORMER, madeUpTarget } from "../helpers/made-up-format.js";
import { bash, Page, STREAMDIR_IN_SHELL } from "../helpers/page-examples.js";
import { codeOf, RealServer } from "../helpers/real-server.js";
import { fileIn, flipBit } from "../helpers/spoilt-files.js";
import { tempDir } from "../helpers/temp-dir.js";

const PAGE = new Page("docs/operating.md");
const TEXT = { "Content-Type": "text/plain" };

/** Stands in for what a test can't do to its machine, and runs the command from its sources; another machine is this one. */
const PRELUDE = `
systemctl() {
  # A socket that stays open starts its service again.
  [ "$1" != stop ] || [[ "$*" == *streamdir.socket* ]] || { echo "systemctl $*" >&2; return 1; }
}
useradd() { :; }
chown() { :; }
ssh() { shift; eval "$*"; }
${STREAMDIR_IN_SHELL}`;

/** The shell commands under a heading of any level, for another directory and other places. */
function commandsUnder(heading: string, places: Readonly<Record<string, string>>): string[] {
  const section = PAGE.text.split(/^#{2,3} /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  const blocks = [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
  assert.ok(blocks.length > 0, `commands under ${heading}`);
  return blocks.map((block) => Object.entries(places).reduce((code, [documented, here]) => code.replaceAll(documented, here), block));
}

async function run(commands: string): Promise<string> {
  return bash(PRELUDE + commands);
}

/** A server that has a stream with a producer, and was stopped. */
async function stopped(server: RealServer): Promise<{ offset: string; producer: Record<string, string> }> {
  await server.start();
  const producer = { ...TEXT, "Producer-Id": "p", "Producer-Epoch": "0" };
  await server.ask("PUT", "chat/7", { headers: TEXT, body: "one," });
  const first = await server.ask("POST", "chat/7", { headers: { ...producer, "Producer-Seq": "0" }, body: "two," });
  assert.equal(first.status, 200);
  await server.stop();
  return { offset: String(first.headers["stream-next-offset"]), producer };
}

/** The files below a directory that have `text`, by their paths there. */
function holding(directory: string, text: string): readonly string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => relative(directory, join(entry.parentPath, entry.name)));
  return paths.filter((path) => readFileSync(join(directory, path)).includes(text)).sort();
}

function rootOf(path: string): string {
  return path.split("/")[0] ?? path;
}

describe("the commands of docs/operating.md", () => {
  test("restart and back up, after which no byte of a deleted stream is left", async (t) => {
    const place = tempDir();
    const server = new RealServer(t, ["--journal-bytes", "2MiB"], join(place, "data"));
    await server.start();
    for (const name of ["deleted", "expired", "kept"])
      await server.ask("PUT", name, { headers: name === "expired" ? { ...TEXT, "Stream-TTL": "0" } : TEXT, body: `bytes of ${name}` });
    // Files of the journal are used again.
    const body = "bytes of deleted, ".repeat(3000);
    for (let appends = 0; appends < 150; appends += 1) await server.ask("POST", "deleted", { headers: TEXT, body });
    const backUp = `streamdir backup '${server.dir}' '${join(place, "backup")}' 2> /dev/null\n`;
    await run(backUp);
    assert.equal((await server.ask("DELETE", "deleted")).status, 204);
    assert.ok(holding(join(place, "backup"), "bytes of deleted").length > 0);
    await server.stop();
    assert.deepEqual(holding(server.dir, "bytes of deleted"), []);
    await server.start();
    await run(backUp);
    await server.stop();
    for (const name of ["deleted", "expired"]) assert.deepEqual(holding(place, `bytes of ${name}`), []);
    assert.deepEqual(new Set(holding(place, "bytes of kept").map(rootOf)), new Set(["backup", "data"]));
  });

  test("back up a directory whose server runs, and restore it", async (t) => {
    const place = tempDir();
    const server = new RealServer(t, [], join(place, "data"));
    await server.start();
    await server.ask("PUT", "chat/7", { headers: TEXT, body: "one," });
    const places = { "/var/lib/streamdir": server.dir, "/backup/streams": join(place, "backup") };
    const [backUp = "", restore = ""] = commandsUnder("Backup and restore", places);
    assert.match(await run(backUp), /nothing wrong in \d+ streams/);
    await server.ask("POST", "chat/7", { headers: TEXT, body: "two" });
    await server.stop();
    await run(restore);
    await server.start();
    assert.equal((await server.ask("GET", "chat/7")).body, "one,");
  });

  test("restore one stream from a backup whose journal has its newest appends", async (t) => {
    const place = tempDir();
    const server = new RealServer(t, [], join(place, "data"));
    await stopped(server);
    await server.start();
    await server.ask("PUT", "other", { headers: TEXT, body: "kept" });
    await server.ask("POST", "chat/7", { headers: TEXT, body: "three," });
    const backup = join(place, "backup");
    await run(`streamdir backup '${server.dir}' '${backup}' 2> /dev/null\n`);
    await server.ask("POST", "chat/7", { headers: TEXT, body: "four" });
    await server.stop();
    const directory = join("streams", "c4", "chat%2F7");
    flipBit(fileIn(join(server.dir, directory), ".seg"), 2);
    assert.match(await run(`streamdir repair '${server.dir}' --yes || [ $? = 1 ]`), /refuse the stream, and keep its sidecar/);

    // What the page warns of: the backup's own directory of the stream looks sound, and lacks what was acknowledged.
    const careless = join(place, "careless");
    cpSync(server.dir, careless, { recursive: true });
    rmSync(join(careless, directory), { recursive: true });
    cpSync(join(backup, directory), join(careless, directory), { recursive: true });
    const note = /nothing wrong in[\s\S]*note: stream "chat\/7": it ends at position 8, and ended at 18 before a repair/;
    assert.match(await run(`streamdir verify '${careless}'`), note);

    const places = { "/var/lib/streamdir": server.dir, "/backup/applied": join(place, "applied"), "/backup/streams": backup };
    const [restore = ""] = commandsUnder("One stream from a backup", places);
    assert.match(await run(restore), /apply[\s\S]*nothing wrong in 2 streams[\s\S]*it ends at position 14, and ended at 18/);
    await server.start();
    assert.equal((await server.ask("GET", "chat/7")).body, "one,two,three,");
    assert.equal((await server.ask("GET", "other")).body, "kept");
    await server.stop();
  });

  test("of one stream from a backup are those that docs/repair.md gives in short", () => {
    const shown = commandsUnder("One stream from a backup", {}).join("");
    const [, way = ""] = new Page("docs/repair.md").text.split("There are three ways on:");
    const given = [...way.matchAll(/`((?:cp|streamdir repair) [^`]*backup[^`]*)`/g)].map(([, command = ""]) => command);
    assert.equal(given.length, 2);
    for (const command of given) assert.ok(shown.includes(command), command);
  });

  test("copy a directory, and restore it", async (t) => {
    const place = tempDir();
    const server = new RealServer(t, [], join(place, "data"));
    const { offset } = await stopped(server);
    mkdirSync(join(place, "backup"));
    const places = { "/var/lib/streamdir": server.dir, "/backup": join(place, "backup"), "/srv/restored": join(place, "restored") };
    const [copy = "", restore = ""] = commandsUnder("Copy and restore", places);
    await run(copy);
    await server.start();
    const later = await server.ask("POST", "chat/7", { headers: TEXT, body: "three" });
    await server.stop();

    assert.match(await run(restore), /^nothing wrong in 1 streams/);
    const restored = new RealServer(t, [], join(place, "restored"));
    await restored.start();
    assert.equal((await restored.ask("GET", "chat/7")).body, "one,two,");
    assert.equal((await restored.ask("GET", `chat/7?offset=${offset}`)).status, 200);
    const beyond = await restored.ask("GET", `chat/7?offset=${String(later.headers["stream-next-offset"])}`);
    assert.deepEqual([beyond.status, codeOf(beyond)], [400, "invalid-offset"]);
  });

  test("move a directory, also one that a kill left: offsets and producers go on", async (t) => {
    const place = tempDir();
    const server = new RealServer(t, [], join(place, "data"));
    const { offset, producer } = await stopped(server);
    await server.start();
    assert.equal((await server.ask("POST", "chat/7", { headers: { ...producer, "Producer-Seq": "1" }, body: "three," })).status, 200);
    server.process.kill("SIGKILL");
    await server.process.ended;
    assert.ok(existsSync(join(server.dir, "lock")));

    const [move = ""] = commandsUnder("Move a directory to another machine", {
      "/var/lib/streamdir": server.dir,
      "/srv/streams": join(place, "streams"),
    });
    assert.match(await run(move), /^nothing wrong in 1 streams.*\nnothing wrong in 1 streams/);
    renameSync(server.dir, `${server.dir}.old`);
    assert.deepEqual(
      readdirSync(join(place, "streams")).filter((name) => name.startsWith("lock")),
      [],
    );
    const moved = new RealServer(t, [], join(place, "streams"));
    await moved.start();
    assert.equal((await moved.ask("GET", `chat/7?offset=${offset}`)).body, "three,");
    assert.equal((await moved.ask("POST", "chat/7", { headers: { ...producer, "Producer-Seq": "1" }, body: "three," })).status, 204);
    assert.equal((await moved.ask("POST", "chat/7", { headers: { ...producer, "Producer-Seq": "2" }, body: "four" })).status, 200);
    assert.equal((await moved.ask("GET", "chat/7")).body, "one,two,three,four");
    await moved.stop();
    await moved.verify();
  });

  test("lead back from an upgrade before its first start", async (t) => {
    const server = new RealServer(t, []);
    await stopped(server);
    mkdirSync(join(server.dir, "damaged/b"), { recursive: true });
    for (const [path, text] of Object.entries(FORMER)) writeFileSync(join(server.dir, path), text);
    const options = { files: systemFiles(true), layout: new Layout(server.dir), apply: true, say: () => undefined };
    await upgradeDirectory({ ...options, target: madeUpTarget() });
    const textIn = (path: string): string | null =>
      existsSync(join(server.dir, path)) ? readFileSync(join(server.dir, path), "utf8") : null;
    assert.ok(areAs(CHANGED, textIn));
    const [back = ""] = commandsUnder("Go back", { "/var/lib/streamdir": server.dir });
    await run(back);
    assert.ok(areAs(FORMER, textIn));
    const verified = await run(`streamdir verify ${server.dir}`);
    assert.match(verified, /^nothing wrong .*\nnote: .*before-format-2 keeps what an upgrade changed, as it was\n/);
    await server.start();
    assert.equal((await server.ask("GET", "chat/7")).body, "one,two,");
    await server.stop();
    await upgradeDirectory({ ...options, target: madeUpTarget() });
    assert.ok(areAs(CHANGED, textIn));
  });

  test("look at a disk, and at damage", async (t) => {
    const server = new RealServer(t, []);
    await stopped(server);
    const places = { "/var/lib/streamdir": server.dir };
    const [disk = ""] = commandsUnder("The disk is full", places);
    assert.match(await run(disk), /journal\n/);
    flipBit(fileIn(server.dir, ".seg"), 2);
    const [damage = ""] = commandsUnder("A stream is damaged", places);
    // Both end with 1: they have found something.
    const said = await run(damage.replaceAll(/^streamdir .*$/gm, "$& && false || [ $? = 1 ]"));
    assert.match(said, /1 finding in 1 streams[\s\S]*left for you: docs\/repair.md says what to do/);
  });
});
