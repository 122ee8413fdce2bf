import {
  declareEip2612GasSponsoringExtension,
  declareErc20ApprovalGasSponsoringExtension,
} from "@x402/extensions";
import fc from "fast-check";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { explain } from "../../../src/observe/explain/explain-input.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { wrapForUndeployed } from "../../../src/payer/undeployed-wallet.ts";
import { isDecidedBy } from "../../../src/protocol/catalogue.ts";
import { isCause } from "../../../src/protocol/mistakes.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import {
  actionsOf,
  buyerOf,
  channelRequirements,
  createChannelBuyer,
  signChannelPayment,
} from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, post, startTestHarness } from "../../support/service.ts";

/*
 * `explain` never calls a request about a channel good that verify or settle refuses by the request alone, and the first cause that
 * it names is theirs.
 */

let harness: RunningHarness;
let chain: HarnessChain;
let now: bigint;
const bodies: Partial<Record<Kind, Body>> = {};

const kinds = [
  "deposit",
  "wallet",
  "permit2",
  "eip2612",
  "erc20",
  "voucher",
  "asked",
  "claim",
  "settle",
  "refund",
] as const;
type Kind = (typeof kinds)[number];

const operationOf = (kind: Kind): Operation =>
  ["claim", "settle", "refund"].includes(kind) ? "settle" : "verify";

beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
  now = await chain.now();
  const receiver = privateKeyToAccount(generatePrivateKey()).address;
  const termsOf = (method: "eip3009" | "permit2") =>
    channelRequirements(chain, { receiver, receiverAuthorizer: harnessAccounts.authorizer.address, method });
  bodies.deposit = await signChannelPayment(await createChannelBuyer(chain), termsOf("eip3009"));
  bodies.permit2 = await signChannelPayment(await createChannelBuyer(chain, "permit2"), termsOf("permit2"));
  const { address, privateKey } = testPayers.undeployedWallet;
  const owner = privateKeyToAccount(privateKey);
  const signTypedData = async (...given: Parameters<typeof owner.signTypedData>) =>
    wrapForUndeployed(await owner.signTypedData(...given));
  const wallet = buyerOf(chain, { address, signTypedData } as never, { voucherSigner: owner });
  bodies.wallet = await signChannelPayment(wallet, termsOf("eip3009"));
  for (const [kind, declared] of [
    ["eip2612", declareEip2612GasSponsoringExtension()],
    ["erc20", declareErc20ApprovalGasSponsoringExtension()],
  ] as const) {
    bodies[kind] = await signChannelPayment(await createChannelBuyer(chain), termsOf("permit2"), declared);
  }
  const opened = await signChannelPayment(await createChannelBuyer(chain), termsOf("eip3009"));
  expect((await post(harness, "settle", opened)).body).toMatchObject({ success: true });
  const { channelConfig, voucher } = opened.paymentPayload.payload;
  const withPayload = (payload: object) => ({
    ...opened,
    paymentPayload: { ...opened.paymentPayload, payload },
  });
  bodies.voucher = withPayload({ type: "voucher", channelConfig, voucher });
  bodies.asked = withPayload({ type: "refund", channelConfig, voucher });
  Object.assign(bodies, actionsOf(chain, opened));
});
afterAll(() => harness?.close());

/** The refusal by the service, and the causes that `explain` finds, of the same body. */
async function judge(body: Body, operation: Operation) {
  const { body: answer } = await post(harness, operation, body);
  const contracts = resolveFacilitatorContracts();
  const context = { contracts, payTo: "any", now, operation } as const;
  const causes = explain(JSON.stringify(body), context).findings.filter(isCause);
  return { answer, causes, reason: answer.invalidReason ?? answer.errorReason };
}

const other = privateKeyToAccount(generatePrivateKey()).address;
const zeros = `0x${"00".repeat(32)}`;
const forged = `0x${"11".repeat(32)}${"22".repeat(32)}1b`;

