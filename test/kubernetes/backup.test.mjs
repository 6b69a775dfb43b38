import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { parseDocument } from "yaml";
import { startProgram, startStreamdir } from "../helpers/process.ts";
import { RealServer } from "../helpers/real-server.ts";
import { tempDir } from "../helpers/temp-dir.ts";
import { faultsOf, objects } from "./manifest.mjs";

const GUIDE = readFileSync(new URL("../../docs/containers.md", import.meta.url), "utf8");
const STREAMDIR = [
  process.execPath,
  "--import",
  import.meta.resolve("tsx"),
  fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url)),
];
const TEXT = { "Content-Type": "text/plain" };

/** The examples of docs/containers.md: the container and the volume of a backup, its claim, and the pod that restores. */
const [[sidecar], [volume], claim, restore] = [...GUIDE.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text]) => parseDocument(text).toJS());

/** A directory with a program `streamdir` in it, which is this one. */
function program() {
  const [dir, line] = [tempDir(), STREAMDIR.map((word) => `'${word}'`).join(" ")];
  writeFileSync(join(dir, "streamdir"), `#!/bin/sh\nexec ${line} "$@"\n`);
  chmodSync(join(dir, "streamdir"), 0o755);
  return { PATH: `${dir}:${process.env.PATH}` };
}

describe("a backup as docs/containers.md has it", () => {
  const set = objects().get("StatefulSet");
  const pod = set.spec.template.spec;
  const [server] = pod.containers;
  const scriptOf = ({ args }, places) => {
    const [shell, flags, script] = args;
    return [shell, flags, Object.entries(places).reduce((text, [place, path]) => text.replaceAll(place, path), script)];
  };

  test("is of the schemas of Kubernetes, and fits docs/kubernetes.yaml", () => {
    for (const object of [claim, restore]) assert.deepEqual(faultsOf(object), []);
    pod.containers.push(sidecar);
    pod.volumes.push(volume);
    assert.deepEqual(faultsOf(set), []);
    const [{ metadata }] = set.spec.volumeClaimTemplates;
    const claims = restore.spec.volumes.map(({ persistentVolumeClaim }) => persistentVolumeClaim.claimName);
    assert.deepEqual(claims, [`${metadata.name}-${set.metadata.name}-0`, claim.metadata.name]);
    assert.equal(volume.persistentVolumeClaim.claimName, claim.metadata.name);
    assert.deepEqual(sidecar.volumeMounts[0], server.volumeMounts[0], "the same directory");
    for (const container of [sidecar, restore.spec.containers[0]]) assert.equal(container.image, server.image);
    assert.deepEqual(sidecar.securityContext, server.securityContext);
    const { seccompProfile: _, ...user } = pod.securityContext;
    assert.deepEqual(restore.spec.securityContext, user);
  });

  test("is made beside the server by its container, which ends when it is told to", async (t) => {
    const origin = new RealServer(t, []);
    await origin.start();
    await origin.ask("PUT", "a/b", { headers: TEXT, body: "kept" });
    const places = { "/data": origin.dir, "/backup/streams": join(tempDir(), "streams"), 86400: "0.01" };
    const [shell, ...args] = scriptOf(sidecar, places);
    const loop = startProgram(t, shell, args, { env: program() });
    await loop.stdoutLine(/streams with files/);
    loop.kill("SIGTERM");
    await loop.ended;
    assert.equal((await origin.stop()).status, 0);
  });

  test("is restored to a volume that holds something, once, and served", async (t) => {
    const [backup, data] = [tempDir(), tempDir()];
    const origin = new RealServer(t, []);
    await origin.start();
    await origin.ask("PUT", "a/b", { headers: TEXT, body: "kept" });
    assert.equal((await startStreamdir(t, ["backup", origin.dir, join(backup, "streams")]).ended).status, 0);
    await origin.ask("PUT", "later", { headers: TEXT });
    assert.equal((await origin.stop()).status, 0);
    const run = () => {
      const [shell, ...args] = scriptOf(restore.spec.containers[0], { "/data": data, "/backup": backup });
      return startProgram(t, shell, args, { env: program() }).ended;
    };
    mkdirSync(join(data, "lost+found"));
    writeFileSync(join(data, "left"), "");
    const { status, stdout, stderr } = await run();
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^nothing wrong in 1 streams/);
    assert.ok(existsSync(join(data, ".before/left")) && existsSync(join(data, "lost+found")));
    const restored = new RealServer(t, [], data);
    await restored.start();
    assert.equal((await restored.ask("GET", "a/b")).body, "kept");
    assert.equal((await restored.ask("GET", "later")).status, 404);
    assert.equal((await restored.stop()).status, 0);
    assert.notEqual((await run()).status, 0, "what was there first is not written over");
  });
});
