import assert from "node:assert/strict";
import type http from "node:http";
import { Readable } from "node:stream";
import test, { after, before, describe, type TestContext } from "node:test";
import { CLIENT_VERBS } from "../../../src/cli/client/client-verbs.js";
import type { StopSignal } from "../../../src/cli/command/verb.js";
import { archiveOf } from "../../helpers/archive-of.js";
import { runClient, VerbServer, type ClientRun, type ClientWorld } from "../../helpers/client-verb.js";
import { serverAt } from "../../helpers/server-at.js";

/** Each way to run a verb that asks a server something of its own, and what is its input. */
const RUNS: readonly (readonly [line: string, stdin?: string | Buffer])[] = [
  ["ls"],
  ["ls -l a/"],
  ["info a"],
  ["create a"],
  ["append a", "x\n"],
  ["append a --create --lines --close", "x\n"],
  ["append a --json --create", "1\n"],
  ["cat a"],
  ["cat a --json"],
  ["tail a"],
  ["tail a -f"],
  ["tail a --since 1h"],
  ["close a"],
  ["fork a b"],
  ["rm a --yes"],
  ["export a"],
  ["export a/**"],
  ["import", archiveOf("1\n")],
  ["import --dry-run", archiveOf("1\n")],
  ["bench --seconds 1 --streams 2"],
];

/** Answers with the status and the problem that its prefix names. */
const refusing = serverAt({ after }, ({ url = "" }, res) => {
  const [, status, code = ""] = url.split("/");
  const [type, body] = code === "no-code" ? ["text/html", "<html>"] : ["application/problem+json", JSON.stringify({ code, title: "No" })];
  res.writeHead(Number(status), { "Content-Type": type }).end(body);
});

/** Runs a verb that waits for nothing longer than a moment. */
function run(url: string, line: string, stdin: string | Buffer = "", world: Partial<ClientWorld> = {}): Promise<ClientRun> {
  return runClient([...line.split(" "), "--wait", "1ms"], { url, stdin, ...world });
}

test("every verb is here", () => {
  const run = new Set(RUNS.map(([line]) => line.split(" ")[0]));
  assert.deepEqual([...run].sort(), CLIENT_VERBS.map(({ name }) => name).sort());
});

describe("the exit status where every request is answered with", { concurrency: 20 }, () => {
  /** Those that end otherwise: they have no stream of their own to miss, or find out what would be. */
  const NO_LIST = { ls: 69, "ls -l a/": 69, "export a/**": 69 };
  const ROWS: readonly (readonly [status: number, code: string, exit: number, others: Readonly<Record<string, number>>])[] = [
    [400, "invalid-offset", 65, {}],
    [401, "credential-missing", 77, {}],
    [403, "not-allowed", 77, {}],
    [404, "stream-not-found", 66, { ...NO_LIST, import: 65, "import --dry-run": 0 }],
    [405, "read-only", 65, NO_LIST],
    [408, "body-too-slow", 75, {}],
    [409, "stream-closed", 65, {}],
    [410, "stream-gone", 66, { import: 65, "import --dry-run": 65 }],
    [412, "tail-moved", 65, {}],
    [413, "body-too-large", 65, {}],
    [421, "host-not-allowed", 77, {}],
    [429, "rate-limited", 75, {}],
    [500, "internal-error", 74, {}],
    [502, "no-code", 75, {}],
    [503, "overloaded", 75, {}],
    [504, "no-code", 75, {}],
    [507, "storage-full", 75, {}],
  ];
  for (const [status, code, exit, others] of ROWS)
    for (const [line, stdin] of RUNS)
      test(`${status} ${code}: ${line}`, async () => {
        const expected = others[line] ?? exit;
        const ended = await run(`${await refusing}/${status}/${code}/`, line, stdin);
        assert.equal(ended.status, expected, ended.stderr);
        if (expected !== 0) assert.match(ended.stderr, /^(streamdir: .*\n)+$/);
        if (!line.startsWith("import")) assert.equal(ended.stdout, "");
      });
});

describe("the exit status is 69 where", () => {
  for (const [line, stdin] of RUNS)
    test(`no server is: ${line}`, async () => {
      const ended = await run("http://127.0.0.1:1", line, stdin);
      assert.deepEqual([ended.status, ended.stdout], [69, ""]);
      assert.match(ended.stderr, /does not answer \(ECONNREFUSED\)/);
    });

  test("the server breaks every connection, or speaks another protocol", async (t) => {
    const broken = await serverAt(t, (req) => req.socket.destroy());
    const other = await serverAt(t, (req) =>
      req.socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    );
    for (const [line, stdin] of RUNS) for (const url of [broken, other]) assert.equal((await run(url, line, stdin)).status, 69, line);
  });
});

