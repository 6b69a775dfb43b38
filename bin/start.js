"use strict";
// A journal sync must never wait for a thread. CommonJS, because loading an ES module starts the pool at its old size.
process.env.UV_THREADPOOL_SIZE ??= "32";

/** Ends with 1 and one line. */
function refuse(line) {
  process.stderr.write(`streamdir: ${line}\n`);
  process.exitCode = 1;
}

if (require("node:fs").existsSync(`${__dirname}/../dist/cli/main.js`)) {
  import("../dist/cli/main.js").catch((error) => {
    // All modules are opened at once.
    if (error.code !== "EMFILE" && error.code !== "ENFILE") throw error;
    refuse(`too few files can be opened here (${error.code}): raise the limit, for instance with ulimit -n 1024`);
  });
} else {
  // A clone has what it is built of.
  const isClone = require("node:fs").existsSync(`${__dirname}/../src`);
  refuse(
    isClone
      ? "dist/ is missing here: run npm run build"
      : "dist/ is missing here: it was installed without being built; allow its prepare script, or install what npm pack makes in a clone",
  );
}
