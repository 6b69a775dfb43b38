import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AuthFile } from "../helpers/auth-file.js";
import { parseCommand } from "../../src/cli/config.js";
import { healthcheckOf, instructionsOf, only, wordsOf } from "./dockerfile.js";
import { Image, lacksRoots, packedProject } from "./image.js";

const INSTRUCTIONS = instructionsOf(new URL("../../docs/Dockerfile", import.meta.url));
const TIMEOUT_MS = 900_000;

describe("docs/Dockerfile", () => {
  test("has a Node that streamdir runs on, a user who is not root, and a command that is one", () => {
    const [, version = ""] = /^node:(\d+)-slim$/.exec(only(INSTRUCTIONS, "FROM")) ?? [];
    assert.ok(Number(version) >= 22, "a Node that is maintained");
    assert.match(only(INSTRUCTIONS, "USER"), /^[1-9]\d*:[1-9]\d*$/, "by number: Kubernetes knows no names");
    const [program, ...args] = wordsOf(only(INSTRUCTIONS, "CMD"));
    const command = parseCommand(args, {}, [{ name: "serve", summary: "", run: async () => 0 }]);
    assert.equal(program, "streamdir");
    assert.ok(command.kind === "run", JSON.stringify(command));
    assert.equal(command.dir, only(INSTRUCTIONS, "VOLUME"));
    const port = command.settings.listen.split(":").at(-1);
    assert.equal(only(INSTRUCTIONS, "EXPOSE"), port);
    assert.ok(healthcheckOf(only(INSTRUCTIONS, "HEALTHCHECK")).at(-1)?.includes(`http://127.0.0.1:${port}/readyz`));
  });

  test(
    "makes a server that runs as another user on a read-only root, and says how it is",
    { skip: lacksRoots(), timeout: TIMEOUT_MS },
    async (t) => {
      const file = new AuthFile();
      const headers = { Authorization: `Bearer ${file.token("owner", [{ streams: ["**"], allow: ["create", "append", "read"] }])}` };
      file.write();
      const image = await Image.build(t, INSTRUCTIONS, await packedProject());
      await image.close({ "/etc/streamdir/auth.json": file.path });
      assert.equal((await image.healthcheck()).status, 1, "nothing runs yet");

      const ask = async (method: string, body: string | null): Promise<string> => {
        const options = { method, body, headers: { ...headers, "Content-Type": "text/plain" } };
        const script = `const answer = await fetch("http://127.0.0.1:4437/v1/stream/a/b", ${JSON.stringify(options)}); console.log(answer.status, await answer.text())`;
        const { status, stdout, stderr } = await image.run(["node", "--input-type=module", "-e", script]);
        assert.equal(status, 0, stderr);
        return stdout.trim();
      };
      for (const life of [1, 2]) {
        const server = image.start();
        await server.stdoutLine(/http:/).catch(async () => assert.fail((await server.ended).stderr));
        const healthy = await image.healthcheck();
        assert.equal(healthy.status, 0, healthy.stderr);
        if (life === 1) assert.equal(await ask("PUT", "kept"), "201");
        assert.equal(await ask("GET", null), "200 kept");
        server.kill("SIGTERM");
        const { status, stderr } = await server.ended;
        assert.deepEqual([status, stderr.split("\n").filter((line) => /"(warn|error)"/.test(line))], [0, []], stderr);
      }
      assert.equal((await image.healthcheck()).status, 1, "it has ended");

      assert.equal((await image.run(["id", "-u"])).stdout, "1000\n");
      const manual = await image.run(["sh", "-c", 'test -s "$(npm prefix --global)/share/man/man1/streamdir.1"']);
      assert.equal(manual.status, 0, "the manual page is where man looks for it");
      const { stdout } = await image.run(["sh", "-c", 'dirname "$(readlink -f "$(command -v streamdir)")"']);
      for (const place of [stdout.trim(), "/tmp", "/etc/streamdir"]) {
        const { status, stderr } = await image.run(["touch", `${place}/written`]);
        assert.ok(status !== 0 && /Read-only|Permission denied/.test(stderr), `${place}: ${stderr}`);
      }
    },
  );
});
