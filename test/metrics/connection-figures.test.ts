import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionFigures } from "../../src/metrics/connection-figures.js";

test("connections that were turned away are counted by whose limit it was, from 0 on", () => {
  const figures = new ConnectionFigures();
  const counts = (): readonly number[] => figures.refusals().map(({ value }) => value);
  assert.deepEqual(counts(), [0, 0]);
  for (const crowd of ["all", "client", "all"] as const) figures.refused(crowd);
  assert.deepEqual(counts(), [2, 1]);
  assert.deepEqual(
    figures.refusals().map(({ labels }) => labels),
    [{ limit: "all" }, { limit: "client" }],
  );
});

test("connections that became none of TLS are counted by why, from 0 on", () => {
  const figures = new ConnectionFigures();
  for (const reason of ["handshake", "certificate", "certificate"] as const) figures.tlsFailed(reason);
  assert.deepEqual(
    figures.tlsFailures().map(({ labels, value }) => `${labels?.["reason"]} ${value}`),
    ["plain 0", "left 0", "handshake 1", "certificate 2"],
  );
});
