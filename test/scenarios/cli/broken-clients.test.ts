import { afterAll, beforeAll, expect, test } from "vitest";
import { createLineRenderer, type PaymentLine } from "../../../src/cli/kit/payment-line.ts";
import { main } from "../../../src/cli/main.ts";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { sendHttp } from "../../../src/util/http-client.ts";
import { brokenClients, brokenRequest } from "../../support/broken-clients.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";

/*
 * Shops and clients that go wrong, each explained in every place where a developer may look: the answer itself, the line of
 * `up`, `x402-kit why`, `x402-kit explain` and the studio. Each place alone must name what to change.
 */

let up: CliProcess;
let origin: string;
let description: ReturnType<typeof harnessDescriptionSchema.parse>;
beforeAll(async () => {
  up = await startCli([
    ...["up", "--port", "0", "--networks", "base", "--no-demo", "--json", "--log-format", "json"],
  ]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
});
afterAll(async () => up?.[Symbol.asyncDispose]());

const printed = (): PaymentLine[] =>
  up
    .stdout()
    .trim()
    .split("\n")
    .slice(1)
    .map((line): PaymentLine => JSON.parse(line));

/** What a command prints, in this process. */
async function cli(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const write = (text: string) => void lines.push(text);
  await main(args, {
    print: write,
    printError: write,
    env: {},
    takeSignals: () => new AbortController().signal,
  });
  return lines.join("\n");
}

test.each(Object.entries(brokenClients))(
  "a client that %s: every place names what to change",
  async (_, row) => {
    const before = printed().length;
    const { path, method, headers, body, challenge } = await brokenRequest(row, description);
    const { text: answer } = await sendHttp(`${origin}${path}`, {
      ...{ method, body },
      headers: { "content-type": "application/json", ...headers },
    });
    await expect.poll(() => printed().length).toBe(before + 1);
    const line = printed().at(-1);
    if (line === undefined) throw new Error("up printed nothing");

    const { invalidMessage, detail } = JSON.parse(answer);
    const isOfBody = row.key === undefined && row.path === undefined && row.method === undefined;
    const studio = await sendHttp(`${origin}/payments/${line.id}`);
    const { explanations } = JSON.parse(studio.text).payment;
    const said: Record<string, string> = {
      answer: invalidMessage ?? detail,
      "line of up": createLineRenderer()(line),
      why: (await cli("why", line.id, "--url", origin)).split("What happened:")[0] ?? "",
      explain: await cli("explain", isOfBody ? body : answer, "--url", origin),
      studio: explanations.map((one: Record<string, string>) => Object.values(one).join("\n")).join("\n"),
    };
    for (const [place, text] of Object.entries(said)) {
      for (const name of row.names) expect.soft(text, place).toMatch(name);
      if (row.never !== undefined) expect.soft(text, place).not.toMatch(row.never);
    }
    if (row.challenge !== undefined) {
      const [, first = ""] = (await cli("explain", challenge)).split("\n\n1. ");
      expect.soft(first, "explain of the 402").toMatch(row.challenge);
    }
  },
);