/** What goes wrong with requests: the member, and the value in place of the right one. */
const changes: readonly (readonly [path: string, value: unknown])[] = [
  ...["payer", "payerAuthorizer", "receiver", "receiverAuthorizer", "token"].map(
    (member) => [`paymentPayload.payload.channelConfig.${member}`, other] as const,
  ),
  ["paymentPayload.payload.channelConfig.withdrawDelay", 1000],
  ["paymentPayload.payload.channelConfig.withdrawDelay", "900"],
  ["paymentPayload.payload.channelConfig.withdrawDelay", 5],
  ["paymentPayload.payload.channelConfig.salt", `0x${"07".repeat(32)}`],
  ["paymentPayload.payload.channelConfig", undefined],
  ["paymentPayload.payload.voucher.channelId", zeros],
  ["paymentPayload.payload.voucher.maxClaimableAmount", "999"],
  ["paymentPayload.payload.voucher.maxClaimableAmount", 1000],
  ["paymentPayload.payload.voucher.signature", forged],
  ["paymentPayload.payload.voucher.signature", "0x12"],
  ["paymentPayload.payload.type", "open"],
  ["paymentPayload.payload.deposit.amount", "20000"],
  ["paymentPayload.payload.deposit.authorization.erc3009Authorization.salt", zeros],
  ["paymentPayload.payload.deposit.authorization.erc3009Authorization.signature", forged],
  ["paymentPayload.payload.deposit.authorization.erc3009Authorization.validBefore", "1"],
  ["paymentPayload.payload.deposit.authorization.erc3009Authorization.validAfter", "99999999999"],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.from", other],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.spender", other],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.permitted.token", other],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.permitted.amount", "1"],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.witness.channelId", zeros],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.nonce", "7"],
  ["paymentPayload.payload.deposit.authorization.permit2Authorization.deadline", "7"],
  ...[
    ["from", other],
    ["asset", other],
    ["spender", other],
    ["amount", "9999"],
    ["deadline", "7"],
    ["signature", forged],
    ["signature", "0x12"],
    ["version", "x"],
  ].map(
    ([member, value]) => [`paymentPayload.extensions.eip2612GasSponsoring.info.${member}`, value] as const,
  ),
  ...[
    ["from", other],
    ["asset", other],
    ["spender", other],
    ["signedTransaction", "0x12"],
    ["version", "x"],
  ].map(
    ([member, value]) =>
      [`paymentPayload.extensions.erc20ApprovalGasSponsoring.info.${member}`, value] as const,
  ),
  ["paymentPayload.payload.receiver", other],
  ["paymentPayload.payload.token", other],
  ["paymentPayload.payload.refundNonce", "x"],
  ["paymentPayload.payload.claims", []],
  ["paymentRequirements.payTo", other],
  ["paymentRequirements.asset", other],
  ["paymentRequirements.amount", "1001"],
  ["paymentRequirements.amount", "-1"],
  ["paymentRequirements.extra", undefined],
  ["paymentRequirements.extra.receiverAuthorizer", other],
  ["paymentRequirements.extra.withdrawDelay", 5],
  ["paymentRequirements.extra.name", ""],
  ["paymentRequirements.extra.assetTransferMethod", "permit2"],
  ["paymentRequirements.extra.assetTransferMethod", "eip3009"],
  ["paymentRequirements.scheme", "exact"],
  ["paymentPayload.accepted.network", "eip155:1"],
];

/** The body with another value; undefined if it has no such member. */
function changed(body: Body, path: string, value: unknown): Body | undefined {
  const copy = structuredClone(body);
  const names = path.split(".");
  const last = names.pop() ?? "";
  const inner = names.reduce((part, name) => part?.[name], copy);
  if (typeof inner !== "object" || inner === null || !(last in inner)) return undefined;
  inner[last] = value;
  return copy;
}

/** Why the explanation of a refused request is not that of the service; undefined if it is. */
async function findSilent(body: Body, operation: Operation): Promise<string | undefined> {
  const { answer, causes, reason } = await judge(body, operation);
  const { situation } = answer;
  const isRefused = answer.isValid === false || answer.success === false;
  if (!isRefused) return causes.length === 0 ? undefined : `good, but ${causes[0]?.mistake}`;
  // What the chain and the ledger decide is not in the request. Where any receiver is paid, who opened its channel is left.
  const isElsewhere = isDecidedBy({ situation }, "code", "state", "ledger");
  if (isElsewhere || situation === "pay_to_not_accepted") return undefined;
  const [first] = causes;
  return first?.situation === situation && (first?.reason ?? reason) === reason
    ? undefined
    : `${reason}, not ${first?.mistake ?? "nothing"} at ${first?.at}`;
}

describe.each(kinds)("%s", (kind) => {
  test("that is good has nothing wrong", async () => {
    const { causes } = await judge(bodies[kind], operationOf(kind));
    expect(causes).toEqual([]);
  });

  test("with one member changed is explained as it is refused", async () => {
    const silent: string[] = [];
    for (const [path, value] of changes) {
      const body = changed(bodies[kind], path, value);
      const found = body && (await findSilent(body, operationOf(kind)));
      if (found !== undefined) silent.push(`${path} ${JSON.stringify(value)}: ${found}`);
    }
    expect(silent).toEqual([]);
  });
});

test("several changes at once are explained", async () => {
  const some = fc.uniqueArray(fc.constantFrom(...changes), { minLength: 2, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...kinds), some, async (kind, several) => {
      const body = several.reduce((one, [path, value]) => changed(one, path, value) ?? one, bodies[kind]);
      expect(await findSilent(body, operationOf(kind))).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});
