// A program that upgrades the directory of its argument to a made-up format, and halts in the middle of the step.

import { upgrade } from "../../src/cli/upgrade.js";
import { UPGRADE_TARGET } from "../../src/storage/file/upgrade/upgrade-steps.js";
import { parseCommand } from "../../src/cli/config.js";
import { madeUpTarget } from "./made-up-format.js";

const [dir = ""] = process.argv.slice(2);
const verb = { name: "upgrade", summary: "", run: upgrade };
const command = parseCommand([dir], {}, [verb]);
if (command.kind !== "run") throw new Error("the command was not understood");

let changes = 0;
const target = madeUpTarget(async () => {
  changes += 1;
  if (changes < 2) return;
  process.stdout.write(`halted on the way from ${UPGRADE_TARGET.format}\n`);
  // Kept alive until it is killed.
  await new Promise(() => setInterval(() => undefined, 60_000));
});
await upgrade({ ...command, version: "" }, process, target);
