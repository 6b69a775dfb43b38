// "Another password, without an outage" of docs/cluster.md.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../helpers/real-server.js";
import { PermittedServer, type Change } from "./permitted-server.js";

const TEXT = { "Content-Type": "text/plain" };
/** What a front end says whose server has gone, or refuses it. */
const TROUBLE = / error |connection to the NATS cluster is lost|trying another|reports a fault/;
/** The one user of the page, with what comes after it. */
const USER = /users: \[(\s*\{\s*user: streamdir\s*password: "known"[^]*?\n {4}\})/;

/** The user's settings with another name and password. */
function second(settings: string): string {
  return settings.replace("user: streamdir", "user: streamdir2").replace('"known"', '"new"');
}

const added: Change = (whole) => whole.replace(USER, (all, user: string) => `${all}${second(user)}`);
const replaced: Change = (whole) => whole.replace(USER, (all, user: string) => all.replace(user, second(user)));

test("a second user takes the place of the first: each front end goes on until it is restarted", { timeout: 120_000 }, async (t) => {
  const server = await PermittedServer.start(t, 3);
  const old = await server.serve(t);
  assert.equal((await ask(`${old.url}s`, "PUT", { headers: TEXT, body: "0;" })).status, 201);
  const append = async ({ url }: { readonly url: string }, text: string): Promise<void> => {
    assert.equal((await ask(`${url}s`, "POST", { headers: TEXT, body: text })).status, 204);
  };

  await server.change(added);
  await append(old, "1;");
  const anew = await server.serve(t, "streamdir2:new");
  await append(anew, "2;");
  await append(old, "3;");
  assert.doesNotMatch(old.process.stderrText(), TROUBLE);
  old.process.kill("SIGTERM");
  assert.equal((await old.process.ended).status, 0);

  const forgotten = await server.serve(t);
  await server.change(replaced);
  await forgotten.process.stderrLine(/Authorization Violation|Authentication Revoked/i);
  await append(anew, "4;");
  assert.equal((await ask(`${anew.url}s`, "GET")).body, "0;1;2;3;4;");
  assert.doesNotMatch(anew.process.stderrText(), TROUBLE);
});
