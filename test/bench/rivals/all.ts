import { nginx } from "./nginx.js";
import { redis } from "./redis.js";
import { reference } from "./reference.js";
import type { Rival } from "./rival.js";

/** Every rival, in the order of the table. */
export const RIVALS: readonly Rival[] = [redis, nginx, reference];
