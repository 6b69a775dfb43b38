import assert from "node:assert/strict";
import { test } from "node:test";
import { DamageFindings } from "../../src/storage/damage-findings.js";
import { DamagedStreamError } from "../../src/storage/storage.js";
import { keptLog } from "../helpers/engine.js";

test("two streams that lack the same are told of once each, and counted until they are forgotten", () => {
  const { log, lines } = keptLog();
  const findings = new DamageFindings(log);
  for (let times = 0; times < 3; times += 1)
    for (const stream of ["a", "b"]) findings.told(new DamagedStreamError(stream, "source", "it is not there"));
  assert.deepEqual(
    lines.map(({ fields }) => fields["stream"]),
    ["a", "b"],
  );
  assert.equal(findings.streamCount, 2);
  findings.forget("a");
  assert.equal(findings.streamCount, 1);
  findings.told(new DamagedStreamError("a", "source", "it is not there"));
  assert.deepEqual([lines.length, findings.streamCount], [3, 2]);
});

test("of very many the oldest are forgotten", () => {
  const { log, lines } = keptLog();
  const findings = new DamageFindings(log);
  for (let index = 0; index < 1001; index += 1) findings.told(new DamagedStreamError(`${index}`, "file", "it is missing"));
  assert.equal(findings.streamCount, 1000);
  findings.told(new DamagedStreamError("1000", "file", "it is missing"));
  assert.equal(lines.length, 1001);
  findings.told(new DamagedStreamError("0", "file", "it is missing"));
  assert.equal(lines.length, 1002);
});

test("what echoes a finding is remembered, and not told", () => {
  const { log, lines } = keptLog();
  const findings = new DamageFindings(log);
  findings.told(new DamagedStreamError("a", "1", "first"));
  const echo = new DamagedStreamError("a", "2", "of first");
  assert.equal(
    findings.told(echo, (error, before) => error.problem.endsWith(before.problem)),
    echo,
  );
  assert.deepEqual([lines.length, findings.streamCount], [1, 1]);
});
