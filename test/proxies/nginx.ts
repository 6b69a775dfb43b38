import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePorts } from "../helpers/free-ports.js";
import { unless } from "../helpers/machine.js";
import type { TestProcess, TestScope } from "../helpers/process.js";
import { ask } from "../helpers/real-server.js";
import { tempDir } from "../helpers/temp-dir.js";
import { until } from "../helpers/until.js";
import { startProxy } from "./proxy-process.js";

const DOCUMENTED = fileURLToPath(new URL("../../docs/nginx.conf", import.meta.url));

/** Why a test with nginx is left out, if it is. */
export const lacksNginx = unless(["nginx", "-v"], "run nginx (the package nginx)");

const [ACCESS_LOG, ERROR_LOG] = ["access.log", "error.log"];

/** What stands in nginx's http block. `dir` is a directory for files of its own. */
export type HttpBlock = (places: { readonly port: number; readonly originPort: number; readonly dir: string }) => string;

/** docs/nginx.conf, with another port, origin and place for its caches. */
export const documentedBlock: HttpBlock = ({ port, originPort, dir }) => {
  let text = readFileSync(DOCUMENTED, "utf8");
  const places = [
    ["server 127.0.0.1:4437;", `server 127.0.0.1:${originPort};`],
    ["listen 80;", `listen 127.0.0.1:${port};`],
    ["/var/cache/streamdir ", `${join(dir, "history")} `],
    ["/var/cache/streamdir-live ", `${join(dir, "live")} `],
    ["/var/log/nginx/streamdir.log ", `${join(dir, ACCESS_LOG)} `],
  ] as const;
  for (const [documented, here] of places) {
    assert.equal(text.split(documented).length, 2, `docs/nginx.conf says once: ${documented}`);
    text = text.replace(documented, here);
  }
  return text;
};

/** nginx as Debian has it, in front of a streamdir on this machine. */
export class Nginx {
  readonly port: number;
  /** Where all of its files are. */
  readonly dir: string;
  readonly process: TestProcess;
  readonly #statusPort: number;

  private constructor(port: number, dir: string, statusPort: number, process: TestProcess) {
    this.process = process;
    this.port = port;
    this.dir = dir;
    this.#statusPort = statusPort;
  }

  /** Serves until the test is over. */
  static async start(scope: TestScope, originPort: number, block: HttpBlock = documentedBlock): Promise<Nginx> {
    const [port = 0, statusPort = 0] = await freePorts(2);
    const dir = tempDir();
    const main = join(dir, "nginx.conf");
    mkdirSync(join(dir, "temp"));
    writeFileSync(join(dir, "site.conf"), block({ port, originPort, dir }));
    writeFileSync(main, mainFile(dir, statusPort));
    const process = await startProxy(scope, {
      command: "nginx",
      args: ["-e", "stderr", "-p", dir, "-c", main],
      ready: /start worker process \d/,
    });
    return new Nginx(port, dir, statusPort, process);
  }

  /** What a stream's name is appended to. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/v1/stream/`;
  }

  /** What the access log says: nginx writes a line after its client has the answer. */
  accessLog(): string {
    return readFileSync(join(this.dir, ACCESS_LOG), "utf8");
  }

  /** Resolves when the access log has such a line. */
  async logged(line: RegExp): Promise<void> {
    await until(() => line.test(this.accessLog()));
  }

  /** Resolves when `count` requests wait for their answers. */
  async holds(count: number): Promise<void> {
    for (;;) {
      const { body } = await ask(`http://127.0.0.1:${this.#statusPort}/`, "GET");
      const writing = Number(/Writing: (\d+)/.exec(body)?.[1]);
      const own = 1;
      if (writing >= count + own) return;
    }
  }
}

/** What stands around the http block: nothing of it changes how requests are answered. */
function mainFile(dir: string, statusPort: number): string {
  const bodies = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `  ${kind}_temp_path ${join(dir, "temp", kind)};`);
  return [
    "daemon off;",
    `pid ${join(dir, "nginx.pid")};`,
    // The directory of a test is closed to everybody else.
    ...(process.getuid?.() === 0 ? ["user root;"] : []),
    "worker_processes 2;",
    "worker_rlimit_nofile 8192;",
    "error_log stderr notice;",
    `error_log ${join(dir, ERROR_LOG)} info;`,
    "events { worker_connections 4096; }",
    "http {",
    "  access_log off;",
    ...bodies,
    `  server { listen 127.0.0.1:${statusPort}; location / { stub_status; } }`,
    `  include ${join(dir, "site.conf")};`,
    "}",
    "",
  ].join("\n");
}
