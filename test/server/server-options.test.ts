import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "node:test";
import { OPTIONS, type OptionName } from "../../src/options.js";
import { settingsOf } from "../../src/server/server-options.js";

/** Those that are paths of files. */
const FILES: readonly OptionName[] = ["auth", "tlsCert", "tlsKey", "clientCa", "natsCreds"];

test("paths of files are whole, and none where none is given", () => {
  const names = Object.keys(OPTIONS).filter((name) => OPTIONS[name as OptionName].kind === "file"); // its own names
  assert.deepEqual(names.sort(), [...FILES].sort());
  const given = Object.fromEntries(FILES.map((name) => [name, `./${name}.pem`]));
  const cluster = { storage: "nats://127.0.0.1/chats" };
  const [settings, defaults] = [settingsOf({ ...cluster, ...given }), settingsOf(cluster)];
  for (const name of FILES) {
    assert.equal(settings[name], resolve(`${name}.pem`));
    assert.equal(defaults[name], "");
  }
});
