// Backs up a directory, and ends as by `kill -9` ahead of the call to the file system with the number that is given.

import { filesWith, makeBackup } from "../helpers/backup.js";

const [dir = "", dest = "", calls = ""] = process.argv.slice(2);
let count = 0;
const files = filesWith(() => {
  count += 1;
  if (count === Number(calls)) process.kill(process.pid, "SIGKILL");
});
await makeBackup(dir, dest, { files });
console.log(`${count} calls`);
