import { expect, onTestFinished, test } from "vitest";
import { listenOnLoopback } from "../../../test/support/loopback-server.ts";
import { askShop } from "./ask-shop.ts";

/* Shops that give no answer: commands end with another code than for a shop that answers badly. */

test.each([
  ["never answers", "unreachable", () => {}],
  ["never ends its answer", "unreachable", (write: (text: string) => void) => write("{")],
  [
    "closes half way",
    "unreachable",
    (write: (text: string) => void, end: () => void) => {
      write("{");
      end();
    },
  ],
  [
    "answers more than is read",
    "unexpected-answer",
    (write: (text: string) => void) => write("x".repeat(2_000)),
  ],
] as const)("a shop that %s is %s", async (_, code, act) => {
  const { origin, close } = await listenOnLoopback((_request, response) =>
    act(
      (text) => void response.write(text),
      () => void setTimeout(() => response.destroy(), 20),
    ),
  );
  onTestFinished(close);
  await expect(askShop(origin, { timeoutMs: 300, maxBytes: 1_000 })).rejects.toMatchObject({ code });
});
