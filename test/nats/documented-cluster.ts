import assert from "node:assert/strict";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Page } from "../helpers/page-examples.js";
import { startProgram, type TestProcess, type TestScope } from "../helpers/process.js";
import { tempDir } from "../helpers/temp-dir.js";
import { Nginx } from "../proxies/nginx.js";
import { systemClock } from "../../src/ops/clock.js";
import { loadNatsClient } from "../../src/storage/nats/client/nats-client.js";
import { Subjects } from "../../src/storage/nats/log/subjects.js";
import { faultOfAnswer, jsonOf } from "../../src/storage/nats/jetstream/answers.js";
import { Requests } from "../../src/storage/nats/jetstream/requests.js";
import { Subscriptions } from "../../src/storage/nats/jetstream/subscriptions.js";
import { natsServerPath } from "./nats-server-path.js";
import { freePorts } from "../helpers/free-ports.js";

const PAGE = new Page("docs/cluster.md");
const HEADING = "An example";
const SERVERS = ["n1", "n2", "n3"];
const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const PACKAGES = fileURLToPath(new URL("node_modules/@nats-io", import.meta.url));
/** What everybody may do here: the tests are about the cluster. */
const EVERYTHING = ["create", "append", "read", "close", "delete", "list"];
/** What stands on the page, in the order of the ports that take its place. */
const DOCUMENTED_PORTS = [4222, 4223, 4224, 6222, 6223, 6224, 4437, 4438];

interface Parts {
  readonly nginx: Nginx;
  readonly frontEnds: readonly FrontEnd[];
  readonly natsPorts: readonly number[];
  readonly bucket: string;
  readonly shards: number;
  /** The processes of the NATS servers, by name, and what starts one. */
  readonly servers: ReadonlyMap<string, TestProcess>;
  readonly startServer: (name: string) => Promise<void>;
}

/** One of the two streamdirs. */
export interface FrontEnd {
  /** What a stream's name is appended to. */
  readonly url: string;
  readonly process: TestProcess;
}

/** The example of docs/cluster.md, with other ports and folders. */
export class DocumentedCluster {
  readonly #parts: Parts;

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  get nginx(): Nginx {
    return this.#parts.nginx;
  }

  get frontEnds(): readonly FrontEnd[] {
    return this.#parts.frontEnds;
  }

  /** Starts all of it as the page says; ended when the test is over. */
  static async start(scope: TestScope): Promise<DocumentedCluster> {
    const folder = tempDir();
    const ports = await freePorts(DOCUMENTED_PORTS.length);
    const here = (text: string): string => replaced(text, ports, folder);
    for (const [name, text] of configurations()) writeFileSync(join(folder, name), here(text));
    writeFileSync(join(folder, "auth.json"), JSON.stringify({ public: [{ streams: ["**"], allow: EVERYTHING }] }));
    const env = { PATH: `${await programsIn(folder)}:${process.env["PATH"] ?? ""}`, UV_THREADPOOL_SIZE: "32" };
    const run = (line: string): TestProcess => startProgram(scope, "bash", ["-c", `exec ${line}`], { cwd: folder, env });

    const lines = blockWith("sh", "nats-server --config").trim().split("\n").map(here);
    const servers = new Map<string, TestProcess>();
    const startServer = async (name: string): Promise<void> => {
      const line = lines.find((command) => command.includes(`${name}.conf`));
      assert.ok(line !== undefined, `a command starts ${name}`);
      const server = run(line);
      servers.set(name, server);
      await server.stderrLine(/Server is ready/);
    };
    await Promise.all(SERVERS.map(startServer));
    const started = lines.filter((command) => command.startsWith("streamdir serve")).map(run);
    assert.equal(started.length, 2);
    const frontEnds = await Promise.all(started.map(async (process) => ({ url: await urlOf(process), process })));
    const block = blockWith("nginx", "upstream");
    const nginx = await Nginx.start(scope, 0, ({ port, dir }) =>
      here(block)
        .replace("listen 80;", `listen 127.0.0.1:${port};`)
        .replace("/var/log/nginx/streamdir.log ", `${join(dir, "access.log")} `),
    );
    const [, bucket = "", shards] = /\/(\w+)\?shards=(\d+)' --port/.exec(lines.at(-1) ?? "") ?? [];
    const natsPorts = ports.slice(0, SERVERS.length);
    return new DocumentedCluster({ nginx, frontEnds, servers, startServer, natsPorts, bucket, shards: Number(shards) });
  }