/** A list that is none ends with 74. */
const LISTS = ["ls", "ls -l a/", "export a/**"];

describe("the exit status is 69, and nothing is told as done, where every request is answered by no server of streams,", () => {
  const page = { "Content-Type": "text/html" };
  for (const [what, status, headers] of [
    ["with a page", 200, page],
    ["with 204", 204, {}],
    ["with a place to go to", 301, { Location: "https://streams.example/" }],
    ["with a page that says that there is nothing", 404, page],
  ] as const) {
    const url = serverAt({ after }, (_, res) => res.writeHead(status, headers).end());
    for (const [line, stdin] of RUNS)
      test(`${what}: ${line}`, async () => {
        // A server of streams answers a deletion with just a 204.
        const expected = line.startsWith("rm") && status === 204 ? 0 : LISTS.includes(line) && status !== 404 ? 74 : 69;
        const ended = await run(await url, line, stdin);
        assert.deepEqual([ended.status, ended.stdout], [expected, ""], ended.stderr);
      });
  }
});

describe("the exit status of a prefix below which nothing is served is 69:", () => {
  const server = new VerbServer({ after });
  for (const [line, stdin] of RUNS)
    test(line, async () => {
      const ended = await server.run([...line.split(" "), "--prefix", "/v2/"], { stdin: stdin ?? "" });
      assert.deepEqual([ended.status, ended.stdout], [69, ""], ended.stderr);
      if (!LISTS.includes(line))
        assert.match(
          ended.stderr,
          /below \/v2\/: Nothing is served at this path: Streams are below .* \(unknown-path\); see --prefix and --server/,
        );
    });
});

test("a missing stream of a server that answers with 404 and a text ends with 66", async (t) => {
  const url = await serverAt(t, (_, res) => res.writeHead(404, { "Content-Type": "text/plain" }).end("Stream not found"));
  for (const line of ["info a", "cat a", "tail a -f", "close a", "rm a --yes", "export a"]) {
    const { status, stderr } = await run(url, line);
    assert.equal(status, 66, line);
    assert.equal(stderr, 'streamdir: stream "a": The server answers with 404: Stream not found\n', line);
  }
});

test("a list with characters that change what a terminal shows is none", async (t) => {
  const stream = { name: "a", contentType: "a/b", nextOffset: "1" };
  for (const [member, text] of [
    ["name", "a\nb"],
    ["contentType", "a/\u001b[31m"],
  ] as const) {
    const url = await serverAt(t, (_, res) => res.end(JSON.stringify({ streams: [{ ...stream, [member]: text }], next: null })));
    assert.equal((await run(url, "ls -l")).status, 74);
  }
});

describe("the exit status is 129 at SIGHUP, 130 at SIGINT, and 143 at SIGTERM, where", () => {
  async function endsWith(t: TestContext, [line, stdin]: (typeof RUNS)[number], name: StopSignal, listener: http.RequestListener) {
    let signal = (_: StopSignal): void => {};
    let isSent = false;
    const url = await serverAt(t, (req, res) => {
      listener(req, res);
      // A second one ends the process.
      if (!isSent) setImmediate(() => signal(name));
      isSent = true;
    });
    return runClient([...line.split(" "), "--wait", "1h"], { url, stdin: stdin ?? "", onStart: (send) => (signal = send) });
  }

  for (const row of RUNS)
    test(`an answer is waited for: ${row[0]}`, async (t) => {
      assert.equal((await endsWith(t, row, "SIGHUP", () => {})).status, 129);
      assert.equal((await endsWith(t, row, "SIGINT", () => {})).status, 130);
      assert.equal((await endsWith(t, row, "SIGTERM", () => {})).status, 143);
    });

  for (const row of RUNS)
    test(`the server is tried again: ${row[0]}`, async (t) => {
      const refuse = (_: http.IncomingMessage, res: http.ServerResponse) => void res.writeHead(503, { "Retry-After": "30" }).end();
      assert.equal((await endsWith(t, row, "SIGINT", refuse)).status, 130);
    });
});

