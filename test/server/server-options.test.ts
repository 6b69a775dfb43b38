import assert from "node:assert/strict";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { OPTIONS, type OptionName } from "../../src/options.js";
import { ownOptions, settingsOf, type ServerOptions } from "../../src/server/server-options.js";

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

test("an option that is undefined is as if it were left out", () => {
  const given: ServerOptions = { dir: "data", port: undefined, auth: undefined, log: undefined, clock: undefined };
  assert.deepEqual(settingsOf(ownOptions(given)), settingsOf({ dir: "data" }));
});

describe("options that are not an object's own", () => {
  /** As an application has its configuration: from a class, with what it needs itself beside it. */
  class Configuration {
    readonly prefix = "/v1/";
    get dir(): string {
      return "data";
    }
    get readOnly(): boolean {
      return true;
    }
    describe(): string {
      return this.dir;
    }
  }

  test("are taken: those of a class, of a prototype, and of another realm", () => {
    const ofRealm: unknown = runInNewContext("({ dir: 'data', readOnly: true, prefix: '/v1/' })");
    for (const given of [
      new Configuration(),
      Object.create(new Configuration()) as Configuration,
      Object.create({ dir: "data", readOnly: true, prefix: "/v1/" }) as ServerOptions,
      ofRealm as ServerOptions,
    ]) {
      const { prefix, readOnly } = settingsOf(ownOptions(given));
      assert.deepEqual([prefix, readOnly, ownOptions(given).dir], ["/v1/", true, "data"]);
    }
  });

  test("are read once", () => {
    let reads = 0;
    const options = ownOptions({
      get dir() {
        return `data ${(reads += 1)}`;
      },
    });
    settingsOf(options);
    assert.equal(options.dir, "data 1");
  });

  test("are refused where there are no such", () => {
    class Misspelt {
      get readonly(): boolean {
        return true;
      }
    }
    for (const given of [new Misspelt(), Object.create({ readonly: true }) as object])
      assert.throws(() => ownOptions(given as ServerOptions), /there is no option "readonly"; did you mean readOnly\?/);
  });

  test("may have others beside them that a class needs itself, and methods keep their object", () => {
    class Wide extends Configuration {
      readonly #faults: string[] = [];
      get isProduction(): boolean {
        return true;
      }
      onFault(error: Error): void {
        this.#faults.push(error.message);
      }
      get faults(): readonly string[] {
        return this.#faults;
      }
    }
    const given = new Wide();
    ownOptions(given).onFault?.(new Error("EIO"));
    assert.deepEqual(given.faults, ["EIO"]);
    const hidden = Object.defineProperty({ port: 0 }, "dir", { value: "hidden" }) as ServerOptions;
    assert.equal(ownOptions(hidden).dir, "hidden");
  });

  test("are the own where there are both", () => {
    const given = Object.assign(Object.create(new Configuration()) as object, { prefix: "/v2/" });
    assert.equal(settingsOf(ownOptions(given)).prefix, "/v2/");
  });
});
