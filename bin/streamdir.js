#!/usr/bin/env node
"use strict";
// In words that any Node understands: an old one must get as far as the refusal. `engines` in package.json says the same.
var version = process.versions.node.split(".");
if (version[0] > 20 || (version[0] === "20" && version[1] >= 15)) {
  require("./start.js");
} else {
  process.stderr.write(
    "streamdir: Node " + process.versions.node + " is too old: streamdir needs Node 20.15 or newer\n"
  );
  // EX_USAGE: to start it again helps nothing, and the unit of `streamdir systemd` does not.
  process.exitCode = 64;
}