  /** The name of the NATS server that leads the shard of a stream. */
  async leaderOf(stream: string): Promise<string> {
    const { bucket, shards, natsPorts } = this.#parts;
    const shard = new Subjects(bucket, shards).ofStream(stream).split(".")[2] ?? "";
    const client = await loadNatsClient();
    const connection = await client.connect({
      servers: natsPorts.map((port) => `127.0.0.1:${port}`),
      name: "test",
      timeout: 10_000,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      pingInterval: 10_000,
      maxPingOut: 2,
      ignoreAuthErrorAbort: true,
    });
    try {
      const requests = new Requests(client, connection, new Subscriptions(connection, systemClock()), systemClock());
      const answer = await requests.ask(`$JS.API.STREAM.INFO.SD_${bucket}_${shard}`, "", 10_000);
      assert.equal(answer.kind, "reply");
      const info = jsonOf(answer.message);
      assert.equal(faultOfAnswer(info), null);
      const { leader } = info["cluster"] as { leader: string }; // as the API has it
      return leader;
    } finally {
      await connection.close();
    }
  }

  /** Kills a NATS server with -9. */
  async kill(name: string): Promise<void> {
    const server = this.#parts.servers.get(name);
    assert.ok(server !== undefined, name);
    server.kill("SIGKILL");
    await server.ended;
  }

  /** Starts one that was killed. */
  startAgain(name: string): Promise<void> {
    return this.#parts.startServer(name);
  }
}

/** The configuration files of the page: their names stand before them. */
function configurations(): [string, string][] {
  const found = [...PAGE.text.matchAll(/^`(n\d\.conf)`:\n\n```conf\n([\s\S]*?)^```$/gm)];
  assert.equal(found.length, SERVERS.length);
  return found.map(([, name = "", text = ""]) => [name, text]);
}

/** The block under the heading that has a text. */
function blockWith(language: string, text: string): string {
  const blocks = PAGE.blocks.filter((block) => block.language === language && block.code.includes(text));
  assert.equal(blocks.length, 1, `docs/cluster.md has one block with ${text}`);
  const [block] = blocks;
  assert.ok(block !== undefined && PAGE.blocksUnder(HEADING).includes(block.code));
  return block.code;
}

function replaced(text: string, ports: readonly number[], folder: string): string {
  const portOf = new Map(DOCUMENTED_PORTS.map((documented, at) => [String(documented), String(ports[at])]));
  return text
    .replaceAll("/var/lib/nats", join(folder, "nats"))
    .replaceAll(/(127\.0\.0\.1:|--port )(\d+)/g, (_, before: string, port: string) => `${before}${portOf.get(port) ?? port}`);
}

/** A folder with the programs that the page runs, and the client of NATS where they look for it. */
async function programsIn(folder: string): Promise<string> {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(await natsServerPath(), join(bin, "nats-server"));
  const command = [process.execPath, "--import", import.meta.resolve("tsx"), MAIN].map((word) => `'${word}'`).join(" ");
  writeFileSync(join(bin, "streamdir"), `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(join(bin, "streamdir"), 0o755);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(PACKAGES, join(folder, "node_modules", "@nats-io"));
  return bin;
}

async function urlOf(frontEnd: TestProcess): Promise<string> {
  const ready = await frontEnd.stdoutLine(/http:/).catch(async (fault: unknown) => {
    throw new Error(`a front end did not start: ${(await frontEnd.ended).stderr}`, { cause: fault });
  });
  return /http:[^\s"]+/.exec(ready)?.[0] ?? "";
}
