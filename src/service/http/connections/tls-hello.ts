import type { ServiceLog } from "../../../observe/log/logger.ts";

/** Between two warnings: a client that tries again is no news. */
const quietMs = 60_000;
let warnedAt = Number.NEGATIVE_INFINITY;

/**
 * Warns in one line, once a minute at most, if a connection that could not be read as HTTP began with the hello of TLS. Returns
 * true for such a connection.
 */
export function warnOfTls(error: Error, log: Pick<ServiceLog, "warn">, origin = "http://"): boolean {
  const packet: unknown = Reflect.get(error, "rawPacket");
  // A handshake record of SSL 3.0 or any TLS.
  if (!Buffer.isBuffer(packet) || packet[0] !== 0x16 || packet[1] !== 0x03) return false;
  const now = performance.now();
  if (now - warnedAt >= quietMs) {
    warnedAt = now;
    log.warn(`https was asked of an http port: the client has to use ${origin}`);
  }
  return true;
}
