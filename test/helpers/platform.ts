import type { TestContext } from "node:test";

/** Why a test that reads of processes in /proc is left out, if it is. */
export const lacksProc = process.platform !== "linux" && "no /proc";

/** Lets the process take itself for one of another system until the test is over. */
export function pretendPlatform(context: TestContext, platform: NodeJS.Platform): void {
  const own = Object.getOwnPropertyDescriptor(process, "platform");
  Object.defineProperty(process, "platform", { ...own, value: platform });
  context.after(() => Object.defineProperty(process, "platform", { ...own }));
}
