import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import test from "node:test";
import { Layout, sidecarPath } from "../../src/storage/file/format/layout.js";
import { changeSidecar, copyOf } from "../helpers/engine.js";
import { startStreamdir, type Ended } from "../helpers/process.js";
import { RealServer } from "../helpers/real-server.js";

/** A small journal, so that kills fall into checkpoints; a low bypass, so that they fall into large creations. */
const SIZES = ["--journal-bytes", "64KiB", "--journal-bypass-bytes", "8KiB", "--segment-bytes", "16KiB", "--tail-cache-bytes", "64KiB"];
const KILLS = 3;
const FORKS_PER_LIFE = 40;
const TYPE = { "Content-Type": "text/plain" };

const bodyOf = (turn: number): string => `${turn},`.padEnd(turn % 9 === 4 ? 9000 : 30, "x");

/** Makes forks of forks, and deletes some of them again, while the server is killed; returns what each that is left holds. */
async function makeForks(server: RealServer): Promise<Map<string, string>> {
  const texts = new Map([["f/0", bodyOf(0)]]);
  assert.equal((await server.insist("PUT", "f/0", { headers: TYPE, body: bodyOf(0) })).status, 201);
  for (let turn = 1; turn <= KILLS * FORKS_PER_LIFE; turn += 1) {
    const sources = [...texts.keys()];
    const source = sources[(turn * 7) % sources.length] ?? "";
    const name = `f/${turn}`;
    const killed = turn % FORKS_PER_LIFE === 0 ? server.killAndRestart() : null;
    const made = await server.insist("PUT", name, {
      headers: { ...TYPE, "Stream-Forked-From": new URL(source, server.url).pathname },
      body: bodyOf(turn),
    });
    assert.ok([200, 201].includes(made.status), `${name}: ${made.status} ${made.body}`);
    await killed;
    texts.set(name, `${texts.get(source)}${bodyOf(turn)}`);
    if (turn % 4 !== 3) continue;
    const { status } = await server.insist("DELETE", source);
    assert.ok([204, 404, 410].includes(status), String(status));
    texts.delete(source);
  }
  return texts;
}

test("forks are sound after kill -9, what is broken between them is named, and repaired where it can be", async (context) => {
  const server = new RealServer(context, SIZES);
  await server.start();
  const texts = await makeForks(server);
  server.process.kill("SIGKILL");
  await server.process.ended;
  await server.verify();

  const run = (verb: string, dir: string, ...flags: string[]): Promise<Ended> => startStreamdir(context, [verb, dir, ...flags]).ended;
  const repaired = await run("repair", server.dir, "--yes");
  assert.equal(repaired.status, 0, repaired.stdout);
  await server.verify();
  await server.start();
  for (const [name, text] of texts) assert.equal((await server.ask("GET", name)).body, text, name);
  for (const [name, point] of [
    ["own/a", "own/source"],
    ["own/b", "own/a"],
  ] as const) {
    await server.ask("PUT", point, { headers: TYPE, body: "shared" });
    const made = await server.ask("PUT", name, {
      headers: { ...TYPE, "Stream-Forked-From": new URL(point, server.url).pathname },
      body: name,
    });
    assert.equal(made.status, 201, made.body);
  }
  assert.equal((await server.stop()).status, 0);
  await server.verify();

  const layoutOf = (dir: string, name: string): string => new Layout(dir).streamDirectory(name);
  const harms: readonly [problem: RegExp, harm: (dir: string) => void, isMended: boolean][] = [
    [
      /stream "own\/a": .*its source "own\/source" \(\w{24}\) is missing/,
      (dir) => rmSync(layoutOf(dir, "own/source"), { recursive: true }),
      false,
    ],
    [
      /stream "own\/source": .*it does not know its fork "own\/a"/,
      (dir) => changeSidecar(sidecarPath(layoutOf(dir, "own/source")), () => ({ forks: null })),
      true,
    ],
    [/stream "own\/a": .*it lists the fork \w{24}, which is nowhere/, (dir) => rmSync(layoutOf(dir, "own/b"), { recursive: true }), true],
    [
      /stream "own\/source": .*its forks can't be read without it: "own\/a"/,
      (dir) => rmSync(sidecarPath(layoutOf(dir, "own/source"))),
      true,
    ],
    [/stream "own\/b": .*it is missing/, (dir) => rmSync(sidecarPath(layoutOf(dir, "own/b"))), true],
  ];
  for (const [problem, harm, isMended] of harms) {
    const dir = copyOf(server.dir);
    harm(dir);
    const found = await run("verify", dir);
    assert.equal(found.status, 1);
    assert.match(found.stdout, problem);
    assert.equal((await run("repair", dir, "--yes")).status, isMended ? 0 : 1, String(problem));
    assert.equal((await run("verify", dir)).status, isMended ? 0 : 1, String(problem));
  }
});