describe("against a server that does its work,", () => {
  const server = new VerbServer({ after });
  const READS = ["ls", "ls -l", "ls --json", "info s", "info s --json", "cat s", "cat s --json", "tail s", "tail s -f"];
  const EXPORTS = ["export s", "export *"];
  const RESULTS = ["create n --json", "append s --json", "close c --json", "fork s f --json", "rm r --yes --json"];
  const WRITES = [...RESULTS, "bench --seconds 1", "import"];
  const run = (line: string, world: Partial<ClientWorld>): Promise<ClientRun> =>
    server.run(line.split(" "), { stdin: line === "import" ? archiveOf("1\n", { name: "i" }) : "1\n", ...world });

  before(async () => {
    for (const name of ["s", "c", "r"]) await server.done(["append", name, "--json", "--create"], "1\n");
  });
  const again = async (): Promise<void> => {
    for (const name of ["c", "r"]) await server.done(["append", name, "--json", "--create"], "1\n").catch(() => null);
  };

  for (const line of [...READS, ...EXPORTS, ...WRITES])
    test(`${line} ends with 0 when its reader has gone, and with 74 when its output is full`, async () => {
      const gone = Object.assign(new Error("EPIPE"), { code: "EPIPE", syscall: "write" });
      const { status, stderr } = await run(line, { onStdout: () => gone });
      assert.deepEqual([status, stderr], [0, ""]);
      await again();
      const full = Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC", syscall: "write" });
      const ended = await run(line, { onStdout: () => full });
      assert.equal(ended.status, 74);
      assert.match(ended.stderr, /^streamdir: .*the output can't be written: ENOSPC: no space left\n$/);
    });

  for (const line of [...READS, ...EXPORTS])
    test(`SIGINT ends ${line} with 130 while its reader takes nothing`, async () => {
      let interrupt = (): void => {};
      const exits: number[] = [];
      const { status, stderr } = await run(line, {
        onStart: (signal) => (interrupt = () => signal("SIGINT")),
        beforeWritten: () => (interrupt(), new Promise(() => {})),
        onExit: (code) => exits.push(code),
      });
      await new Promise(setImmediate);
      assert.deepEqual([status, stderr], [130, ""]);
      // What is not taken would keep the process.
      assert.deepEqual(exits, [130]);
    });

  test("a second signal ends the process", async () => {
    const exits: number[] = [];
    let signal = (_: StopSignal): void => {};
    const input = new Readable({ read: () => {}, destroy: () => {} });
    const { status } = await run("append s", {
      stdin: input,
      onStart: (send) => (signal = send),
      onExit: (code) => exits.push(code),
      env: {
        get STREAM_URL() {
          setTimeout(() => (signal("SIGINT"), signal("SIGTERM")), 50);
          return "";
        },
      },
    });
    assert.deepEqual([status, exits], [130, [143]]);
  });

  test("SIGINT ends an import with 130 in the middle of a stream", async () => {
    const archive = archiveOf("1\n".repeat(1000), { name: "half" });
    let interrupt = (): void => {};
    const input = new Readable({ read: () => setImmediate(interrupt) });
    input.push(archive.subarray(0, archive.length - 2000));
    const { status, stderr } = await run("import", { stdin: input, onStart: (signal) => (interrupt = () => signal("SIGINT")) });
    assert.deepEqual([status, stderr], [130, ""]);
  });

  for (const line of ["append s", "import"])
    test(`${line} ends with 74 when its input can't be read`, async () => {
      const input = new Readable({
        read: () => input.destroy(Object.assign(new Error("EIO: i/o error, read"), { code: "EIO", syscall: "read" })),
      });
      const { status, stderr } = await run(line, { stdin: input });
      assert.equal(status, 74);
      assert.match(stderr, /the input can't be read.*EIO: i\/o error, read/);
    });

  for (const [line, stdin] of [
    ["create x --type a\nb", ""],
    ["create x --expires-at \u2028", ""],
    ["append x --create --type a\u0000b", "1"],
    ["fork s x --at \n", ""],
    ["import", archiveOf("1\n", { name: "x", contentType: "text/plain\r\nX: y" })],
  ] as const)
    test(`${JSON.stringify(line)} with what no header can have ends with 65`, async () => {
      const { status, stderr } = await run(line, { stdin });
      assert.equal(status, 65);
      assert.match(stderr, /^streamdir: this can't be sent: Invalid character in header content \["[\w-]+"\]\n$/);
    });
});
