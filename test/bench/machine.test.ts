import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { test } from "node:test";
import { lackOfConnections, lackOfDisk, lackOfMemoryFigures, openFilesIn } from "./machine.js";

test("the limit of open files is the soft one, and none where the system tells none", () => {
  const head = "Limit                     Soft Limit           Hard Limit           Units     \n";
  assert.equal(
    openFilesIn(
      `${head}Max processes             100                  100                  processes\nMax open files            1024                 524288               files     \n`,
    ),
    1024,
  );
  assert.equal(openFilesIn(`${head}Max open files            unlimited            unlimited            files     \n`), Infinity);
  assert.equal(openFilesIn(""), Infinity);
});

test("what the machine lacks is said with how much there is", () => {
  assert.equal(lackOfConnections(1), null);
  assert.equal(lackOfDisk(1), null);
  assert.match(lackOfDisk(2 ** 80, tmpdir())?.notAsked ?? "", /^needs \d+\.0 GiB of disk, and \d+\.\d GiB are free$/);
  assert.equal(lackOfMemoryFigures("Name:\tnode\nVmRSS:\t   12345 kB\n"), null);
  assert.match(lackOfMemoryFigures("")?.notAsked ?? "", /memory of a process/);
});
