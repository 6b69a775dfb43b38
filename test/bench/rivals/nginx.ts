import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProgram } from "../../helpers/process.js";
import type { Rig } from "../rig.js";
import { freePort } from "../../helpers/free-ports.js";
import { hasProgram, type Rival } from "./rival.js";

/** nginx with files that do not change, set up for speed: what reads of static content reach. */
export const nginx: Rival & { start(rig: Rig, fileBytes: readonly number[]): Promise<number> } = {
  name: "nginx",
  isInstalled: () => hasProgram("nginx"),
  /** Serves a file for each of `fileBytes`, named by its place; resolves with its port. */
  async start(rig, fileBytes) {
    const directory = rig.directory();
    mkdirSync(join(directory, "files"), { recursive: true });
    for (const [index, bytes] of fileBytes.entries()) writeFileSync(join(directory, "files", String(index)), Buffer.alloc(bytes, "x"));
    const port = await freePort();
    const config = join(directory, "nginx.conf");
    writeFileSync(config, configOf(directory, port));
    // Killed, it would leave its workers behind.
    rig.after(async () => {
      started.kill("SIGTERM");
      await started.ended;
    });
    const started = startProgram(rig, "nginx", ["-p", directory, "-c", config, "-e", "stderr"]);
    await started.stderrLine(/start worker process /);
    return port;
  },
};

function configOf(directory: string, port: number): string {
  // Its workers drop root's rights, and could not look into the directory then.
  const user = process.getuid?.() === 0 ? "user root;\n" : "";
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `  ${name}_temp_path ${directory}/${name};\n`)
    .join("");
  return `${user}daemon off;
worker_processes auto;
pid ${directory}/pid;
error_log stderr notice;
events { worker_connections 4096; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  open_file_cache max=10000;
${temporary}  server {
    listen 127.0.0.1:${port};
    root ${directory}/files;
  }
}
`;
}
