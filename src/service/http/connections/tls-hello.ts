import type { ServiceLog } from "../../../observe/log/logger.ts";

/** Between two warnings: a client that tries again is no news. */
const quietMs = 60_000;

/**
 * Makes the warning of a server whose clients ask https of its http port: one line, once a minute at most. It returns true for
 * an error of a connection that began with the hello of TLS.
 */
export function createTlsWarning(
  log: Pick<ServiceLog, "warn">,
  origin = "http://",
): (error: Error) => boolean {
  let warnedAt = Number.NEGATIVE_INFINITY;
  return (error) => {
    const packet: unknown = Reflect.get(error, "rawPacket");
    // A handshake record of SSL 3.0 or any TLS.
    if (!Buffer.isBuffer(packet) || packet[0] !== 0x16 || packet[1] !== 0x03) return false;
    const now = performance.now();
    if (now - warnedAt >= quietMs) {
      warnedAt = now;
      log.warn(`https was asked of an http port: the client has to use ${origin}`);
    }
    return true;
  };
}
