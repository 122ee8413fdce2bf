import { randomBytes } from "node:crypto";
import { requireFree } from "../../service/http/local-server/require-free.ts";

/**
 * An address of this machine alone that a web page cannot find by trying: a browser lets it open a WebSocket to any port of
 * 127.0.0.1, and anvil takes it whoever asks. Where the system answers for all of 127.0.0.0/8, as Linux does, it is one of
 * sixteen million; elsewhere 127.0.0.1.
 */
export async function findHiddenAddress(): Promise<string> {
  const usual = "127.0.0.1";
  const address = `127.${randomBytes(3).join(".")}`;
  // Those of the network and of all.
  if (/\.0$|\.255$/.test(address)) return findHiddenAddress();
  return requireFree(address, 0).then(
    () => address,
    () => usual,
  );
}
