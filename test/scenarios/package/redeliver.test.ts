import { once } from "node:events";
import { createServer, type RequestListener, request } from "node:http";
import { afterEach, expect, test } from "vitest";
import { redeliver } from "../../../templates/server/redeliver.ts";

/** How often the shop's own code answered. */
let answered = 0;
let handler: RequestListener = () => {};
const shop = createServer(
  redeliver((incoming, outgoing) => {
    answered++;
    handler(incoming, outgoing);
  }),
).listen(0, "127.0.0.1");
await once(shop, "listening");

afterEach(() => {
  answered = 0;
});

function ask(payment: string) {
  const address = shop.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return request({ port, host: "127.0.0.1", path: "/report", headers: { "payment-signature": payment } });
}

/** A buyer who leaves before the shop answers. */
async function leave(payment: string, headers: Record<string, string>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const asked = ask(payment);
  asked.on("error", () => {});
  handler = (incoming, outgoing) => {
    incoming.socket.once("close", () => {
      outgoing.writeHead(200, headers).end("the report");
      setImmediate(resolve);
    });
    asked.destroy();
  };
  asked.end();
  await promise;
}

async function askAgain(payment: string): Promise<string> {
  handler = (_, outgoing) => outgoing.writeHead(402).end("pay");
  const asked = ask(payment).end();
  const [answer] = await once(asked, "response");
  return (await answer.toArray()).join("");
}

test("a buyer who was gone gets what was paid, once", async () => {
  await leave("one", { "payment-response": "settled" });
  expect([await askAgain("one"), answered]).toEqual(["the report", 1]);
  expect([await askAgain("one"), answered]).toEqual(["pay", 2]);
});

test("nothing is kept for a payment header without a receipt, which anybody can send", async () => {
  await leave("two", {});
  expect([await askAgain("two"), answered]).toEqual(["pay", 2]);
});
