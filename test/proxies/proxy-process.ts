import { startProgram, type TestProcess, type TestScope } from "../helpers/process.js";

/** What is started. */
export interface ProxyProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A line of its standard error once it serves. */
  readonly ready: RegExp;
}

/** Starts a proxy and waits until it serves. When the test is over it is asked to end: killed, it would leave its children behind. */
export async function startProxy(scope: TestScope, { command, args, env = {}, ready }: ProxyProgram): Promise<TestProcess> {
  const started: TestProcess[] = [];
  // Hooks run in the order in which they were made: before the one that kills.
  scope.after(async () => {
    for (const proxy of started) {
      proxy.kill("SIGTERM");
      await proxy.ended;
    }
  });
  const proxy = startProgram(scope, command, args, { env });
  started.push(proxy);
  await proxy.stderrLine(ready);
  return proxy;
}
