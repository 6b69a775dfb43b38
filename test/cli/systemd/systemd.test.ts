import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseCommand } from "../../../src/cli/config.js";
import { systemd as run } from "../../../src/cli/systemd/systemd.js";
import { VERBS } from "../../../src/cli/verbs.js";
import { unless } from "../../helpers/machine.js";
import { Page } from "../../helpers/page-examples.js";
import { startProgram, startStreamdir } from "../../helpers/process.js";
import { ask } from "../../helpers/real-server.js";
import { tempDir } from "../../helpers/temp-dir.js";
import { freePort } from "../../helpers/free-ports.js";

const MAIN = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));

/** What the verb says to these arguments, in this process. */
async function systemd(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
  const command = parseCommand(["systemd", ...args], env, VERBS);
  assert.ok(command.kind === "run");
  const said = { stdout: "", stderr: "" };
  const output = (name: keyof typeof said) => ({ write: (text: string) => void (said[name] += text) });
  const nothing = (): void => {};
  const surroundings = { env: {}, stdout: output("stdout"), stderr: output("stderr"), on: nothing, off: nothing, exit: nothing };
  const status = await run({ ...command, version: "1.2.3" }, surroundings);
  return { status, ...said };
}

describe("streamdir systemd", () => {
  test("prints both units, or one of them", async (t) => {
    const both = await startStreamdir(t, ["systemd"]).ended;
    assert.deepEqual([both.status, both.stderr], [0, ""]);
    const [service = "", socket = ""] = both.stdout.split(/\n(?=# \/etc\/systemd\/system\/streamdir\.socket\n)/);
    assert.match(service, /^# \/etc\/systemd\/system\/streamdir\.service\n\n\[Unit\]\n/);
    assert.match(service, /\n {2}%S\/streamdir \\\n {2}--shutdown-delay=1s\n/);
    assert.match(socket, /\nListenStream=127\.0\.0\.1:4437\n/);
    for (const [only, text] of [
      ["service", service],
      ["socket", socket],
    ] as const) {
      assert.equal((await startStreamdir(t, ["systemd", `--only=${only}`]).ended).stdout, text);
    }
  });

  for (const [, args = ""] of new Page("docs/operating.md").text.matchAll(/streamdir systemd ?([^`>\n]*)/g)) {
    test(`is as docs/operating.md has it: ${args}`, async () => {
      const { status, stdout, stderr } = await systemd(args.split(" ").filter((word) => word !== ""));
      assert.deepEqual([status, stderr], [0, ""]);
      assert.match(stdout, /^# \/etc\/systemd\/system\/streamdir\./);
    });
  }

  test("serves the directory that is named, also where it is the one that serve has without", async (context) => {
    context.mock.method(process, "cwd", () => "/srv");
    const { status, stdout, stderr } = await systemd(["./data", "--user", "me", "--only", "service"]);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /\nReadWritePaths=\/srv\/data\n/);
    assert.doesNotMatch(stdout, /StateDirectory|%S/);
  });

  test("has the service make its socket for figures in its directory, with its mode", async () => {
    const args = ["--admin-listen", "unix:/var/lib/streamdir/admin.sock,127.0.0.1:9437", "--unix-mode", "660", "--only", "service"];
    const { status, stdout, stderr } = await systemd(args);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, / {2}--admin-listen=unix:\/var\/lib\/streamdir\/admin\.sock,127\.0\.0\.1:9437 \\?\n/);
    assert.match(stdout, / {2}--unix-mode=660 ?\\?\n/);
    const within = await systemd(["/srv/s", "--user", "me", "--admin-listen", "unix:/srv/s/admin.sock"]);
    assert.deepEqual([within.status, within.stderr], [0, ""]);
    assert.ok(!within.stdout.includes("--unix-mode"));
  });

  test("has paths as systemd takes them, without dots and double slashes", async (context) => {
    context.mock.method(process, "cwd", () => "/srv/app");
    for (const [given, path] of [
      ["../auth.json", "/srv/auth.json"],
      ["/etc/x/..//auth.json", "/etc/auth.json"],
    ] as const) {
      const { stdout } = await systemd(["--auth", given, "--only", "service"]);
      assert.match(stdout, new RegExp(`\\nLoadCredential=auth.json:${path}\\n`));
    }
    const admin = await systemd(["/srv/s", "--user", "me", "--admin-listen", "unix:/srv/s/..//t/admin.sock"]);
    assert.match(admin.stderr, /can make no socket at "\/srv\/t\/admin\.sock"/);
  });

  test("refuses a socket whose whole path is too long, though the relative one is not", async (context) => {
    const dir = `/srv/${"long".repeat(30)}`;
    context.mock.method(process, "cwd", () => dir);
    const { status, stderr } = await systemd([".", "--user", "me", "--admin-listen", "unix:admin.sock"]);
    assert.deepEqual([status, /can make no socket at "admin\.sock"/.test(stderr)], [64, true], stderr);
  });

  test("prints a service without a directory for streams in a cluster, and never a password", async () => {
    const plain = await systemd(["--storage", "nats://10.0.0.1/chats", "--only", "service"]);
    assert.deepEqual([plain.status, plain.stderr], [0, ""]);
    assert.match(plain.stdout, / serve \\\n {2}--shutdown-delay=1s \\\n {2}--storage=nats:\/\/10\.0\.0\.1\/chats\n/);
    assert.ok(!plain.stdout.includes("StateDirectory"));
    const secret = await systemd(["--only", "service"], { STREAMDIR_STORAGE: "nats://me:secret@10.0.0.1/chats" });
    assert.deepEqual([secret.status, secret.stderr], [0, ""]);
    assert.ok(!secret.stdout.includes("secret"));
    assert.match(secret.stdout, /\nEnvironmentFile=\/etc\/streamdir\/%p\.env\n/);
  });

  test("takes no password as an argument, as no command does", () => {
    for (const verb of ["systemd", "serve"]) {
      const command = parseCommand([verb, "--storage", "nats://me:secret@10.0.0.1/chats"], {}, VERBS);
      assert.deepEqual(command, {
        kind: "usage-error",
        line: "--storage must not have a password: every user of this machine sees arguments; set it in STREAMDIR_STORAGE",
      });
    }
  });

  const refused: readonly [args: readonly string[], line: RegExp][] = [
    [["--only", "timer"], /^--only must be service or socket, not "timer"$/],
    [["--user", "a b"], /^--user must be a user's name, not "a b"$/],
    [["--listen", "fd:3"], /^fd:3 is what the units are for: /],
    [["--host", "db.example", "--insecure"], /^systemd listens on IP addresses: write one instead of "db\.example"$/],
    [["--port", "0"], /^systemd needs a port, not 0$/],
    [["--host", "0.0.0.0"], /^Cannot listen on 0\.0\.0\.0:4437: everybody who reaches it could read and write\./],
    [["--user", "me", "/tmp/streams"], /^the service has a \/tmp of its own \(PrivateTmp=yes\), and would not see "\/tmp\/streams"$/],
    [["--user", "me", "/var/tmp"], /would not see "\/var\/tmp"$/],
    [["/srv/streams"], /^"\/srv\/streams" needs its owner as --user NAME; /],
    [["--user", "me", "/srv/a\nb"], /^no path or value may have a control character in a unit$/],
    [["--tls-cert", "/a.pem"], /^--tls-cert and --tls-key belong together/],
    [["--storage", "nats://h1", "--fsync", "no"], /^--fsync has no meaning with --storage nats:\/\/$/],
    [["--admin-listen", "unix:admin.sock"], /^the service can make no socket at ".*\/admin\.sock": name one in its directory, or a port$/],
    [["--admin-listen", "unix:/run/admin.sock"], /^the service can make no socket at "\/run\/admin\.sock": /],
    [["--auth", "/a.json", "--admin-listen", "0.0.0.0:9437"], /^Cannot listen on 0\.0\.0\.0:9437: --admin-listen asks for no credential/],
    [["--admin-listen", "*:9437"], /^Cannot listen on \[::\]:9437: --admin-listen asks for no credential/],
    [["--nats-creds", "/a.creds"], /^--nats-creds has no meaning without --storage nats:\/\/$/],
  ];
  for (const [args, line] of refused) {
    test(`refuses ${JSON.stringify(args.join(" "))}`, async () => {
      const { status, stdout, stderr } = await systemd(args);
      assert.deepEqual([status, stdout], [64, ""]);
      assert.match(stderr.replace(/^streamdir: /, "").trimEnd(), line);
    });
  }
});

test(
  "systemd-socket-activate opens the port, and the first request is answered",
  { skip: unless(["systemd-socket-activate", "--version"], "run systemd-socket-activate (the package systemd)") },
  async (t) => {
    const port = await freePort();
    const node = [process.execPath, "--import", import.meta.resolve("tsx"), MAIN, "serve", tempDir(), "--log-format=json"];
    const activated = startProgram(t, "systemd-socket-activate", ["-l", `127.0.0.1:${port}`, "-E", "UV_THREADPOOL_SIZE=32", ...node]);
    await activated.stderrLine(/Listening on/);
    const url = `http://127.0.0.1:${port}/v1/stream/s`;
    assert.equal((await ask(url, "PUT", { headers: { "Content-Type": "text/plain" }, body: "by a socket" })).status, 201);
    assert.equal((await ask(`${url}?offset=-1`, "GET")).body, "by a socket");
    assert.equal(JSON.parse(await activated.stdoutLine(/"serving"/)).url, `http://127.0.0.1:${port}/v1/stream/`);
  },
);
