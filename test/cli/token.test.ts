import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseAuthFile } from "../../src/auth/auth-file.js";
import { parseTicket, ticketMac } from "../../src/auth/ticket.js";
import { hashSecret, parseToken } from "../../src/auth/token.js";
import { parseTask } from "../../src/cli/command/task.js";
import type { Output } from "../../src/cli/command/verb.js";
import { TOKEN } from "../../src/cli/token.js";
import { childOf, container, lacksNamespaces } from "../helpers/machine.js";
import { startStreamdir } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";

/** Runs `streamdir token` in this process; `fault` is what its standard output fails with. */
async function token(args: readonly string[], fault: Error | null = null): Promise<{ status: number; stdout: string; stderr: string }> {
  const command = parseTask(TOKEN, args, {});
  assert.ok(command.kind === "run", JSON.stringify(command));
  const said = { stdout: "", stderr: "" };
  const output = (name: "stdout" | "stderr"): Output => ({
    write: (text, written) => {
      said[name] += text;
      written?.(name === "stdout" ? fault : null);
    },
  });
  const nothing = (): void => {};
  const surroundings = { env: {}, stdout: output("stdout"), stderr: output("stderr"), on: nothing, off: nothing, exit: nothing };
  return { status: await command.task.run(command.given, surroundings), ...said };
}

function fileIn(dir = tempDir()): string {
  return join(dir, "auth.json");
}

function addTo(file: string, id: string, ...more: readonly string[]) {
  return token(["add", "--auth", file, "--id", id, "--allow", "read,append", "--streams", "chat/**", ...more]);
}

function parsedFile(file: string) {
  return parseAuthFile({ file, text: readFileSync(file, "utf8") });
}

