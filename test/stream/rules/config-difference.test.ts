import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseOffset } from "../../../src/protocol/offset.js";
import type { StreamConfig } from "../../../src/storage/storage.js";
import type { CreateHead, ForkRequest } from "../../../src/stream/rules/command.js";
import { refuseConfig } from "../../../src/stream/rules/config-difference.js";
import { configOf } from "../../helpers/engine.js";
import { tokenIn } from "../../helpers/tokens.js";

const ZERO = "0000000000000000_0000000000000000";
const ORIGIN = { name: "source", id: "i", point: 5, earliest: { position: 0, segmentStart: 0 }, offset: ZERO, subOffset: 5 };
const HEAD: CreateHead = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, closed: false, fork: null };

function requestOf(more: Partial<ForkRequest> = {}): ForkRequest {
  const { offset = null } = more;
  return { source: "source", offset, place: offset === null ? null : parseOffset(offset), subOffset: 0, ...more };
}

/** The headers that a refusal names; none where there is no refusal. */
function differing(config: StreamConfig, head: Partial<CreateHead>, closed = false): string {
  const { differs = [] } = refuseConfig(config, closed, { ...HEAD, ...head })?.facts ?? {};
  return Array.isArray(differs) ? differs.join(" ") : "";
}

describe("a PUT on a stream that is there", () => {
  const config = configOf({ contentType: "text/plain; charset=utf-8", ttlSeconds: 60, expiresAtMs: null });
  const cases: readonly [what: string, head: Partial<CreateHead>, closed: boolean, differs: string][] = [
    ["asks for the same", { contentType: "text/plain; charset=utf-8" }, false, ""],
    ["may leave parameters out and use other case", { contentType: "TEXT/Plain" }, false, ""],
    ["asks for another content type", { contentType: "text/html" }, false, "Content-Type"],
    ["asks for the default content type", { contentType: null }, false, "Content-Type"],
    ["asks for another TTL", { ttlSeconds: 61 }, false, "Stream-TTL"],
    ["asks for none", { ttlSeconds: null }, false, "Stream-TTL"],
    ["asks for an expiry", { expiresAtMs: 5 }, false, "Stream-Expires-At"],
    ["asks for an expiry in the place of a TTL", { ttlSeconds: null, expiresAtMs: 5 }, false, "Stream-TTL Stream-Expires-At"],
    ["finds it closed", {}, true, "Stream-Closed"],
    ["asks for it closed and finds it so", { closed: true }, true, ""],
    ["asks for it closed and finds it open", { closed: true }, false, "Stream-Closed"],
    ["asks for all of it otherwise", { contentType: "a/b", ttlSeconds: 1, closed: true }, false, "Content-Type Stream-TTL Stream-Closed"],
  ];
  for (const [what, head, closed, differs] of cases) {
    test(`${what}: ${differs === "" ? "200" : differs}`, () =>
      assert.equal(differing(config, { ttlSeconds: 60, ...head }, closed), differs));
  }

  test("is told what is there and what it asked for", () => {
    const refusal = refuseConfig(config, true, { contentType: "text/html", ttlSeconds: null, expiresAtMs: 0, closed: false, fork: null });
    assert.equal(
      refusal?.detail,
      "The stream differs in Content-Type (text/plain; charset=utf-8 there, text/html asked for), Stream-TTL (60 there, none asked for), Stream-Expires-At (none there, 1970-01-01T00:00:00.000Z asked for), Stream-Closed (true there, none asked for).",
    );
  });

  test("is not told another stream's name", () => {
    const fork = configOf({ contentType: "text/plain", forkedFrom: { ...ORIGIN, name: "secret" } });
    assert.equal(refuseConfig(fork, false, { ...HEAD, fork: requestOf() })?.detail, "The stream differs in Stream-Forked-From.");
  });
});

describe("a repeated PUT of a fork", () => {
  const config = configOf({ contentType: "text/plain", ttlSeconds: 60, forkedFrom: ORIGIN });
  const same = { offset: ZERO, subOffset: 5 };
  const table: [what: string, request: Partial<ForkRequest>, command: Partial<CreateHead>, matches: boolean][] = [
    ["in the same words", same, {}, true],
    ["that names the point itself", { offset: tokenIn("i", 5) }, {}, true],
    ["of another source", { ...same, source: "other" }, {}, false],
    ["at another offset", { offset: tokenIn("i", 4) }, {}, false],
    ["at another sub-offset", { ...same, subOffset: 4 }, {}, false],
    ["of the tail", {}, {}, false],
    ["with the inherited content type and lifetime", same, { contentType: "text/plain", ttlSeconds: 60 }, true],
    ["with another content type", same, { contentType: "text/html" }, false],
    ["with another lifetime", same, { ttlSeconds: 61 }, false],
  ];
  for (const [what, request, command, matches] of table) {
    test(`${what} ${matches ? "finds its fork" : "asks for another stream"}`, () => {
      assert.equal(differing(config, { ...command, fork: requestOf(request) }) === "", matches);
    });
  }

  test("of the tail finds its fork, wherever the source's tail is by now", () => {
    const atTail = configOf({ forkedFrom: { ...ORIGIN, offset: null, subOffset: 0 } });
    assert.equal(differing(atTail, { contentType: null, fork: requestOf() }), "");
  });

  test("finds no fork in a stream that is none", () =>
    assert.equal(differing(configOf(), { contentType: null, fork: requestOf() }), "Stream-Forked-From"));
});
