import type { Chain } from "../../chain/chain.ts";
import { estimateFees, type Fees, feeCap, isReplacementDue, raiseFees } from "../../chain/fees.ts";
import type { CoinSigner } from "../../chain/signing/signer.ts";
import type { Gift, Gifts, Receiver } from "../../ledger/gifts.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { Metrics } from "../../observe/metrics/metrics.ts";
import type { Address } from "../../protocol/hex.ts";

/** The most that is given, in wei: at once, and on one day (UTC). */
export type GiftLimits = { each: bigint; daily: bigint };

/**
 * Gives payers the gas money that their approval lacks: once for each payer and token, signed and kept before it is sent. What
 * was kept is sent again as often as it takes, so that no death of a process gives anything twice, or loses what was promised.
 */
export type Sponsor = {
  /** Whether so much would be given now, or is on its way already. Sends nothing. */
  wouldGive(receiver: Omit<Receiver, "chainId">, wei: bigint): Promise<boolean>;
  /** Whether it was given something within the last hour, by whichever request. */
  gaveLately(receiver: Omit<Receiver, "chainId">): Promise<boolean>;
  /** Gives it, or sends again what was given and is not mined. False where nothing is given, or it was before, and is spent. */
  give(receiver: Omit<Receiver, "chainId">, wei: bigint): Promise<boolean>;
};

const latelyMs = 60 * 60 * 1000;

/** A transfer of coins to an account without code. */
const transferGas = 21_000n;

export function createSponsor({
  chain,
  signer,
  gifts,
  limits,
  metrics,
  now,
  log,
}: {
  chain: Chain;
  signer: CoinSigner;
  gifts: Gifts;
  limits: GiftLimits;
  metrics: Pick<Metrics, "gift">;
  now: () => number;
  log: ServiceLog;
}): Sponsor {
  const { network } = chain;
  const { chainId } = network;
  const sender = { chainId, address: signer.address };

  async function currentFees(): Promise<Fees> {
    const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
    return estimateFees(head, network, tip);
  }

  function sign(to: Address, value: bigint, nonce: number, fees: Fees) {
    return signer.signTransfer({ ...{ chainId, nonce, to, value, gas: transferGas, data: "0x" }, ...fees });
  }

  /** The same gift, paying more where it has waited long for a block: the bytes that are sent are kept first. */
  async function renew(gift: Gift): Promise<Gift> {
    if (!isReplacementDue(network, now() - gift.givenAt)) return gift;
    const fees = raiseFees(gift, await currentFees(), feeCap(network, "settle"));
    if (fees === undefined) return gift;
    const renewed = await sign(gift.payer, gift.value, gift.txNonce, fees);
    await gifts.replace(gift, renewed);
    return { ...gift, ...renewed };
  }

  /** Sends what may not be mined, in the order of the txNonces: each waits for the one before. */
  async function sendOpen(mined: number): Promise<void> {
    const open = await Promise.all((await gifts.open(sender, mined)).map(renew));
    const raw = open.map((gift) => gift.raw);
    await chain.broadcast(raw, { everywhere: true, hashes: open.map(({ hash }) => hash) });
  }

  /** What a gift offers for its gas; undefined where so much is not given, or the sponsor does not have it. */
  async function feesToGive(wei: bigint): Promise<Fees | undefined> {
    if (wei > limits.each || (await gifts.givenOn(sender, now())) + wei > limits.daily) return undefined;
    const [fees, coins] = await Promise.all([currentFees(), chain.nativeBalance(signer.address)]);
    if (coins >= wei + transferGas * fees.maxFeePerGas) return fees;
    log.error({ network: network.name, sponsor: signer.address }, "the sponsor has no coins left to give");
    return undefined;
  }

  return {
    async wouldGive(receiver, wei) {
      const known = await gifts.find({ chainId, ...receiver });
      if (known === null) return (await feesToGive(wei)) !== undefined;
      return known.txNonce >= (await chain.transactionCount(known.sponsor));
    },

    async gaveLately(receiver) {
      const known = await gifts.find({ chainId, ...receiver });
      return known !== null && now() - known.givenAt < latelyMs;
    },

    async give(receiver, wei) {
      const mined = await chain.transactionCount(signer.address);
      const known = await gifts.find({ chainId, ...receiver });
      if (known !== null && known.txNonce < mined) return false;
      if (known === null) {
        const fees = await feesToGive(wei);
        if (fees === undefined) return false;
        const given = await gifts.give(
          { chainId, ...receiver, sponsor: signer.address, value: wei },
          { mined, dailyLimit: limits.daily },
          (txNonce) => sign(receiver.payer, wei, txNonce, fees),
        );
        if (given === "limit_reached") return false;
        if (given !== "given_before") {
          const { payer, hash } = given;
          metrics.gift(network.name, wei);
          log.info({ network: network.name, payer, hash, wei: `${wei}` }, "gave gas money for an approval");
        }
      }
      await sendOpen(mined);
      return true;
    },
  };
}
