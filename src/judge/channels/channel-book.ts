import type { IncomingHttpHeaders } from "node:http";
import type { ChannelConfig } from "../../methods/batch-settlement/channel.ts";
import { channelPayloadSchema } from "../../methods/batch-settlement/channel-schemas.ts";
import type { WrittenRequirements } from "../../methods/build-request.ts";
import type { Hex } from "../../protocol/hex.ts";
import { decodeHeader, encodeHeader } from "../../protocol/payment-headers.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { postPayment } from "../scene/offers.ts";

/*
 * A shop's record of its channels: the newest voucher of each, and how much was charged. Used by the shops of `judge
 * client`.
 */

/** A voucher that arrived in a header, with the deposit that came with it. */
export type ChannelPayment = {
  paymentPayload: object;
  config: ChannelConfig;
  id: Hex;
  /** The voucher's ceiling: the most that may be claimed from the channel in total. */
  max: bigint;
  signature: Hex;
  /** `key` identifies the deposit: equal deposits have equal keys. */
  deposit?: { amount: bigint; key: string };
};

/** Reads the payment in a request's headers. Returns undefined if there is none, or if it is not a purchase on a channel. */
export function readChannelPayment(headers: IncomingHttpHeaders): ChannelPayment | undefined {
  const paymentPayload = membersOf(decodeHeader(String(headers["payment-signature"] ?? "")));
  const { data } = channelPayloadSchema.safeParse(paymentPayload.payload);
  if (data?.type !== "deposit" && data?.type !== "voucher") return undefined;
  const { channelConfig: config, voucher } = data;
  const { channelId, maxClaimableAmount: max, signature } = voucher;
  const read = { paymentPayload, config, id: channelId.toLowerCase() as Hex, max, signature };
  if (data.type === "voucher") return read;
  const { amount, authorization } = data.deposit;
  const [signed] = Object.values(authorization);
  return { ...read, deposit: { amount, key: String(membersOf(signed).signature) } };
}

/** A channel as its shop knows it. */
export type BookedChannel = {
  charged: bigint;
  balance: bigint;
  signed?: Pick<ChannelPayment, "max" | "signature">;
};

/** The error of a 402 that corrects a buyer. Facilitators never return it. */
const mismatch = "invalid_batch_settlement_evm_cumulative_amount_mismatch";

type BookOptions = {
  /** Ends in `/v1`. */
  facilitatorUrl: string;
  apiKey: string;
  /** The offer in the 402. */
  requirements: WrittenRequirements & { amount: string };
  resource: string;
};

export type ChannelBook = ReturnType<typeof createChannelBook>;

/** Creates a book without channels. */
export function createChannelBook({ facilitatorUrl, apiKey, requirements, resource }: BookOptions) {
  const channels = new Map<Hex, BookedChannel>();
  const deposited = new Set<string>();
  const { network } = requirements;

  async function ask(operation: "verify" | "settle", paymentPayload: object) {
    const body = { x402Version: 2, paymentPayload, paymentRequirements: requirements };
    const answer = await postPayment(operation, facilitatorUrl, apiKey, JSON.stringify(body));
    return membersOf(parseJson(answer.text));
  }

  function channelOf({ id }: Pick<ChannelPayment, "id">): BookedChannel {
    const channel = channels.get(id) ?? { charged: 0n, balance: 0n };
    channels.set(id, channel);
    return channel;
  }

  const isDeposited = ({ deposit }: ChannelPayment) => deposit !== undefined && deposited.has(deposit.key);

  const stateOf = ({ id }: ChannelPayment, charged: bigint) => ({
    channelId: id,
    balance: `${channelOf({ id }).balance}`,
    totalClaimed: "0",
    withdrawRequestedAt: 0,
    refundNonce: "0",
    chargedCumulativeAmount: `${charged}`,
  });

  return {
    channelOf,
    /** Asks the facilitator why a payment is refused; undefined if it is valid. Leaves out a deposit settled before. */
    async refusal(payment: ChannelPayment): Promise<string | undefined> {
      const { paymentPayload, config: channelConfig } = payment;
      const { voucher } = membersOf(membersOf(paymentPayload).payload);
      const alone = { ...paymentPayload, payload: { type: "voucher", channelConfig, voucher } };
      const { isValid, invalidReason } = await ask("verify", isDeposited(payment) ? alone : paymentPayload);
      return isValid === true ? undefined : String(invalidReason);
    },
    /** Settles the payment's deposit, if it has an unsettled one. Returns why that failed; otherwise undefined. */
    async settle(payment: ChannelPayment): Promise<string | undefined> {
      const { deposit, paymentPayload } = payment;
      if (deposit === undefined || isDeposited(payment)) return undefined;
      const { success, errorReason } = await ask("settle", paymentPayload);
      if (success !== true) return String(errorReason);
      deposited.add(deposit.key);
      channelOf(payment).balance += deposit.amount;
      return undefined;
    },
    /** Records a charge against a voucher. */
    charge(payment: ChannelPayment, amount: bigint): void {
      const channel = channelOf(payment);
      channel.charged += amount;
      channel.signed = payment;
    },
    /** The header of a successful response. `said` replaces the true sums. */
    receipt(
      payment: ChannelPayment,
      amount: bigint,
      said: { charged?: bigint; total?: bigint } = {},
    ): string {
      const { charged = amount, total = channelOf(payment).charged } = said;
      const extra = { chargedAmount: `${charged}`, channelState: stateOf(payment, total) };
      const { payer } = payment.config;
      return encodeHeader({ success: true, transaction: "", amount: "", network, payer, extra });
    },
    /** The header of a 402 without channel state. */
    challenge: (error: string) => challengeWith(error, {}),
    /** The header of the 402 that corrects a buyer: the charges, proven by its own newest voucher. `said` replaces either. */
    correction(payment: ChannelPayment, said: { charged?: bigint; signed?: bigint } = {}): string {
      const { charged, signed } = channelOf(payment);
      const voucherState = signed && {
        signedMaxClaimable: `${said.signed ?? signed.max}`,
        signature: signed.signature,
      };
      const channelState = stateOf(payment, said.charged ?? charged);
      return challengeWith(mismatch, { channelState, voucherState });
    },
  };

  function challengeWith(error: string, more: object): string {
    const accepts = [{ ...requirements, extra: { ...requirements.extra, ...more } }];
    const sold = { url: resource, description: "", mimeType: "application/json" };
    return encodeHeader({ x402Version: 2, error, resource: sold, accepts });
  }
}
