import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { Page } from "../helpers/page-examples.js";
import { startStreamdir, type TestProcess, type TestScope } from "../helpers/process.js";
import { until } from "../helpers/until.js";
import { HERE } from "./front-end.js";
import { NatsCluster } from "./nats-cluster.js";

/** What is changed in the configuration of a server's users. */
export type Change = (authorization: string) => string;

/** The user of docs/cluster.md, with the permissions of the bucket `chats`, changed. */
export function authorizationFor(change: Change): string {
  const [authorization = ""] = new Page("docs/cluster.md").blocksUnder("Who may do what in NATS");
  const changed = change(authorization);
  assert.notEqual(changed, authorization);
  return changed;
}

/** A NATS server with the user of docs/cluster.md, whose permissions change while it runs. */
export class PermittedServer {
  readonly #cluster: NatsCluster;
  readonly #whole: string;
  #reloads = 0;

  private constructor(cluster: NatsCluster) {
    this.#cluster = cluster;
    this.#whole = readFileSync(this.#member.configuration, "utf8");
  }

  static async start(scope: TestScope): Promise<PermittedServer> {
    const authorization = authorizationFor((text) => text.replace("change-me", "known"));
    const cluster = await NatsCluster.start({ size: 1, more: authorization });
    scope.after(() => cluster.stop());
    return new PermittedServer(cluster);
  }

  get #member(): NatsCluster["members"][number] {
    const [member] = this.#cluster.members;
    assert.ok(member !== undefined);
    return member;
  }

  /** Starts a front end on the bucket `chats`, of one shard. The password is in its environment. */
  async serve(scope: TestScope): Promise<{ readonly url: string; readonly process: TestProcess }> {
    const storage = this.#cluster.storageOf("chats", "?replicas=1&shards=1").replace("nats://", "nats://streamdir:known@");
    const process = startStreamdir(scope, ["--port", "0", "--log-format", "text"], { cwd: HERE, env: { STREAMDIR_STORAGE: storage } });
    return { url: /http:[^\s"]+/.exec(await process.stdoutLine(/http:/))?.[0] ?? "", process };
  }

  /** Reloads the permissions of docs/cluster.md without what is written so there; all of them where that is empty. */
  async take(permissions: string): Promise<void> {
    assert.ok(this.#whole.includes(permissions));
    const text = this.#whole.replace(permissions, "");
    const { configuration, said } = this.#member;
    writeFileSync(configuration, text);
    this.#cluster.signal(0, "SIGHUP");
    this.#reloads += 1;
    await until(() => said.filter((line) => line.includes("Reloaded server configuration")).length === this.#reloads);
  }
}
