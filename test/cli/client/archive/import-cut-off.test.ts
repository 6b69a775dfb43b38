import assert from "node:assert/strict";
import test, { after, type TestContext } from "node:test";
import { archiveOf, forkOf } from "../../../helpers/archive-of.js";
import { runClient, VerbServer, type ClientRun } from "../../../helpers/client-verb.js";
import { losingProxy } from "../../../helpers/losing-proxy.js";

const server = new VerbServer({ after });

/** A stream of an archive: a fork has two messages of its source, and then its own. */
interface Kept {
  readonly contentType: string;
  readonly own: string;
  readonly closed: boolean;
  readonly isFork: boolean;
}

const FORK: Kept = { contentType: "application/json", own: "4\n", closed: false, isFork: true };
const CLOSED_FORK: Kept = { ...FORK, own: "", closed: true };
const CLOSED: Kept = { ...CLOSED_FORK, isFork: false };
const CLOSED_TEXT: Kept = { ...CLOSED, contentType: "text/plain" };

const INHERITED = "1\n2\n";
let count = 0;

/** A name of its own, and the archive of one that is kept. */
async function archived({ contentType, own, closed, isFork }: Kept): Promise<{ readonly name: string; readonly bytes: Buffer }> {
  const name = `stream-${(count += 1)}`;
  if (isFork) await server.done(["append", `${name}-source`, "--json", "--create"], `${INHERITED}3\n`);
  const fork = isFork ? forkOf(`${name}-source`, 2, INHERITED) : null;
  return { name, bytes: archiveOf(own, { name, contentType, closed, fork }) };
}

/** Imports over a proxy that loses the answers to so many creations. */
async function importLosing(t: TestContext, bytes: Buffer, lost: number, wait: string): Promise<ClientRun> {
  const { origin, pathname } = new URL(await server.url());
  let puts = 0;
  const proxy = await losingProxy(
    t,
    () => origin,
    (method) => method === "PUT" && (puts += 1) <= lost,
  );
  return runClient(["import", "--wait", wait], { url: `${proxy}${pathname}`, stdin: bytes });
}

async function assertImported(name: string, { own, closed, isFork }: Kept): Promise<void> {
  assert.equal(await server.done(["cat", name]), `${isFork ? INHERITED : ""}${own}`);
  assert.match(await server.done(["info", name]), closed ? /^state {11}closed$/m : /^state {11}open$/m);
}

for (const [title, kept] of [
  ["a fork", FORK],
  ["a closed fork", { ...FORK, closed: true }],
  ["a closed fork without data of its own", CLOSED_FORK],
  ["a closed stream without data", CLOSED],
] as const) {
  test(`${title} is imported where the answer to its creation is lost`, async (t) => {
    const { name, bytes } = await archived(kept);
    const { status, stdout } = await importLosing(t, bytes, 1, "1m");
    assert.deepEqual([status, stdout], [0, `imported  ${name}\n`]);
    await assertImported(name, kept);
  });

  test(`${title} is imported after an import that ended with its creation, and is there after that`, async (t) => {
    const { name, bytes } = await archived(kept);
    assert.equal((await importLosing(t, bytes, Infinity, "1ms")).status, 69);
    for (const what of ["imported  ", "there     "]) {
      const { status, stdout } = await server.run(["import"], { stdin: bytes });
      assert.deepEqual([status, stdout], [0, `${what}${name}\n`]);
      await assertImported(name, kept);
    }
  });
}

const BRANCH = "fork NAME-source NAME --at -1 --skip 2";

for (const [title, kept, before, data] of [
  ["a stream that has what a fork inherits, but is none", FORK, ["append NAME --json --create"], INHERITED],
  ["an empty stream in the place of a fork", FORK, ["create NAME --type application/json"], ""],
  ["a fork that somebody has appended to", FORK, [BRANCH, "append NAME"], "5\n"],
  ["an open stream that has what a closed fork inherits", CLOSED_FORK, ["append NAME --json --create"], INHERITED],
  ["an open fork that somebody has appended to, in the place of a closed one", CLOSED_FORK, [BRANCH, "append NAME"], "5\n"],
  ["an open stream without data, of another type than the closed one", CLOSED_TEXT, ["create NAME --type text/csv"], ""],
] as const)
  test(`an import leaves alone ${title}`, async () => {
    const { name, bytes } = await archived(kept);
    for (const line of before) await server.done(line.replaceAll("NAME", name).split(" "), data);
    const facts = async (): Promise<string> => (await server.done(["cat", name])) + (await server.done(["info", name]));
    const unchanged = await facts();
    const { status, stdout } = await server.run(["import"], { stdin: bytes });
    assert.equal(status, 65, stdout);
    assert.equal(await facts(), unchanged);
  });

test("an import closes a stream without data that is there and open, like one with data", async () => {
  const { name, bytes } = await archived(CLOSED);
  await server.done(["create", name, "--type", "application/json"]);
  assert.equal((await server.run(["import"], { stdin: bytes })).stdout, `imported  ${name}\n`);
  await assertImported(name, CLOSED);
});
