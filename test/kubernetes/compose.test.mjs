import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parseCommand } from "../../src/cli/config.ts";
import { instructionsOf, only, wordsOf } from "../containers/dockerfile.ts";
import { FILE, composition, faultsOf } from "./compose.mjs";

const INSTRUCTIONS = instructionsOf(new URL("../../docs/Dockerfile", import.meta.url));
const GUIDE = readFileSync(new URL("../../docs/containers.md", import.meta.url), "utf8");
const CADDYFILE = readFileSync(new URL("../../docs/Caddyfile", import.meta.url), "utf8");
/** What a stop takes beyond its options, to write out what is not in the streams' files yet: README, Options. */
const WRITING_MS = 5000;

describe("docs/compose.yaml", () => {
  const found = composition();
  const { streamdir, caddy } = found.services;
  const [program, ...args] = wordsOf(only(INSTRUCTIONS, "CMD"));
  const command = parseCommand(args, streamdir.environment, [{ name: "serve", summary: "", run: async () => 0 }]);
  const mounts = ({ volumes }) =>
    volumes.map((text) => {
      const [from, to, mode = "rw"] = text.split(":");
      return { from, to, mode };
    });

  test("is as the Compose specification has it", () => assert.deepEqual(faultsOf(found), []));

  test("runs the image's command with variables that are options, and trusts its own network", () => {
    assert.deepEqual(Object.keys(found.services), ["streamdir", "caddy"]);
    assert.deepEqual([program, command.kind], ["streamdir", "run"], JSON.stringify(command));
    const [{ subnet }, ...more] = found.networks.streams.ipam.config;
    assert.deepEqual([command.settings.trustProxy, more], [subnet, []]);
    assert.deepEqual([streamdir.networks, caddy.networks], [["streams"], ["streams"]]);
  });

  test("is reached through Caddy alone, which finds it by what docs/Caddyfile reads", () => {
    assert.deepEqual([streamdir.ports, streamdir.network_mode, streamdir.command], [undefined, undefined, undefined]);
    const read = [...CADDYFILE.matchAll(/\{\$(\w+):/g)].map(([, name]) => name);
    assert.deepEqual(Object.keys(caddy.environment).sort(), read.sort());
    assert.equal(caddy.environment.STREAMS_UPSTREAM, `streamdir:${command.settings.listen.split(":").at(-1)}`);
  });

  test("mounts what is there: volumes, a file beside it, and the directory that the guide makes", () => {
    assert.deepEqual(mounts(streamdir), [
      { from: "streams", to: command.dir, mode: "rw" },
      { from: "./auth", to: command.settings.auth.replace(/\/auth\.json$/, ""), mode: "ro" },
    ]);
    assert.match(GUIDE, /^mkdir auth\nstreamdir token add --auth auth\/auth\.json /m);
    for (const { from } of [...mounts(streamdir), ...mounts(caddy)]) {
      if (!from.startsWith("./")) assert.ok(from in found.volumes, `${from} is a volume`);
      else if (from !== "./auth") assert.ok(existsSync(new URL(from, FILE)), `docs has ${from}`);
    }
    const copied = /^mkdir streams && cp (.*) streams && cd streams$/m.exec(GUIDE)?.[1].split(" ");
    assert.deepEqual(copied, ["docs/compose.yaml", "docs/Caddyfile"]);
  });

  test("stops for longer than a stop takes, on a read-only root without rights, under a name that stays", () => {
    const [, seconds] = /^(\d+)s$/.exec(streamdir.stop_grace_period);
    assert.ok(Number(seconds) * 1000 >= command.settings.shutdownDelayMs + command.settings.shutdownTimeoutMs + WRITING_MS);
    assert.deepEqual([streamdir.read_only, streamdir.cap_drop, streamdir.security_opt], [true, ["ALL"], ["no-new-privileges:true"]]);
    assert.ok(streamdir.hostname !== undefined && streamdir.user === undefined);
    assert.deepEqual([streamdir.restart, caddy.restart], ["unless-stopped", "unless-stopped"]);
  });
});

test("a Compose file with a wrong value, and one with an unknown field are found", () => {
  const change = (how) => {
    const object = composition();
    how(object);
    return faultsOf(object).join("\n");
  };
  assert.match(
    change((object) => (object.services.streamdir.read_only = "yes")),
    /read_only must be boolean/,
  );
  assert.match(
    change((object) => (object.services.caddy.port = "80:80")),
    /"port"/,
  );
  assert.match(
    change((object) => (object.networks.streams.ipam.config[0].net = "10.0.0.0/8")),
    /"net"/,
  );
});
