import { type Chain, leastTransactionCount } from "../../chain/chain.ts";
import { estimateFees, type Fees, feeCap, isReplacementDue, raiseFees, smaller } from "../../chain/fees.ts";
import type { CoinSigner } from "../../chain/signing/local-signer.ts";
import { findLimit, type Gift, type Gifts, type Receiver } from "../../ledger/gifts.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import type { GiftRefusal, Metrics } from "../../observe/metrics/metrics.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";

/** The most that is given, in wei: per gift, and per day (UTC). */
export type GiftLimits = { each: bigint; daily: bigint };

/**
 * The gas money that a payer's approval lacks (`wei`), the part of it for a rollup's data fee (`forData`, in wei),
 * and the gas limit.
 */
export type GasLack = { wei: bigint; forData: bigint; gas: bigint };

/** The account a gift is charged to: that of the organization whose payment it is given for. */
export type GiftAccount = {
  organizationId: string;
  /**
   * Runs `give` if the organization's gas budget covers this amount, in wei.
   *
   * @throws GasBudgetError when it does not; then nothing was done
   */
  within<T>(wei: bigint, give: () => Promise<T>): Promise<T>;
};

/**
 * Gives payers the gas money that their approval lacks, once per payer and token. A gift is signed and stored before it is
 * sent, and sent again until it is mined, so that a crash neither gives anything twice nor loses a promised gift.
 */
export type Sponsor = {
  /** Returns true if this amount would be given now, or is already on its way. Sends nothing, and ignores the gas budget. */
  wouldGive(
    receiver: Omit<Receiver, "chainId">,
    lack: GasLack,
    organizationId: string | undefined,
  ): Promise<boolean>;
  /** Returns true if the receiver was given something within the last hour, by any request. */
  gaveLately(receiver: Omit<Receiver, "chainId">): Promise<boolean>;
  /**
   * Gives it, or sends an earlier gift again that is not mined. Returns false if nothing is given, or an earlier
   * gift is already mined.
   *
   * @throws GasBudgetError when the organization's gas budget does not cover it; then nothing was given
   */
  give(receiver: Omit<Receiver, "chainId">, lack: GasLack, account: GiftAccount): Promise<boolean>;
  /** The amount given by all instances since the day (UTC) began, and the daily limit, in wei. */
  today(): Promise<{ given: bigint; limit: bigint }>;
};

const latelyMs = 60 * 60 * 1000;

/** The log lines for gifts that are refused. */
const giftRefusals: Readonly<Record<GiftRefusal, string>> = {
  payment: "a payer's approval lacks more gas money than MAX_GIFT, or than an approval costs at the moment",
  day: "DAILY_GIFTS is used up: payers without gas money are told to approve by themselves",
  organization: "an organization's payers were given their part of DAILY_GIFTS: the rest is kept for others",
  coins: "the sponsor has no coins left to give",
};

/** A transfer of coins to an account without code. */
const transferGas = 21_000n;

