import type { Rival } from "./rival.js";

/** Every rival, in the order of the table. */
export const RIVALS: readonly Rival[] = [];
