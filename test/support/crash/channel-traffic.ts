import { setTimeout as wait } from "node:timers/promises";
import { createPublicClient, http } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { mockBatchSettlementAbi } from "../../../src/contracts/mockBatchSettlement.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import type { ChannelConfig } from "../../../src/methods/batch-settlement/channel.ts";
import { batchSettlementAddress } from "../../../src/methods/batch-settlement/contracts.ts";
import {
  configFor,
  signDeposit,
  signPurchase,
  type WrittenVoucher,
} from "../../../src/methods/batch-settlement/sign-channel.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import type { Operation } from "../../../src/protocol/problems.ts";
import type { JsonResponse } from "../../../src/util/http-client.ts";
import { channelAction, channelRequirements, readChannelState } from "../channels.ts";
import type { Random } from "../random.ts";
import type { Body } from "../service.ts";
import type { Findings } from "../tally.ts";

/** A shop that sells on channels, one after the other. */
export type ChannelTraffic = {
  /** Opens a channel, sells on it, and at random claims, requests the payout, and refunds the rest. */
  sell(): Promise<void>;
  /** Claims everything that was charged, requests the payout, and compares the channels with the chain. */
  finish(): Promise<Findings>;
  readonly channels: number;
};

/** A channel, with everything its shop knows about it, in the token's smallest unit. */
type Sold = {
  config: ChannelConfig;
  voucher: WrittenVoucher;
  charged: bigint;
  refunded: bigint;
};

const price = 1_000n;
const deposited = 10_000n;

/** How long honest requests may be refused: a replaced block, or a node that is behind, hides a deposit. */
const patienceMs = 30_000;

