import assert from "node:assert/strict";
import test from "node:test";
import { bash, Page, servePage, STREAMDIR_IN_SHELL } from "../helpers/page-examples.js";

const [copy = "", follow = "", place = ""] = new Page("docs/compare.md").blocksUnder("Moving from another server of Durable Streams");
const OLD_URL = "http://old.example.org:4437/v1/stream/";

test("the commands that move streams from another server do so", async (t) => {
  const [oldUrl, newUrl] = [await servePage(t), await servePage(t)];
  const run = (script: string, url = newUrl): Promise<string> =>
    bash(`${STREAMDIR_IN_SHELL}export STREAMDIR_URL=${url}\n${script.replace(OLD_URL, oldUrl).replaceAll(/^#= .*\n/gm, "")}`);
  const append = `for n in 1 2; do streamdir append chats/$n --create --json --close <<< '[1,2]'; done
    for n in 42 43; do printf 'one\\ntwo\\nthree\\n' | streamdir append jobs/$n --create --lines --close; done`;
  await run(append, oldUrl);
  assert.equal(await run(copy), "imported  chats/1\nimported  jobs/42\n");
  await run(follow);
  assert.equal(await run("streamdir cat chats/2; streamdir cat jobs/43"), "[1,2]\none\ntwo\nthree\n");
  const [, forked = "", read = ""] = /([^]*?)(streamdir cat [^]*)/.exec(place) ?? [];
  const { nextOffset } = JSON.parse(await run(forked));
  assert.equal(await run(read.replace(/\d{16}_\d{16}/, nextOffset)), "three\n");
});
