import { closeAtOnce, listenOnLoopback } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = http.createServer();
  const port = await listenOnLoopback(server);
  await closeAtOnce(server);
  return port;
}
