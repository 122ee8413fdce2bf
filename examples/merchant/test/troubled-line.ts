import { createServer, request } from "node:http";
import { listen } from "./listen.ts";

/** The line between shop and facilitator, which a test can disturb. */
export type TroubledLine = AsyncDisposable & {
  /** What the shop takes for its facilitator. */
  readonly url: string;
  /** Whether nobody answers. */
  down: boolean;
  /** Cuts the next settle off when it has been sent, before its answer. */
  cutNextSettle: boolean;
};

export async function startTroubledLine(facilitatorUrl: string): Promise<TroubledLine> {
  const server = createServer((incoming, outgoing) => {
    if (line.down) {
      outgoing.destroy();
      return;
    }
    const { method, headers, url = "" } = incoming;
    const onward = request(new URL(url, facilitatorUrl), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    incoming.pipe(onward);
    if (line.cutNextSettle && url.endsWith("/settle")) {
      line.cutNextSettle = false;
      onward.on("finish", () => setTimeout(() => onward.destroy(new Error("cut off")), 2));
    }
  });
  const { origin, close } = await listen(server);
  const line = { url: `${origin}/v1`, down: false, cutNextSettle: false, [Symbol.asyncDispose]: close };
  return line;
}