/** Approvals signed by public clients use some 50,000. */
const mostApprovalGas = 70_000n;

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
  metrics: Pick<Metrics, "gift" | "giftRefused">;
  now: () => number;
  log: ServiceLog;
}): Sponsor {
  const { network } = chain;
  const { chainId } = network;
  const sender = { chainId, address: signer.address };
  const { currentFees, sign, isDue, sendOpen } = createSending({ chain, signer, gifts, now });

  /** Counts and logs a refused gift. */
  function refuse(wei: bigint, reason: GiftRefusal, organization: string | undefined): undefined {
    metrics.giftRefused(network.name, reason);
    // The other reasons depend on requests by strangers: the metric counts them, and an alert reports them.
    const level = reason === "coins" ? "error" : "info";
    const facts = { network: network.name, sponsor: signer.address, wei: `${wei}`, organization };
    log[level](facts, giftRefusals[reason]);
    return undefined;
  }

  /** The fees of a gift and its maximum cost; undefined if it exceeds a limit or the sponsor's balance. */
  async function priceOf(
    { wei, forData, gas }: GasLack,
    organizationId: string | undefined,
  ): Promise<{ fees: Fees; cost: bigint } | undefined> {
    if (wei > limits.each) return refuse(wei, "payment", organizationId);
    const reached = findLimit(wei, await gifts.givenOn(sender, now(), organizationId), limits.daily);
    if (reached !== undefined) return refuse(wei, reached, organizationId);
    const [fees, highest, { balances, settleCost: dataFee }] = await Promise.all([
      currentFees(),
      chain.highestFees(),
      chain.gasMoney([signer.address], { gas: 0n, bytes: 0 }),
    ]);
    // The payer keeps what the approval leaves over, so its own offer must not set the size of the gift. It was
    // signed a while ago.
    const dearest = smaller(2n * highest.baseFeePerGas + highest.tip, network.maxFeePerGas);
    const isTooMuch = gas > mostApprovalGas || wei > mostApprovalGas * dearest + forData;
    if (isTooMuch) return refuse(wei, "payment", organizationId);
    const [coins = 0n] = balances;
    const cost = wei + transferGas * fees.maxFeePerGas + dataFee;
    return coins < cost ? refuse(wei, "coins", organizationId) : { fees, cost };
  }

  /** Signs a gift and stores it. Returns true even if another request has just done so; false if nothing is given. */
  async function keep(
    receiver: Omit<Receiver, "chainId">,
    lack: GasLack,
    mined: number,
    { organizationId, within }: GiftAccount,
  ): Promise<boolean> {
    const { wei } = lack;
    const price = await priceOf(lack, organizationId);
    if (price === undefined) return false;
    const { fees, cost } = price;
    const given = await within(cost, () =>
      gifts.give(
        { chainId, ...receiver, sponsor: signer.address, value: wei },
        { organizationId, network: network.name, cost },
        { mined, dailyLimit: limits.daily },
        (txNonce) => sign(receiver.payer, wei, txNonce, fees),
      ),
    );
    if (given === "given_before") return true;
    if (typeof given === "string") {
      refuse(wei, given, organizationId);
      return false;
    }
    metrics.gift(network.name, wei);
    const { payer, hash } = given;
    const facts = { network: network.name, payer, hash, wei: `${wei}`, organization: organizationId };
    log.info(facts, "gave gas money for an approval");
    return true;
  }

  return {
    async today() {
      const { total } = await gifts.givenOn(sender, now());
      return { given: total, limit: limits.daily };
    },

    async wouldGive(receiver, lack, organizationId) {
      const known = await gifts.find({ chainId, ...receiver });
      if (known === null) return (await priceOf(lack, organizationId)) !== undefined;
      return known.txNonce >= (await leastTransactionCount(chain, known.sponsor));
    },

    async gaveLately(receiver) {
      const known = await gifts.find({ chainId, ...receiver });
      return known !== null && now() - known.givenAt < latelyMs;
    },

    async give(receiver, lack, account) {
      const known = await gifts.find({ chainId, ...receiver });
      // The sponsor's key may have been replaced since.
      const giver = known?.sponsor ?? signer.address;
      const mined = await leastTransactionCount(chain, giver);
      const isGiven = known === null ? await keep(receiver, lack, mined, account) : known.txNonce >= mined;
      if (isGiven && (known === null || isDue(known))) await sendOpen(giver, mined);
      return isGiven;
    },
  };
}

/** Signs transfers, and sends stored ones until they are mined. */
function createSending({
  chain,
  signer,
  gifts,
  now,
}: {
  chain: Chain;
  signer: CoinSigner;
  gifts: Gifts;
  now: () => number;
}) {
  const { network } = chain;
  const { chainId } = network;

  async function currentFees(): Promise<Fees> {
    const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
    return estimateFees(head, network, tip);
  }

  function sign(to: Address, value: bigint, nonce: number, fees: Fees) {
    return signer.signTransfer({ chainId, nonce, to, value, gas: transferGas, data: "0x", ...fees });
  }

  /** Raises the fees of a gift that has waited long for a block. The new bytes are stored before they are sent. */
  async function renew(gift: Gift): Promise<Gift> {
    if (!sameAddress(gift.sponsor, signer.address)) return gift;
    if (!isReplacementDue(network, now() - gift.givenAt)) return gift;
    const fees = raiseFees(gift, await currentFees(), feeCap(network, "settle"));
    if (fees === undefined) return gift;
    const renewed = await sign(gift.payer, gift.value, gift.txNonce, fees);
    const more = transferGas * (fees.maxFeePerGas - gift.maxFeePerGas);
    // Otherwise another request has just replaced it, and sends its own version.
    return (await gifts.replace(gift, renewed, { network: network.name, more }))
      ? { ...gift, ...renewed }
      : gift;
  }

  /** When this process may send a transaction again: one block time after it last did, for any request. */
  let sendAgainAt = new Map<Hex, number>();
  const isDue = ({ hash }: Gift) => (sendAgainAt.get(hash) ?? 0) <= now();

  /** Sends the gifts that may not be mined, in the order of their nonces: each waits for the one before. */
  async function sendOpen(giver: Address, mined: number): Promise<void> {
    const open = await Promise.all((await gifts.open({ chainId, address: giver }, mined)).map(renew));
    const due = open.filter(isDue);
    if (due.length === 0) return;
    const next = now() + network.blockTimeMs;
    sendAgainAt = new Map(
      open.map((gift) => [gift.hash, isDue(gift) ? next : (sendAgainAt.get(gift.hash) ?? 0)]),
    );
    const raw = due.map((gift) => gift.raw);
    await chain.broadcast(raw, { everywhere: true, hashes: due.map(({ hash }) => hash) });
  }

  return { currentFees, sign, isDue, sendOpen };
}
