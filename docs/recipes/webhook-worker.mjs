// Works through a webhook inbox, in order, and goes on where it was: node webhook-worker.mjs NAME. It keeps its offset in
// the file NAME.offset; a delivery that was handled when the worker died is handled again, so let that do no harm.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const STREAMS = process.env.STREAMS ?? "http://127.0.0.1:4437/v1/stream/";
/** A token for a server with --auth; without, there is none. */
const AUTH = process.env.STREAMDIR_TOKEN ? { Authorization: `Bearer ${process.env.STREAMDIR_TOKEN}` } : {};
const [name] = process.argv.slice(2);
if (name === undefined) throw new Error("node webhook-worker.mjs NAME: the name of an inbox");
const file = `${name}.offset`;

/** In the place of your work. */
async function handle({ id, payload }) {
  console.log(`${id} ${JSON.stringify(payload)}`);
}

/** Whole or not at all: half an offset would be none. */
function keep(offset) {
  writeFileSync(`${file}.new`, offset, { flush: true });
  renameSync(`${file}.new`, file);
}

let offset = existsSync(file) ? readFileSync(file, "utf8") : "-1";
for (;;) {
  // Waits until there is something: half a minute, and then once more.
  const url = `${STREAMS}inbox/${name}?live=long-poll&offset=${offset}`;
  const answer = await fetch(url, { headers: AUTH }).catch(() => null);
  // An answer can break off in its middle, too.
  const deliveries = answer?.status === 200 ? await answer.json().catch(() => null) : [];
  // Retention has removed what was next, or the inbox was deleted and made anew.
  const earliest = answer?.status === 410 ? answer.headers.get("Stream-Earliest-Offset") : null;
  if (earliest !== null) console.error(`what came before ${earliest} is gone: going on there`);
  else if (deliveries === null || ![200, 204].includes(answer?.status)) {
    console.error(`${deliveries === null ? "no whole answer" : (answer?.status ?? "no answer")}; again in a second`);
    await sleep(1000);
    continue;
  }
  for (const delivery of deliveries) await handle(delivery);
  offset = earliest ?? answer.headers.get("Stream-Next-Offset");
  keep(offset);
}
