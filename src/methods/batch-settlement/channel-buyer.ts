import { type Address, type Hex, isBytes, keccak256Text, sameAddress, wordAt } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { parseUint256, propertyOf } from "../../protocol/wire-values.ts";
import { KitError } from "../../util/errors.ts";
import type { PaymentSigner } from "../payer-terms.ts";
import { type ChannelConfig, channelId, voucherDigest } from "./channel.ts";
import { batchSettlementAddress } from "./contracts.ts";
import {
  type ChannelOffer,
  configFor,
  type DepositTerms,
  depositFor,
  signDeposit,
  signPurchase,
} from "./sign-channel.ts";

/*
 * A buyer that reuses its channels: it deposits once, signs a voucher for each purchase, and deposits again if the rest does
 * not cover the price. It reads the balance from the chain each time, and learns what was charged from the shop's receipts.
 */

/** An offer to pay from a channel. `value` is the price, in the token's smallest unit. */
export type PurchaseOffer = ChannelOffer & {
  chainId: number;
  asset: Pick<Asset, "address" | "name" | "version">;
  value: bigint;
  /** The maximum deposit, unless the price needs more. */
  most?: bigint | undefined;
  transfer: DepositTerms["transfer"];
  /** The deadline for submitting a deposit, in unix seconds. */
  until: bigint;
};

/** The functions that a buyer needs besides its signer. */
export type ChannelTools = {
  /** Calls a contract on a chain at the newest block. */
  call(chainId: number, to: Address, data: Hex): Promise<unknown>;
  /** Recovers the key that signed a digest. */
  recover(digest: Hex, signature: Hex): Address | undefined;
};

/** A purchase that is signed but not answered yet. */
export type SignedPurchase = {
  /** `paymentPayload.payload`. */
  payload: object;
  /** Learns from a success how much the shop charged; `receipt` is its `PAYMENT-RESPONSE`. */
  learn(receipt: unknown): void;
  /**
   * Learns from a second 402 how much was charged before, if the shop proves it with this payer's own voucher.
   *
   * @returns true if that is news: the purchase may succeed if it is signed again
   */
  recover(challenge: unknown): boolean;
};

type SignedDeposit = Awaited<ReturnType<typeof signDeposit>>;

export type ChannelBuyer = {
  /**
   * Signs a purchase: a voucher, with a deposit if the channel does not cover it.
   *
   * @throws {KitError} if the offer has no receiverAuthorizer, or the chain cannot be read
   */
  sign(offer: PurchaseOffer): Promise<SignedPurchase>;
};

/** Creates a buyer without any state. Purchases on one channel must be sequential. */
export function createChannelBuyer(signer: PaymentSigner, { call, recover }: ChannelTools): ChannelBuyer {
  const chargedBy = new Map<Hex, bigint>();
  /** Deposits to reuse when their purchase is signed again: the shop could submit both the old and a new one. */
  const refused = new Map<Hex, SignedDeposit>();

  return {
    async sign(offer) {
      const { chainId, value, extra, most } = offer;
      const config = configFor(signer, offer);
      const id = channelId(config, chainId);
      const earlier = refused.get(id);
      refused.delete(id);
      const { balance, claimed } = await readSums(id, (to, data) => call(chainId, to, data));
      const charged = larger(chargedBy.get(id) ?? 0n, claimed);
      const purchase = { config, chainId, max: charged + value };
      const missing = purchase.max - balance;
      const signFunded = async (): Promise<SignedDeposit> => {
        if (earlier !== undefined && BigInt(earlier.deposit.amount) >= missing) {
          return { ...earlier, voucher: (await signPurchase(signer, purchase)).voucher };
        }
        const suggested = depositFor(value, extra, missing);
        const amount = most !== undefined && suggested > most ? larger(missing, most) : suggested;
        return signDeposit(signer, purchase, { ...offer, amount, validBefore: offer.until });
      };
      const deposit = missing > 0n ? await signFunded() : undefined;
      const payload = deposit ?? (await signPurchase(signer, purchase));
      return {
        payload,
        learn(receipt) {
          const amount = amountOf(propertyOf(receipt, "extra"), "chargedAmount");
          // Ignore a charge above the agreed price: the next voucher then builds on the total before it.
          if (amount !== undefined && amount <= value) chargedBy.set(id, charged + amount);
        },
        recover(challenge) {
          const proven = provenCharge(challenge, { config, chainId, recover });
          if (proven === undefined) return false;
          // A shop cannot charge more than the channel holds. If its claim is true, this deposit covers the purchase.
          if (deposit !== undefined && proven + value > balance + BigInt(deposit.deposit.amount))
            return false;
          chargedBy.set(id, proven);
          if (larger(proven, claimed) === charged) return false;
          if (deposit !== undefined) refused.set(id, deposit);
          return true;
        },
      };
    },
  };
}

/**
 * Reads the balance of a channel, and how much of it the shop has claimed.
 *
 * @param call calls a contract on the chain
 * @throws {KitError} if the chain does not have the contract
 */
export async function readSums(
  id: Hex,
  call: (to: Address, data: Hex) => Promise<unknown>,
): Promise<{ balance: bigint; claimed: bigint }> {
  const result = await call(batchSettlementAddress, `0x${channelsSelector}${id.slice(2)}`);
  const [balance, claimed] = isBytes(result) ? [wordAt(result, 0), wordAt(result, 1)] : [];
  if (balance === undefined || claimed === undefined) {
    throw new KitError("The chain has no contract of scheme batch-settlement", {
      hints: [`It stands at ${batchSettlementAddress}, on chains with the rules of Cancun.`],
    });
  }
  return { balance: BigInt(`0x${balance}`), claimed: BigInt(`0x${claimed}`) };
}

const larger = (one: bigint, other: bigint) => (one > other ? one : other);

const channelsSelector = keccak256Text("channels(bytes32)").slice(2, 10);

const amountOf = (members: unknown, name: string): bigint | undefined => {
  const text = propertyOf(members, name);
  return (typeof text === "string" ? parseUint256(text) : null) ?? undefined;
};

/** The charged total in a 402, if a voucher for this channel proves it. */
function provenCharge(
  challenge: unknown,
  { config, chainId, recover }: { config: ChannelConfig; chainId: number; recover: ChannelTools["recover"] },
): bigint | undefined {
  const accepts = propertyOf(challenge, "accepts");
  for (const offer of Array.isArray(accepts) ? accepts : []) {
    const extra = propertyOf(offer, "extra");
    const voucher = propertyOf(extra, "voucherState");
    const charged = amountOf(propertyOf(extra, "channelState"), "chargedCumulativeAmount");
    const signed = amountOf(voucher, "signedMaxClaimable");
    const signature = propertyOf(voucher, "signature");
    if (charged === undefined || signed === undefined || !isBytes(signature) || charged > signed) continue;
    const signer = recover(voucherDigest(channelId(config, chainId), signed, chainId), signature);
    if (signer !== undefined && sameAddress(signer, config.payerAuthorizer)) return charged;
  }
  return undefined;
}
