import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { refusalOfVariables } from "../../../src/cli/command/variables.js";

describe("environment variables", () => {
  const rows: readonly [env: Readonly<Record<string, string>>, hint: string | null][] = [
    [{}, null],
    [{ STREAMDIR_URL: "http://a", STREAMDIR_TOKEN: "x", STREAMDIR_READ_ONLY: "1" }, null],
    [{ PATH: "/bin", STREAM_URL: "http://a", STREAMDIRECTORY: "x" }, null],
    [{ STREAMDIR_SERVER: "http://a" }, "did you mean STREAMDIR_URL?"],
    [{ STREAMDIR_URI: "http://a" }, "did you mean STREAMDIR_URL?"],
    [{ STREAMDIR_TOKN: "x" }, "did you mean STREAMDIR_TOKEN?"],
    [{ STREAMDIR_QUUX: "x" }, "streamdir --help lists them"],
  ];
  for (const [env, hint] of rows) {
    const names = Object.keys(env).join(", ");
    test(`${names === "" ? "none" : names}: ${hint ?? "taken"}`, () =>
      assert.equal(refusalOfVariables(env), hint === null ? null : `unknown environment variable "${names}"; ${hint}`));
  }
});
