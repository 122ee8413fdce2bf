import type { ConnectionLimits } from "../connections/open-connections.ts";

/** Each connection costs some KB and a file descriptor, and buyers do not connect to a facilitator themselves. */
const mostConnections = 10_000;

/**
 * How many connections a process may have open, by its file descriptors: a quarter of those, 128 at least, are left for
 * the database and for requests to nodes, without which no connection is of use. One address may take three quarters.
 */
export function connectionCapacity(openFiles: number | undefined): ConnectionLimits {
  const left = openFiles === undefined ? mostConnections : openFiles - Math.max(128, openFiles / 4);
  const max = Math.max(1, Math.min(mostConnections, Math.floor(left)));
  return { max, maxPerAddress: Math.ceil(max * 0.75) };
}

/** The same for a server of this machine, whose callers all have the one address: it may take every place. */
export function localConnectionCapacity(openFiles: number | undefined): ConnectionLimits {
  const { max } = connectionCapacity(openFiles);
  return { max, maxPerAddress: max };
}
