import assert from "node:assert/strict";
import { test } from "node:test";
import { requestsOf } from "../../src/page/about.js";

/** What a link that somebody else made may have in it, and what it would do behind a quote of any kind. */
const EVIL = `-1';id;'";alert(1);"\n$(id)\`id\``;

test("requests to copy end no quotes, whatever the place in a link says", () => {
  for (const query of [{ at: EVIL }, { since: EVIL }, { last: EVIL }]) {
    const requests = requestsOf(new URL("http://localhost:4437/v1/stream/a'b"), query, false, "text/plain");
    for (const [title, code] of requests) {
      if (title === "With the official client") continue;
      assert.doesNotMatch(code, /;id|alert\(1\)"|\$\(id\)|`id`/, title);
      for (const line of code.split("\n").filter((one) => one.includes("curl"))) assert.equal(line.split("'").length % 2, 1, line);
    }
    const client = requests.find(([title]) => title === "With the official client")?.[1] ?? "";
    assert.ok(client.includes(`offset: ${JSON.stringify("at" in query ? EVIL : "-1")}, live`), client);
  }
});
