// Sockets that whoever started the process has opened for it (sd_listen_fds(3)).

/** The first descriptor behind standard error. */
const FIRST_FD = 3;
const MAX_SOCKETS = 64;

/**
 * The sockets that `env` says were passed to the process `pid`, as `--listen` writes them; `null` where there are none,
 * or more than 64.
 */
export function inheritedListen(env: Readonly<Record<string, string | undefined>>, pid: number): string | null {
  const { LISTEN_PID: heir, LISTEN_FDS: written = "" } = env;
  if (heir !== String(pid) || !/^[1-9]\d?$/.test(written)) return null;
  const count = Number(written);
  return count > MAX_SOCKETS ? null : Array.from({ length: count }, (_, at) => `fd:${FIRST_FD + at}`).join(",");
}