/** @param ask sends a request to the service; undefined if there was no response */
export async function createChannelTraffic(
  chain: HarnessChain,
  ask: (operation: Operation, body: Body) => Promise<JsonResponse | undefined>,
  {
    buyers,
    random,
    receiverAuthorizer = harnessAccounts.authorizer.address,
  }: { buyers: number; random: Random; receiverAuthorizer?: Hex },
): Promise<ChannelTraffic> {
  const { asset, network } = chain;
  const { address: receiver } = harnessAccounts.recipient;
  const requirements = channelRequirements(chain, { receiver, receiverAuthorizer, amount: `${price}` });
  const findings: Findings = { lost: [], paidTwice: [], wrongAnswers: [] };
  const sold: Sold[] = [];
  /** The channels whose deposit succeeded; a shop claims from no others. */
  const opened: Sold[] = [];
  const fresh: ReturnType<typeof privateKeyToAccount>[] = [];
  while (fresh.length < buyers) {
    const account = privateKeyToAccount(generatePrivateKey());
    await chain.fund(account.address, deposited);
    fresh.push(account);
  }

  const bodyOf = (payload: object): Body => ({
    x402Version: 2,
    paymentPayload: { x402Version: 2, accepted: requirements, payload },
    paymentRequirements: requirements,
  });

  /**
   * Sends a request until it succeeds, or is refused for too long. `isDone`: true if a refused request was executed
   * before.
   */
  async function insist(
    operation: Operation,
    body: Body,
    what: string,
    isDone: (reason: string) => Promise<boolean> | boolean = () => false,
  ): Promise<boolean> {
    let refusedSince: number | undefined;
    for (;;) {
      const { status, body: told } = (await ask(operation, body)) ?? {};
      const { success, isValid, errorReason, invalidReason, errorMessage, invalidMessage } = Object(told);
      if (success === true || isValid === true) return true;
      const reason = errorReason ?? invalidReason;
      const isRefusal = status === 200 && typeof reason === "string";
      if (isRefusal && (await isDone(reason))) return true;
      // If two request the same payout at once, one is told that it was made; asked again, it learns that there is
      // nothing to pay.
      refusedSince = isRefusal ? (refusedSince ?? performance.now()) : undefined;
      if (refusedSince !== undefined && performance.now() - refusedSince > patienceMs) {
        findings.wrongAnswers.push(`${what}: ${errorMessage ?? invalidMessage}`);
        return false;
      }
      await wait(100);
    }
  }

  /** The first success of a deposit may have been lost; the token knows that it was made. */
  const isMade = (reason: string) => /nonce_already_used|authorization_used|settled_before/.test(reason);
  const isClaimed = (reason: string) => reason.endsWith("cumulative_below_claimed");
  const isPaidOut = (reason: string) => reason.endsWith("nothing_to_settle");

  const rowOf = ({ config, voucher, charged }: Sold) => ({
    voucher: { channel: config, maxClaimableAmount: voucher.maxClaimableAmount },
    signature: voucher.signature,
    totalClaimed: `${charged}`,
  });
  const claim = (some: readonly Sold[]) =>
    insist(
      "settle",
      channelAction(chain, receiver, { type: "claim", claims: some.map(rowOf) }),
      `claim of ${some.map(({ voucher }) => voucher.channelId).join()}`,
      isClaimed,
    );
  const payOut = () => {
    const payload = { type: "settle", receiver, token: asset.address };
    return insist("settle", channelAction(chain, receiver, payload), "payout", isPaidOut);
  };

  async function payBack(channel: Sold): Promise<void> {
    const { config, voucher, charged } = channel;
    const rest = deposited - charged;
    const terms = { channelConfig: config, voucher, amount: `${rest}`, refundNonce: "0" };
    const payload = { type: "refund", ...terms, claims: [rowOf(channel)] };
    // A node that is behind knows neither the deposit nor the refund.
    const isBack = async () => (await readChannelState(chain, voucher.channelId))[0] === charged;
    const body = channelAction(chain, receiver, payload);
    if (await insist("settle", body, `refund of ${voucher.channelId}`, isBack)) channel.refunded = rest;
  }

  return {
    async sell() {
      const account = fresh.pop();
      if (account === undefined) {
        await wait(100);
        return;
      }
      const offer = { asset, payTo: receiver, extra: requirements.extra };
      const config = configFor({ address: account.address }, offer);
      const purchase = { config, chainId: network.chainId };
      const validBefore = (await chain.now()) + 86_400n;
      const payload = await signDeposit(
        account,
        { ...purchase, max: price },
        { asset, transfer: "eip3009", amount: deposited, validBefore },
      );
      const channel: Sold = { config, voucher: payload.voucher, charged: price, refunded: 0n };
      sold.push(channel);
      if (!(await insist("settle", bodyOf(payload), `deposit of ${account.address}`, isMade))) return;
      opened.push(channel);
      for (let purchases = random.between(0, 5); purchases > 0; purchases--) {
        const next = await signPurchase(account, { ...purchase, max: channel.charged + price });
        if (!(await insist("verify", bodyOf(next), `voucher of ${next.voucher.channelId}`))) break;
        channel.voucher = next.voucher;
        channel.charged += price;
      }
      // Some with others that were claimed before, some later, some as part of the refund.
      if (random.between(0, 2) === 0) await claim([...new Set([...opened.slice(-3), channel])]);
      if (random.between(0, 3) === 0) await payOut();
      if (random.between(0, 1) === 0) await payBack(channel);
    },

    async finish() {
      for (let index = 0; index < sold.length; index += 50) await claim(sold.slice(index, index + 50));
      await payOut();
      for (const { voucher, charged, refunded } of sold) {
        const { channelId } = voucher;
        const [balance, claimed] = await readChannelState(chain, channelId);
        const is = `${channelId}: charged ${charged}, claimed ${claimed}, balance ${balance}, refunded ${refunded}`;
        if (claimed < charged) findings.lost.push(is);
        if (claimed > charged) findings.paidTwice.push(is);
        if (balance < deposited - refunded) findings.lost.push(is);
        if (balance > deposited - refunded) findings.paidTwice.push(is);
      }
      const [claimed, paid] = await createPublicClient({ transport: http(chain.rpcUrl) }).readContract({
        ...{ address: batchSettlementAddress, abi: mockBatchSettlementAbi },
        functionName: "receivers",
        args: [receiver, asset.address],
      });
      if (paid !== claimed) findings.lost.push(`${paid} of ${claimed} was paid out`);
      return findings;
    },

    get channels() {
      return sold.length;
    },
  };
}
