import fc from "fast-check";
import { expect, test } from "vitest";
import { scenarios } from "../src/fixtures/cases/scenarios.ts";
import { writeRequest } from "../src/fixtures/cases/write-request.ts";
import type { FixtureRequest } from "../src/fixtures/engine/answer.ts";
import { createFixtureEngine } from "../src/fixtures/engine/engine.ts";
import { parsePaymentRequest } from "../src/methods/methods.ts";
import { explain } from "../src/observe/explain/explain-input.ts";
import { explainRefusal } from "../src/observe/explain/explanations.ts";
import { testPayerAt } from "../src/payer/test-payers.ts";
import { isDecidedBy } from "../src/protocol/catalogue.ts";
import { isCause } from "../src/protocol/mistakes.ts";
import { membersOf } from "../src/util/json.ts";
import { combination, combineCases } from "./support/conformance/combined-cases.ts";

/*
 * `explain` never calls a request good that verify refuses without asking the chain or the ledger, and the first cause that it
 * names is the one that verify gives.
 */

const engine = createFixtureEngine({ networks: ["base", "base-sepolia"] });
const [mainnet, testnet = mainnet] = engine.environment.networks;
const contracts = { mainnet: mainnet.facilitatorContract, testnet: testnet.facilitatorContract };

/** The situation of a refused verify if `explain` finds nothing that would prevent the payment, or something else first. */
async function findSilent(request: FixtureRequest): Promise<string | undefined> {
  const answer = await engine.reply(request);
  const { isValid, situation, payer } = membersOf(
    answer.kind === "json" && answer.status === 200 ? answer.body : undefined,
  );
  if (isValid !== false || typeof situation !== "string") return undefined;
  const { kind, findings } = explain(request.body ?? "", {
    contracts,
    now: await engine.environment.now(),
    operation: "verify",
  });
  // Only a wallet contract can check a signature of another length.
  const isForWallet =
    situation === "signature_wrong" && /"signature":"0x[0-9a-f]{132,}"/i.test(request.body ?? "");
  // What the chain and the ledger decide is not in the request.
  const isElsewhere = isDecidedBy({ situation }, "code", "state", "ledger");
  if (isForWallet || isElsewhere) return undefined;
  const isOfSignature = ({ at, mistake }: (typeof findings)[number]) =>
    at.endsWith(".signature") || mistake === "signed-other-values";
  // Code at the payer's address may take a signature that is no key's.
  const isBeyond = isDecidedBy({ situation }, "time") || situation.startsWith("approval_");
  // Only the chain knows that a payer has approved Permit2, so that its expired approval is not used.
  const hasApproved = testPayerAt(String(payer))?.payer.approved === undefined;
  const isUnused = (one: (typeof findings)[number]) => hasApproved && one.situation === "approval_expired";
  const first = findings.find((one) => isCause(one) && !isUnused(one) && !(isBeyond && isOfSignature(one)));
  // What is no request at all, and what the operator serves, is not found by the reader.
  if (first !== undefined && (kind !== "request" || situation === "network_not_enabled")) return undefined;
  const isSame =
    first?.situation === situation ||
    (isDecidedBy({ situation }, "signature") && first !== undefined && isOfSignature(first));
  return isSame ? undefined : `${situation}, not ${first?.situation ?? first?.mistake}`;
}

const refused = scenarios.filter(
  (row) =>
    row.operation === "verify" &&
    row.outcome.kind === "refusal" &&
    row.cannotRun(engine.environment) === undefined,
);

test.each(refused)("$name is explained", async (row) => {
  const { before, request } = await row.plan(engine.environment);
  for (const earlier of before) await engine.reply(earlier);
  expect(await findSilent(request)).toBeUndefined();
});

let count = 0;

test("several wrong things at once are explained", async () => {
  const { environment } = engine;
  await fc.assert(
    fc.asyncProperty(combination, async ({ x402Version, names }) => {
      const at = { operation: "verify", x402Version, label: `explained ${++count}` } as const;
      const spec = combineCases(names, { environment, operation: "verify" });
      expect(await findSilent(await writeRequest(environment, at, spec))).toBeUndefined();
    }),
    { numRuns: 500 },
  );
});

test("an expired approval of a payer who has approved Permit2 is no cause of the refusal", async () => {
  const { environment } = engine;
  const names = [
    "eip2612_deadline_expired.approval_passed",
    "permit2_insufficient_balance.empty_by_permit2",
    "permit2_deadline_expired.deadline_too_late",
  ];
  const at = { operation: "verify", x402Version: 2, label: "an approval that is not needed" } as const;
  const spec = combineCases(names, { environment, operation: "verify" });
  expect(await findSilent(await writeRequest(environment, at, spec))).toBeUndefined();
});

test("a refusal for another reason is not put down to the approval that came along", async () => {
  const scenario = scenarios.find(({ name }) => name.startsWith("verify.v2.eip2612_asset_mismatch."));
  const { request } = (await scenario?.plan(engine.environment)) ?? {};
  const body = request?.body ?? "";
  const parsed = parsePaymentRequest(JSON.parse(body));
  if (!parsed.ok) throw new Error("the payment cannot be read");
  const refused = { message: undefined, request: parsed.request, body, at: Date.now() };
  // A facilitator that sponsors no approvals does not read it.
  const explained = explainRefusal({ ...refused, reason: "permit2_allowance_required" }, { contracts });
  expect(explained.map(({ mistake }) => mistake)).toEqual(["permit2_allowance_required"]);
});

test("an empty list of tokens stands for the network's USDC", async () => {
  const scenario = scenarios.find(({ name }) => name === "verify.v2.success.funded");
  const { request } = (await scenario?.plan(engine.environment)) ?? {};
  const context = { contracts, tokens: { base: [] }, now: await engine.environment.now() };
  expect(explain(request?.body ?? "", context).findings).toEqual([]);
});