describe("streamdir token", () => {
  test("add prints a token once; the file, its owner's alone, has the hash", async () => {
    const file = fileIn();
    const { status, stdout, stderr } = await addTo(file, "ci", "--expires", "30d");
    assert.equal(status, 0);
    assert.match(stderr, /shown once/);
    const parts = parseToken(stdout.trimEnd());
    const [entry] = parsedFile(file).tokens;
    assert.ok(parts !== null && entry !== undefined);
    assert.ok(entry.hash.equals(hashSecret(parts.secret)));
    assert.equal(entry.expiresMs - (entry.createdMs ?? 0), 30 * 86_400_000);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.ok(!readFileSync(file, "utf8").includes(parts.secret));
  });

  test("add says that a token that could not be printed is to be revoked", async () => {
    const file = fileIn();
    const args = ["add", "--auth", file, "--id", "ci", "--allow", "read", "--streams", "**"];
    const { status, stderr } = await token(args, new Error("ENOSPC: no space left on device, write"));
    assert.deepEqual([status, parsedFile(file).tokens.length], [74, 1]);
    const why = "(ENOSPC: no space left on device, write)";
    assert.equal(stderr, `streamdir: the token ci is in the file and could not be printed ${why}: revoke it\n`);
  });

  test("list shows what there is, and no secret or hash", async () => {
    const file = fileIn();
    await addTo(file, "ci");
    const { stdout } = await token(["list", "--auth", file]);
    assert.match(stdout, /^ci: valid, made 20.*, does not end: read,append on chat\/\*\*\n$/);
    const json = await token(["list", "--auth", file, "--json"]);
    const { created, ...rest } = JSON.parse(json.stdout);
    assert.match(created, /^20/);
    const grants = [{ streams: ["chat/**"], allow: ["read", "append"], rate: null }];
    assert.deepEqual(rest, { id: "ci", state: "valid", expires: null, grants });
    writeFileSync(file, "{}");
    assert.equal((await token(["list", "--auth", file])).stdout, "no tokens\n");
  });

  test("revoke ends it, and says what may follow", async () => {
    const file = fileIn();
    await addTo(file, "ci");
    const { status, stdout } = await token(["revoke", "--auth", file, "--id", "ci"]);
    assert.equal(status, 0);
    assert.match(stdout, /^ci is revoked, with the tickets that it asked for/);
    assert.deepEqual(parsedFile(file).tokens, []);
    assert.equal((await addTo(file, "ci")).status, 0);
  });

  test("sign prints a ticket of a key that key has made", async () => {
    const file = fileIn();
    assert.equal((await token(["key", "--auth", file, "--id", "k1"])).status, 0);
    const { status, stdout } = await token(["sign", "--auth", file, "--stream", "grün/1", "--close", "--expires", "1h"]);
    assert.equal(status, 0);
    const ticket = parseTicket(stdout.trimEnd());
    const [key] = parsedFile(file).ticketKeys;
    assert.ok(ticket !== null && key !== undefined && ticket.close);
    assert.ok(ticketMac(key.secret, ticket, "grün/1").equals(ticket.mac));
  });

  test("key adds one that signs from then on, and the tickets of the older one go on", async () => {
    const file = fileIn();
    const added = async (id: string): Promise<string> => (await token(["key", "--auth", file, "--id", id])).stdout;
    assert.equal(await added("k1"), 'The ticket key k1 is in the file, under "ticketKeys". It signs new tickets from now on.\n');
    const signed = async (stream: string): Promise<string> => (await token(["sign", "--auth", file, "--stream", stream])).stdout;
    assert.match(await signed("a"), /\.k1\./);
    await added("k2");
    assert.match(await signed("a"), /\.k2\./);
    const [k2, k1] = parsedFile(file).ticketKeys;
    assert.deepEqual([k2?.id, k1?.id], ["k2", "k1"]);
    const tenant = { id: "tenant", secret: k1?.secret.toString("base64url"), grants: [{ streams: ["t/*"], allow: ["read"] }] };
    writeFileSync(file, JSON.stringify({ ticketKeys: [tenant] }));
    assert.match(await added("k3"), / It signs new tickets from now on, but for what tenant may sign\.$/m);
    assert.match(await signed("t/1"), /\.tenant\./);
  });

  for (const [title, args, status, words] of [
    ["an id with _", ["add", "--id", "a_b", "--allow", "read", "--streams", "a"], 64, /--id must be 1 to 64/],
    [
      "an operation that is none",
      ["add", "--id", "a", "--allow", "read,write", "--streams", "a"],
      64,
      /--allow has "write"; operations are/,
    ],
    [
      "a pattern that is none",
      ["add", "--id", "a", "--allow", "read", "--streams", "/a"],
      64,
      /--streams: "\/a" must have no empty segment/,
    ],
    [
      "admin on some streams",
      ["add", "--id", "a", "--allow", "read,admin", "--streams", "a/**"],
      64,
      /--streams must have \*\* where admin/,
    ],
    ["a token that is not there", ["revoke", "--id", "b"], 1, /has no token b$/m],
    ["a ticket without a key", ["sign", "--stream", "a"], 1, /streamdir token key --auth FILE --id ID makes one/],
    ["a ticket for too long", ["sign", "--stream", "a", "--expires", "8d"], 64, /--expires must be at most 7d/],
    ["a ticket for a name that is none", ["sign", "--stream", "a//b"], 64, /--stream: The stream name has an empty/],
    ["the tokens of no file", ["list"], 1, /auth\.json: ENOENT/],
  ] as const)
    test(`refuses ${title} with ${status}`, async () => {
      const file = fileIn();
      if (!title.includes("no file")) writeFileSync(file, "{}");
      const { stderr, ...ended } = await token([...args, "--auth", file]);
      assert.deepEqual(ended, { status, stdout: "" });
      assert.match(stderr, /^streamdir: [^\n]*\n$/);
      assert.match(stderr, words);
    });

  test("is a command, with help of its own and the variable of the server", async (context) => {
    const file = fileIn();
    const help = await startStreamdir(context, ["token", "add", "--help"]).ended;
    assert.match(help.stdout, /^Usage: streamdir token add --auth FILE/);
    const wrong = await startStreamdir(context, ["token", "key", "--id"], { env: { STREAMDIR_AUTH: file } }).ended;
    assert.deepEqual([wrong.status, wrong.stdout, wrong.stderr], [64, "", "streamdir: --id needs a value: ID\n"]);
    const key = await startStreamdir(context, ["token", "key", "--id", "k1"], { env: { STREAMDIR_AUTH: file } }).ended;
    assert.equal(key.status, 0, key.stderr);
    assert.equal(parsedFile(file).ticketKeys.length, 1);
  });
});

test("a command that listens for no signal is ended by one as the first process of a container", { skip: lacksNamespaces }, async (t) => {
  const file = join(tempDir(), "auth.json");
  // Another command seems to change the file, for as long as this one waits.
  writeFileSync(`${file}.lock`, "");
  const waiting = startStreamdir(t, ["token", "key", "--auth", file, "--id", "k1"], { under: container("pod") });
  // Until Node runs its program, the system keeps signals from it.
  const again = setInterval(() => killChild(waiting.pid), 20);
  const { status } = await waiting.ended.finally(() => clearInterval(again));
  assert.equal(status, 143);
});

function killChild(pid: number): void {
  try {
    const child = childOf(pid);
    // It has not begun: 0 would be this test.
    if (child > 0) process.kill(child, "SIGTERM");
  } catch (error) {
    // It has ended.
    assert.ok(error instanceof Error && "code" in error && ["ESRCH", "ENOENT"].includes(String(error.code)));
  }
}
