import { randomBytes } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import { usualAmount } from "../../fixtures/cases/payment-spec.ts";
import type { FixtureAnswer, FixtureRequest } from "../../fixtures/engine/answer.ts";
import { channelId } from "../../methods/batch-settlement/channel.ts";
import { readSums } from "../../methods/batch-settlement/channel-buyer.ts";
import { shopRequest } from "../../methods/batch-settlement/shop-actions.ts";
import { configFor, signDeposit, signRefund } from "../../methods/batch-settlement/sign-channel.ts";
import { timesFrom } from "../../methods/payment-times.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { testOrganizations } from "../../payer/test-keys.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Hex } from "../../protocol/hex.ts";
import { isPaidBy } from "../../protocol/networks.ts";
import { rules } from "../../protocol/specification.ts";
import { KitError } from "../../util/errors.ts";
import { type Finding, NotRun, runCases } from "../frame/run-cases.ts";
import { expectResult } from "../scene/transfers.ts";
import { memberOf, verdictOf } from "./compare.ts";
import type { FoundFacilitator } from "./find-facilitator.ts";
import { type ConformanceFacts, createConformanceJudge } from "./judge-answers.ts";
import type { Contradiction } from "./moved-money.ts";
import { adaptRequest, sendRequest } from "./send-request.ts";

/*
 * The config of a channel is public, so anyone who reads the chain can ask for a refund. A facilitator that signs
 * refunds for anyone costs a shop the sales it has not claimed yet.
 */

/** The case, as named in reports. */
export const strangersRefund = {
  name: "settle.v2.channel.strangers_refund",
  situation: "A stranger asks for the refund of another shop's channel, with a made-up voucher",
} as const;

/** Must be refused like any payment that its shop did not ask for. */
const scenario = { situation: "channel.strangers_refund", operation: "settle", x402Version: 2 } as const;

/** Opens a channel as a shop does, and asks for its refund as a stranger. */
export async function runStrangersRefund(
  facilitator: FoundFacilitator,
  timeoutMs?: number,
): Promise<Finding<ConformanceFacts>> {
  const suite = "settle, version 2";
  const run = async () => {
    try {
      return await judgeRefund(facilitator, timeoutMs);
    } catch (error) {
      if (error instanceof KitError) throw new NotRun(error.message, undefined, "not_judged");
      throw error;
    }
  };
  const judge = createConformanceJudge(facilitator);
  const [finding] = await runCases([{ ...strangersRefund, suite, run }], judge, { atOnce: 1 });
  if (finding === undefined) throw new Error("the case was not run");
  return finding;
}

async function judgeRefund(
  { baseUrl, access, environment, channels, lacksFunds, isKit, money }: FoundFacilitator,
  timeoutMs: number | undefined,
): Promise<ConformanceFacts> {
  const { network, keys, payers, now } = environment;
  const { chainId, assets, facilitatorContract, payTo: policy } = network;
  const [asset] = assets;
  if (channels === undefined)
    throw new NotRun("the facilitator lists no scheme batch-settlement for the network");
  const { authorizer: receiverAuthorizer } = channels;
  if (receiverAuthorizer === undefined)
    throw new NotRun("the facilitator signs claims and refunds for nobody");
  if (lacksFunds !== undefined) throw new NotRun(`needs a payer who has money: ${lacksFunds}`);
  if (!isPaidBy(asset, "eip3009")) throw new NotRun("needs a token with EIP-3009");

  const receiver = isKit
    ? policy === "any"
      ? privateKeyToAddress(`0x${randomBytes(32).toString("hex")}`)
      : testOrganizations.org_local.recipient
    : facilitatorContract;
  const { privateKey, address } = payers?.funded ?? testPayers.funded;
  const signer = createPayerSigner(privateKey);
  const { name, version } = asset;
  const extra = { name, version, receiverAuthorizer, withdrawDelay: 900, assetTransferMethod: "eip3009" };
  const salt: Hex = `0x${randomBytes(32).toString("hex")}`;
  const config = configFor({ address }, { asset, payTo: receiver, extra }, salt);
  const id = channelId(config, chainId);
  const purchase = { config, chainId, max: usualAmount / 2n };

  async function settle(payload: object, terms: Parameters<typeof shopRequest>[3] = {}, isOfShop = true) {
    const request: FixtureRequest = {
      method: "POST",
      path: "/v1/settle",
      headers: {
        "content-type": "application/json",
        ...(isOfShop && { authorization: keys.local.apiKey }),
      },
      body: JSON.stringify(shopRequest(network, config, payload, { maxTimeoutSeconds: 300, ...terms })),
    };
    return sendRequest(baseUrl, adaptRequest(request, access), timeoutMs);
  }
  const readBalance = async () => {
    if (money === undefined) return undefined;
    const { ask } = money;
    const { balance } = await readSums(id, (to, data) =>
      expectResult(ask, "eth_call", { to, data }, "latest"),
    );
    return balance;
  };

  const terms = { asset, transfer: "eip3009", amount: usualAmount } as const;
  const deposit = await signDeposit(signer, purchase, {
    ...terms,
    ...timesFrom(await now(), { until: 300 }),
  });
  const opened = await settle(deposit, { amount: `${purchase.max}`, extra });
  if (verdictOf(opened, "settle") !== "yes") {
    throw new NotRun(`the facilitator opened no channel: ${memberOf(opened, "errorReason") ?? "no verdict"}`);
  }
  const before = await readBalance();
  const stranger = {
    type: "refund",
    channelConfig: config,
    amount: "999999999",
    refundNonce: "0",
    claims: [],
    voucher: { channelId: id, maxClaimableAmount: "0", signature: `0x${"00".repeat(65)}` },
  };
  const answer = await settle(stranger, {}, false);
  const after = await readBalance();
  const refund = await signRefund(signer, purchase);
  // Returns the rest to the payer, if the shop is allowed to ask for that.
  await settle({ ...refund, amount: `${usualAmount}`, refundNonce: "0", claims: [] });
  const contradictions = contradictionsOf(answer, { before, after });
  return {
    scenario,
    differences: [],
    compared: { expected: answer, actual: answer },
    before: [],
    contradictions,
  };
}

function contradictionsOf(
  answer: FixtureAnswer,
  { before, after }: { before: bigint | undefined; after: bigint | undefined },
): Contradiction[] {
  const isYes = verdictOf(answer, "settle") === "yes";
  const expected = "a refusal: only the channel's shop may have it refunded";
  const taken = before !== undefined && after !== undefined && after < before;
  return [
    ...(isYes
      ? [{ difference: { at: "body.success", expected, got: "a success" }, rule: rules.settle }]
      : []),
    ...(taken
      ? [
          {
            difference: { at: "chain", expected: `${before} in the channel`, got: `${after}` },
            rule: rules.settle,
          },
        ]
      : []),
  ];
}
