import { afterAll, beforeAll, expect, test } from "vitest";
import { createLineRenderer, type PaymentLine } from "../../../src/cli/kit/payment-line.ts";
import { main } from "../../../src/cli/main.ts";
import { harnessDescriptionSchema } from "../../../src/harness/control/description.ts";
import { permit2Address } from "../../../src/methods/permit2/permit.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { sendHttp } from "../../../src/util/http-client.ts";
import {
  type BrokenRequest,
  type BrokenRow,
  brokenClients,
  brokenRequest,
} from "../../support/broken-clients.ts";
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

/** Sends a request, and gives what each place says of it. */
async function explained(request: BrokenRequest, isOfBody = true): Promise<Record<string, string>> {
  const before = printed().length;
  const { path, method, headers, body } = request;
  const { text: answer } = await sendHttp(`${origin}${path}`, {
    ...{ method, body },
    headers: { "content-type": "application/json", ...headers },
  });
  await expect.poll(() => printed().length).toBe(before + 1);
  const line = printed().at(-1);
  if (line === undefined) throw new Error("up printed nothing");
  const { invalidMessage, detail } = JSON.parse(answer);
  const studio = await sendHttp(`${origin}/payments/${line.id}`);
  const { explanations } = JSON.parse(studio.text).payment;
  return {
    answer: invalidMessage ?? detail,
    "line of up": createLineRenderer()(line),
    why: (await cli("why", line.id, "--url", origin)).split("What happened:")[0] ?? "",
    explain: await cli("explain", isOfBody ? body : answer, "--url", origin),
    studio: explanations.map((one: Record<string, string>) => Object.values(one).join("\n")).join("\n"),
  };
}

function expectNamed(said: Record<string, string>, { names, never }: Pick<BrokenRow, "names" | "never">) {
  for (const [place, text] of Object.entries(said)) {
    for (const name of names) expect.soft(text, place).toMatch(name);
    if (never !== undefined) expect.soft(text, place).not.toMatch(never);
  }
}

test.each(Object.entries(brokenClients))(
  "a client that %s: every place names what to change",
  async (_, row) => {
    const request = await brokenRequest(row, description);
    const isOfBody = row.key === undefined && row.path === undefined && row.method === undefined;
    expectNamed(await explained(request, isOfBody), row);
    if (row.challenge !== undefined) {
      const [, first = ""] = (await cli("explain", request.challenge)).split("\n\n1. ");
      expect.soft(first, "explain of the 402").toMatch(row.challenge);
    }
  },
);

const holdsNothing = [/holds 0 USDC \(0\); 0\.01 USDC \(10000\) is needed/];
const approve = new RegExp(`approve.*${testPayers.unapproved.address}|approve\\(${permit2Address}`);
const notApproved = [/Permit2 take 0 USDC \(0\); 0\.01 USDC \(10000\) is needed/, approve];

test.each<[string, object, readonly RegExp[]]>([
  ["exact, of a payer with nothing", { payer: "empty" }, holdsNothing],
  ["Permit2, of a payer with nothing", { payer: "empty", method: "permit2" }, holdsNothing],
  ["upto, of a payer with nothing", { payer: "empty", scheme: "upto", max: "0.01" }, holdsNothing],
  ["Permit2, of a payer who has not approved it", { payer: "unapproved", method: "permit2" }, notApproved],
  [
    "upto, of a payer who has not approved it",
    { payer: "unapproved", scheme: "upto", max: "0.01" },
    notApproved,
  ],
])("a payment by %s: every place has the amounts in the token", async (_, order, names) => {
  const { text } = await sendHttp(`${origin}/__payment`, {
    method: "POST",
    body: JSON.stringify(order),
    headers: { "content-type": "application/json" },
  });
  const headers = { authorization: description.organization.apiKey };
  const request = {
    path: "/v1/verify",
    method: "POST",
    headers,
    body: JSON.stringify(JSON.parse(text).body),
  };
  expectNamed(await explained(request), { names, never: /cast send|of the asset;/ });
});
