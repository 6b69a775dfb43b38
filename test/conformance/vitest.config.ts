import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*.test.ts"],
    // Each file has a server of its own, and the suite measures waits: one after the other.
    fileParallelism: false,
    hookTimeout: 30_000,
    // undici breaks off its requests when a server says goodbye, though RFC 9113 (6.8) has them finished: a reader that is
    // still there when the server stops leaves this behind.
    onUnhandledError: ({ cause }) =>
      !String((cause as Error | undefined)?.message).startsWith('HTTP/2: "GOAWAY" frame received with code 0'),
  },
});
