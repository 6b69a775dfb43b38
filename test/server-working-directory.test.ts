import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createServer } from "../src/server.js";
import { AuthFile } from "./helpers/auth-file.js";
import { startNode } from "./helpers/process.js";
import { tempDir } from "./helpers/temp-dir.js";

/** Starts a server by relative paths, goes to `elsewhere` at once, and then uses all that the paths name. */
const PROGRAM = `
  import { readdirSync } from "node:fs";
  import { createServer } from ${JSON.stringify(new URL("../src/index.ts", import.meta.url).href)};
  const [elsewhere] = process.argv.slice(1);
  const starting = createServer({
    dir: "data", auth: "auth.json", listen: "127.0.0.1:0,unix:s.sock", adminListen: "unix:admin.sock", logLevel: "silent",
  });
  process.chdir(elsewhere);
  const server = await starting;
  const headers = { Authorization: \`Bearer \${process.env.TOKEN}\` };
  const text = await (await fetch(\`\${server.url}a\`, { headers })).text();
  const { status } = await fetch(\`\${server.url}b\`, { method: "PUT", headers, body: "made later" });
  const isReloaded = await server.reload();
  const made = readdirSync(".");
  await server.close();
  const sockets = [server.listening[1], ...server.adminListening];
  console.log(JSON.stringify({ text, status, isReloaded, sockets, made }));
`;

test("relative paths are those of the working directory at the start, also after chdir", async (context) => {
  const auth = new AuthFile();
  const token = auth.token("owner", [{ streams: ["**"], allow: ["read", "create"] }]);
  auth.write();
  const cwd = dirname(auth.path);
  const before = await createServer({ dir: join(cwd, "data"), port: 0, logLevel: "silent" });
  await fetch(`${before.url}a`, { method: "PUT", body: "there before" });
  await before.close();
  const args = ["--import", import.meta.resolve("tsx"), "--input-type=module", "--eval", PROGRAM, tempDir()];
  const { status, stdout, stderr } = await startNode(context, args, { cwd, env: { TOKEN: token } }).ended;
  assert.deepEqual([status, stderr], [0, ""]);
  const sockets = [`unix:${join(cwd, "s.sock")}`, `unix:${join(cwd, "admin.sock")}`];
  assert.deepEqual(JSON.parse(stdout), { text: "there before", status: 201, isReloaded: true, sockets, made: [] });
  assert.deepEqual(readdirSync(cwd).sort(), ["auth.json", "data"]);
});
