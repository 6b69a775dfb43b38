// Where the page is that shows the streams.

import { isLoopbackName } from "./host-name.js";

/** Below the prefix. */
export const PAGE_PATH = "__ds/ui/";

/**
 * The page's URL for those who reach the server by `url`, to which a stream's name is appended; `null` where `ui`
 * leaves them without one, or no browser takes that URL: its address has a zone.
 */
export function pageAddress(url: string, ui: boolean | "loopback"): string | null {
  if (!URL.canParse(url)) return null;
  const host = new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
  const isThere = ui === "loopback" ? isLoopbackName(host) : ui;
  return isThere ? `${url}${PAGE_PATH}` : null;
}
