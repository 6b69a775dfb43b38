import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { mountOf } from "../../../src/http/request/mount.js";

const CASES: Readonly<Record<string, readonly [originalUrl: unknown, path: string, mount: string]>> = {
  "the path before": ["/api/v1/stream/a", "/v1/stream/a", "/api"],
  "the path before, without queries": ["/api/v1/stream/a?offset=-1", "/v1/stream/a", "/api"],
  "the path before, as it was sent": ["/API/%41/v1/stream/a", "/v1/stream/a", "/API/%41"],
  "the path before of a whole URL": ["http://a/api/v1/stream/a", "/v1/stream/a", "/api"],
  "all of it where nothing is left": ["/api", "/", "/api"],
  "all but its last slash": ["/api/", "/", "/api"],
  "nothing where nothing was taken off": ["/v1/stream/a", "/v1/stream/a", ""],
  "nothing of a path that was written anew": ["/chat/42", "/v1/stream/42", ""],
  "nothing of what is no path": ["*@evil/v1/stream/a", "/v1/stream/a", ""],
  "nothing without the original": [undefined, "/v1/stream/a", ""],
  "nothing where that is no text": [7, "/v1/stream/a", ""],
};

describe("a handler is mounted at", () => {
  for (const [title, [originalUrl, path, mount]] of Object.entries(CASES))
    test(title, () => assert.equal(mountOf(originalUrl === undefined ? {} : { originalUrl }, path), mount));
});
