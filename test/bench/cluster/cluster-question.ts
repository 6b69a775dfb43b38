import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { NotAsked, Question } from "../question.js";
import type { Rig } from "../rig.js";
import { ClusterRig, type Sync } from "./cluster-rig.js";

/** A question about a cluster, asked of servers that sync now and then, and of such that sync before they acknowledge. */
export function onCluster(
  { id, title, load }: Pick<Question, "id" | "title" | "load">,
  ask: (rig: Rig, cluster: ClusterRig) => ReturnType<Question["ask"]>,
): readonly Question[] {
  const asked =
    (sync: Sync): Question["ask"] =>
    async (rig) =>
      lackOfNats() ?? ask(rig, await ClusterRig.start(rig, sync));
  return [
    { id: `cluster-${id}`, title: `cluster: ${title}`, load, ask: asked("2m") },
    { id: `cluster-${id}-always`, title: `cluster: ${title}, synced`, load, ask: asked("always") },
  ];
}

const CLIENT = fileURLToPath(new URL("../../nats/node_modules/@nats-io/transport-node", import.meta.url));

/** Why no cluster can be started; `null` where one can. */
function lackOfNats(): NotAsked | null {
  return existsSync(CLIENT) ? null : { notAsked: "needs the client of NATS (npm --prefix test/nats ci)" };
}
