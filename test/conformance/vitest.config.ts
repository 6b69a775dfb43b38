import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["*.test.ts"],
    // Each file has a server of its own, and the suite measures waits: one after the other.
    fileParallelism: false,
    hookTimeout: 30_000,
  },
});
