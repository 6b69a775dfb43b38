import assert from "node:assert/strict";
import test, { after } from "node:test";
import { Producer } from "../../../../src/cli/client/append/producer.js";
import { HttpClient, type Client } from "../../../../src/cli/client/remote/http-client.js";
import { RemoteServer } from "../../../../src/cli/client/remote/remote-server.js";
import { parseServer } from "../../../../src/cli/client/remote/server-address.js";
import { VerbServer } from "../../../helpers/client-verb.js";

const server = new VerbServer({ after });

test("a producer whose answers get lost stores each append once, and its closure", async () => {
  const address = parseServer(await server.url(), null);
  assert.ok(!("fault" in address));
  const { signal } = new AbortController();
  const client = new HttpClient({ address, token: null, certificate: null, userAgent: "test", connections: 1, signal });
  let asked = 0;
  const forgetful: Client = {
    // Every second answer is lost on its way, after the server has done what was asked.
    ask: async (request) => {
      const heard = await client.ask(request);
      asked += 1;
      return asked % 2 === 1 ? { kind: "silence", why: "ECONNRESET" } : heard;
    },
    close: () => client.close(),
  };
  const said: string[] = [];
  const remote = new RemoteServer({
    client: forgetful,
    clock: { nowMs: () => 0, after: (_, run) => (setImmediate(run), { cancel: () => {} }) },
    random: () => 0,
    name: "it",
    showsCertificate: false,
    prefix: address.prefix,
    patienceMs: 1000,
    say: (line) => said.push(line),
    signal,
  });
  await server.done(["create", "s", "--type", "text/plain"]);
  const producer = new Producer(remote, "s", "text/plain", { id: "p", epoch: 0, seq: 0 });
  for (const text of ["a", "b", "c"]) assert.equal((await producer.append(Buffer.from(text), false, "s")).kind, "answer");
  assert.equal((await producer.append(Buffer.alloc(0), true, "s")).kind, "answer");
  assert.equal(asked, 8);
  assert.equal(producer.place.seq, 4);
  assert.equal(await server.done(["cat", "s"]), "abc");
  assert.match(await server.done(["info", "s"]), /closed/);
  assert.equal(said.length, 8);
  const late = await producer.append(Buffer.from("d"), false, "s");
  assert.ok(late.kind === "failure" && late.status === 65 && late.code === "stream-closed");
  client.close();
});
