import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
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

/** A NATS server whose permissions change while it runs. */
class Member {
  readonly #configuration: string;
  readonly #whole: string;
  readonly #reload: () => void;
  #reloads = 0;
  #asked = 0;

  constructor({ configuration, process }: NatsCluster["members"][number], reload: () => void) {
    this.#configuration = configuration;
    this.#whole = readFileSync(configuration, "utf8");
    this.#reload = reload;
    assert.ok(process?.stderr);
    // What the cluster keeps of its lines is bounded: a server says a line for each refusal.
    createInterface({ input: process.stderr }).on("line", (line) => {
      if (line.includes("Reloaded server configuration")) this.#reloads += 1;
    });
  }

  async change(change: Change): Promise<void> {
    writeFileSync(this.#configuration, change(this.#whole));
    this.#asked += 1;
    this.#reload();
    await until(() => this.#reloads >= this.#asked);
  }
}

/** NATS servers with the user of docs/cluster.md, whose permissions change while they run. */
export class PermittedServer {
  readonly #cluster: NatsCluster;
  readonly #members: readonly Member[];

  private constructor(cluster: NatsCluster) {
    this.#cluster = cluster;
    this.#members = cluster.members.map((member, at) => new Member(member, () => cluster.signal(at, "SIGHUP")));
  }

  static async start(scope: TestScope, size = 1): Promise<PermittedServer> {
    const authorization = authorizationFor((text) => text.replace("change-me", "known"));
    const cluster = await NatsCluster.start({ size, more: authorization });
    scope.after(() => cluster.stop());
    return new PermittedServer(cluster);
  }

  /** Starts a front end on the bucket `chats`, of one shard. The user and the password are in its environment. */
  async serve(scope: TestScope, as = "streamdir:known"): Promise<{ readonly url: string; readonly process: TestProcess }> {
    const storage = this.#cluster.storageOf("chats", "?replicas=1&shards=1").replace("nats://", `nats://${as}@`);
    const process = startStreamdir(scope, ["--port", "0", "--log-format", "text"], { cwd: HERE, env: { STREAMDIR_STORAGE: storage } });
    return { url: /http:[^\s"]+/.exec(await process.stdoutLine(/http:/))?.[0] ?? "", process };
  }

  /** Reloads the permissions of docs/cluster.md without what is written so there; all of them where that is empty. */
  async take(permissions: string): Promise<void> {
    await this.change(without(permissions));
  }

  /** Reloads a changed configuration, of which the one of the start is given. */
  async change(change: Change): Promise<void> {
    await Promise.all(this.#members.map((member) => member.change(change)));
  }

  /** Gives all back at each server but that of a name. */
  async giveBackExcept(name: string): Promise<void> {
    const bad = this.#cluster.placeOf(name);
    assert.notEqual(bad, -1);
    await Promise.all(this.#members.filter((_, at) => at !== bad).map((member) => member.change(without(""))));
  }
}

function without(permissions: string): Change {
  return (whole) => {
    assert.ok(whole.includes(permissions));
    return whole.replace(permissions, "");
  };
}
