import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { http } from "../../util/node-http.ts";

/** Has a server listen on this machine alone, by default on any free port. Its connections end when it is disposed of. */
export async function listenOnLoopback(
  server: Server,
  port = 0,
): Promise<AsyncDisposable & { port: number }> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/** A port that is free now. */
export async function freePort(): Promise<number> {
  await using listening = await listenOnLoopback(http.createServer());
  return listening.port;
}
