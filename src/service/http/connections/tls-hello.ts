import type { ServiceLog } from "../../../observe/log/logger.ts";
import { createNowAndThen } from "../../../util/now-and-then.ts";

/**
 * Makes the warning for clients that send https requests to an http port: one log line, at most once a minute. It
 * returns true for an error of a connection that began with a TLS hello.
 */
export function createTlsWarning(
  log: Pick<ServiceLog, "warn">,
  origin = "http://",
): (error: Error) => boolean {
  const nowAndThen = createNowAndThen();
  return (error) => {
    const packet: unknown = Reflect.get(error, "rawPacket");
    // A handshake record of SSL 3.0 or any TLS version.
    if (!Buffer.isBuffer(packet) || packet[0] !== 0x16 || packet[1] !== 0x03) return false;
    nowAndThen(() => log.warn(`https was asked of an http port: the client has to use ${origin}`));
    return true;
  };
}
