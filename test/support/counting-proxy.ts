import { createServer, request } from "node:http";
import { closeAtOnce, listenOnLoopback } from "../../src/util/node-http.ts";

/** A proxy in front of a node, on loopback, that records the methods of every HTTP request. */
export type CountingProxy = {
  url: string;
  /** The JSON-RPC methods of each HTTP request since the last {@link CountingProxy.take}. */
  take(): string[][];
  close(): Promise<void>;
};

export async function startCountingProxy(target: string): Promise<CountingProxy> {
  let requests: string[][] = [];
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks);
      const calls = [JSON.parse(body.toString())].flat() as { method: string }[];
      const onward = request(
        target,
        { method: "POST", headers: { "content-type": "application/json" } },
        (answer) => {
          // Counted when the node has answered, so that a test can continue.
          requests.push(calls.map(({ method }) => method));
          outgoing.writeHead(answer.statusCode ?? 502, { "content-type": "application/json" });
          answer.pipe(outgoing);
        },
      );
      onward.on("error", () => outgoing.destroy());
      onward.end(body);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    take() {
      const taken = requests;
      requests = [];
      return taken;
    },
    close: () => closeAtOnce(server),
  };
}
