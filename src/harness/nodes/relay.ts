import { connect, type Socket } from "node:net";

export type RelayOptions = {
  client: Socket;
  node: { host: string; port: number };
  /** Asked at the beginning of each request, of which these bytes have come, whether the connection is wanted elsewhere. */
  wanted: (request: Buffer) => boolean;
  /** Gets a connection that is wanted, with the request unread. It is not relayed any more then. */
  handOver: (client: Socket) => void;
};

/**
 * Passes the bytes of an HTTP connection to a node and back as they are: a third of what it takes to read and write HTTP.
 *
 * Where a request begins follows from HTTP clients not sending the next one before the last is answered: what comes
 * from the client begins one when nothing came before, or when the node has spoken since.
 */
export function relay({ client, node, wanted, handOver }: RelayOptions): void {
  const upstream = connect({ ...node, noDelay: true });
  let begins = true;
  client.setNoDelay(true);

  const receive = (chunk: Buffer) => {
    if (begins && wanted(chunk)) {
      client.off("data", receive).off("drain", resumeUpstream).off("close", endUpstream).off("error", ignore);
      upstream.off("close", endClient).destroy();
      client.pause();
      client.unshift(chunk);
      handOver(client);
      return;
    }
    begins = false;
    if (!upstream.write(chunk)) client.pause();
  };
  const resumeUpstream = () => void upstream.resume();
  const endUpstream = () => void upstream.destroy();
  // A node that is gone looks to the service as it would without a proxy between them.
  const endClient = () => void client.destroy();
  // What follows is "close".
  const ignore = () => {};

  client.on("data", receive).on("drain", resumeUpstream).on("close", endUpstream).on("error", ignore);
  upstream.on("error", ignore).on("close", endClient);
  upstream.on("drain", () => client.resume());
  upstream.on("data", (chunk) => {
    begins = true;
    if (!client.write(chunk)) upstream.pause();
  });
}
