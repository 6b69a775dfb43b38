import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { parseCommand } from "../../src/cli/config.ts";
import { parseListen } from "../../src/net/listen-address.ts";
import { instructionsOf, only } from "../containers/dockerfile.ts";
import { FILE, faultsOf, objects } from "./manifest.mjs";

const INSTRUCTIONS = instructionsOf(new URL("../../docs/Dockerfile", import.meta.url));
/** What a stop takes beyond its options, to write out what is not in the streams' files yet: README, Options. */
const WRITING_MS = 5000;
/** In place of the address that Kubernetes gives a pod. */
const POD_ADDRESS = "10.1.2.3";
const COMMANDS = [{ name: "serve", summary: "", run: async () => 0 }];

describe("docs/kubernetes.yaml", () => {
  const found = objects();
  const { spec } = found.get("StatefulSet");
  const pod = spec.template.spec;
  const [container] = pod.containers;
  const args = container.args.map((arg) => arg.replace("$(POD_IP)", POD_ADDRESS));
  const command = parseCommand(args.slice(1), {}, COMMANDS);

  for (const [kind, object] of found) {
    test(`has a ${kind} as its schema is`, () => assert.deepEqual(faultsOf(object), []));
  }

  test("has a StatefulSet of one pod that its Service finds", () => {
    const service = found.get("Service");
    assert.deepEqual([...found.keys()], ["Service", "StatefulSet"]);
    assert.equal(spec.replicas, 1);
    assert.equal(spec.serviceName, service.metadata.name);
    assert.equal(service.spec.clusterIP, undefined, "it has an address that stays");
    assert.deepEqual(spec.selector.matchLabels, spec.template.metadata.labels);
    assert.deepEqual(service.spec.selector, spec.template.metadata.labels);
    assert.equal(pod.enableServiceLinks, false);
  });

  test("has a command of this version, and its ports", () => {
    assert.equal(container.args[0], "streamdir");
    assert.equal(command.kind, "run", JSON.stringify(command));
    const port = Number(command.settings.listen.split(":").at(-1));
    const [adminHost, adminPort] = command.settings.adminListen.split(":");
    assert.equal(adminHost, POD_ADDRESS);
    assert.deepEqual(container.env, [{ name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }]);
    assert.deepEqual(container.ports, [
      { name: "http", containerPort: port },
      { name: "admin", containerPort: Number(adminPort) },
    ]);
    assert.equal(String(port), only(INSTRUCTIONS, "EXPOSE"));
    const probes = [container.livenessProbe, container.readinessProbe, container.startupProbe].map(({ httpGet }) => httpGet);
    // On the port of the streams a probe is turned away while clients have all connections, and the pod restarted.
    assert.deepEqual(probes, [
      { path: "/livez", port: "admin" },
      { path: "/readyz", port: "admin" },
      { path: "/livez", port: "admin" },
    ]);
  });

  test("listens to IPv4 and IPv6, and says in a comment how the probes' port does", () => {
    const lines = readFileSync(FILE, "utf8").split("\n");
    const alternatives = lines.flatMap((line) => {
      const [, flag, address] = /- (--[\w-]*listen)=\S+ # (\S+) where pods have IPv6 addresses$/.exec(line) ?? [];
      return flag === undefined ? [] : [`${flag}=${address.replace("$(POD_IP)", "fd00::7")}`];
    });
    const changed = parseCommand([...args.slice(1).filter((arg) => !arg.includes("admin-listen=")), ...alternatives], {}, COMMANDS);
    assert.equal(changed.kind, "run", JSON.stringify(changed));
    assert.deepEqual([changed.settings.listen, changed.settings.adminListen], ["*:4437", "[fd00::7]:9437"]);
    assert.deepEqual(parseListen(changed.settings.listen), parseListen("[::]:4437"));
  });

  test("waits for a stop for longer than one takes, and for a balancer to see it", () => {
    const { shutdownDelayMs, shutdownTimeoutMs } = command.settings;
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    assert.ok(pod.terminationGracePeriodSeconds * 1000 >= shutdownDelayMs + shutdownTimeoutMs + WRITING_MS);
    assert.ok(shutdownDelayMs >= periodSeconds * failureThreshold * 1000, "the pod is not ready before it stops to serve");
  });

  test("runs as the user of the image, on a read-only root, and forces no lock", () => {
    const [user, group] = only(INSTRUCTIONS, "USER").split(":").map(Number);
    const { runAsNonRoot, runAsUser, runAsGroup, fsGroup } = pod.securityContext;
    assert.deepEqual([runAsNonRoot, runAsUser, runAsGroup, fsGroup], [true, user, group, group]);
    const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = container.securityContext;
    assert.deepEqual([readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities], [true, false, { drop: ["ALL"] }]);
    assert.ok(!container.args.includes("--force-unlock"));
  });

  test("has the directory on a volume of one pod, and the auth file where the command reads it, for the group", () => {
    const [claim] = spec.volumeClaimTemplates;
    assert.deepEqual(claim.spec.accessModes, ["ReadWriteOncePod"]);
    const places = new Map(container.volumeMounts.map(({ name, mountPath }) => [name, mountPath]));
    assert.equal(places.get(claim.metadata.name), command.dir);
    assert.equal(command.dir, only(INSTRUCTIONS, "VOLUME"));
    const [auth] = pod.volumes;
    assert.equal(`${places.get(auth.name)}/auth.json`, command.settings.auth);
    assert.equal(auth.secret.defaultMode, 0o440);
  });
});

test("a manifest with a wrong value, one that lacks a field, and one with an unknown field are found", () => {
  const change = (how) => {
    const object = objects().get("StatefulSet");
    how(object.spec);
    return faultsOf(object).join("\n");
  };
  assert.equal(
    change(() => undefined),
    "",
  );
  assert.match(
    change((spec) => (spec.replicas = "one")),
    /replicas/,
  );
  assert.match(
    change((spec) => delete spec.selector),
    /selector/,
  );
  assert.match(
    change((spec) => (spec.template.spec.containers[0].readOnly = true)),
    /'"readOnly"' does not exist/,
  );
  assert.match(
    change((spec) => (spec.template.spec.terminationGracePeriod = 5)),
    /'"terminationGracePeriod"' does not exist/,
  );
});
