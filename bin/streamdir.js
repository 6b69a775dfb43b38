#!/usr/bin/env node
"use strict";
// A journal sync must never wait for a thread. CommonJS, because loading an ES module starts the pool at its old size.
process.env.UV_THREADPOOL_SIZE ??= "32";

if (require("node:fs").existsSync(`${__dirname}/../dist/cli/main.js`)) {
  import("../dist/cli/main.js");
} else {
  process.stderr.write("streamdir: dist/ is missing here: run npm run build\n");
  process.exitCode = 1;
}
