import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import { recoverSigner } from "../../../src/chain/signing/recover-signer.ts";
import { channelId, voucherDigest } from "../../../src/methods/batch-settlement/channel.ts";
import { readSums } from "../../../src/methods/batch-settlement/channel-buyer.ts";
import { configFor, signDeposit, signPurchase } from "../../../src/methods/batch-settlement/sign-channel.ts";
import { writePayload } from "../../../src/methods/build-request.ts";
import { findChallenge, readOffers } from "../../../src/payer/read-offer.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { headerOf } from "../../../src/payer/sign-payment.ts";
import { type Hex, isBytes, sameAddress } from "../../../src/protocol/hex.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { decodeHeader } from "../../../src/protocol/payment-headers.ts";
import { membersOf } from "../../../src/util/json.ts";
import { runAsCommand } from "./wrong-buyers.ts";

/*
 * Buyers for `judge client` that keep channels and run in the test's process: a careful one, and others that differ
 * from it by one fault each.
 */

export type ChannelBuyer = {
  /** Its mistake, in the words of the guide. */
  fault: string;
  /** The case that finds it. */
  foundBy: string;
  /** The voucher's ceiling; by default the previous charges plus the price. */
  ceiling?(purchase: { due: bigint; most: bigint }): bigint;
  /** The amount of a deposit; by default the limit. */
  deposit?(most: bigint): bigint;
  depositsAlways?: boolean;
  /** True if it knows nothing about its channel but its own deposits. */
  isBlind?: boolean;
  /** Its total after a receipt; by default increased by chargedAmount, unless that is above the price. */
  total?(receipt: { charged: bigint; said: bigint; state: bigint; price: bigint }): bigint;
  /** True if it believes a 402; by default if its own voucher proves the charge. */
  believes?(correction: { charged: bigint; signed: bigint; isOwn: boolean }): boolean;
  /** True if it signs another deposit when payment is requested again. */
  signsAnew?: boolean;
};

export const carefulChannelBuyer: ChannelBuyer = { fault: "none", foundBy: "none" };

export const wrongChannelBuyers: readonly ChannelBuyer[] = [
  {
    fault: "lets the shop claim its whole deposit from the first purchase on",
    foundBy: "on-one-deposit",
    ceiling: ({ most }) => most,
  },
  { fault: "deposits for every purchase", foundBy: "on-one-deposit", depositsAlways: true },
  {
    fault: "deposits more than it may spend",
    foundBy: "on-one-deposit",
    deposit: (most) => 2n * most,
  },
  {
    fault: "adds the price to its total, whatever was charged",
    foundBy: "charges-less",
    total: ({ charged, price }) => charged + price,
  },
  { fault: "forgets its channel when it ends", foundBy: "memory-lost", isBlind: true },
  {
    fault: "never learns from a 402 what was charged",
    foundBy: "memory-lost",
    believes: () => false,
  },
  {
    fault: "adds a chargedAmount that is above the price",
    foundBy: "charged-too-high",
    total: ({ charged, said }) => charged + said,
  },
  {
    fault: "copies its total from the receipt's channelState",
    foundBy: "total-too-high",
    total: ({ state }) => state,
  },
  {
    fault: "takes its own voucher for the proof of any charge",
    foundBy: "state-above-voucher",
    believes: ({ isOwn }) => isOwn,
  },
  {
    fault: "does not look who has signed the voucher of a 402",
    foundBy: "state-unproven",
    believes: ({ charged, signed }) => charged <= signed,
  },
  { fault: "signs another deposit when it is asked again", foundBy: "deposit-kept", signsAnew: true },
];

const networks = builtInNetworks.all.map((network) => ({ ...network, asset: network.usdc }));

const number = (members: unknown, name: string) => BigInt(String(membersOf(members)[name] ?? 0));

const mostAttempts = 3;

/** Runs a buyer like a command, with a command's variables. */
export const startChannelBuyer = (buyer: ChannelBuyer) => async (env: Readonly<Record<string, string>>) =>
  runAsCommand(async (print) => {
    const { X402_URL = "", X402_RPC_URL = "", X402_MAX_AMOUNT = "0", X402_PURCHASES = "1" } = env;
    const signer = createPayerSigner(`0x${env.X402_PRIVATE_KEY?.slice(2) ?? ""}`);
    const most = BigInt(X402_MAX_AMOUNT);
    const { request } = createLocalRpc(X402_RPC_URL);
    const memory = { charged: 0n, deposited: 0n };
    let isAskedAgain = false;

    /** Buys once; undefined if that failed. */
    async function buy(): Promise<string | undefined> {
      const challenge = findChallenge((await fetch(X402_URL)).headers.get("PAYMENT-REQUIRED") ?? "");
      const [offer] = challenge === undefined ? [] : readOffers(challenge, networks);
      if (offer === undefined) return undefined;
      const { network, method: transfer, value: price, asset } = offer;
      const { chainId } = network;
      const config = configFor(signer, { ...offer, extra: offer.written.extra });
      const id = channelId(config, chainId);
      for (let attempt = 1; attempt <= mostAttempts; attempt++) {
        const sums = await readSums(id, (to, data) => request("eth_call", { to, data }, "latest"));
        const balance = buyer.isBlind === true ? memory.deposited : sums.balance;
        const due = memory.charged + price;
        const max = buyer.ceiling?.({ due, most }) ?? due;
        const purchase = { config, chainId, max };
        const amount = buyer.deposit?.(most) ?? most;
        const validBefore = BigInt(Math.floor(Date.now() / 1_000) + offer.validForSeconds);
        const isAnew = buyer.depositsAlways === true || (isAskedAgain && buyer.signsAnew === true);
        const deposits = max > balance || isAnew;
        const payload = deposits
          ? await signDeposit(signer, purchase, { asset, transfer, amount, validBefore })
          : await signPurchase(signer, purchase);
        const { name, value } = headerOf(2, writePayload(offer, payload));
        const answer = await fetch(X402_URL, { headers: { [name]: value } });
        const { extra } = membersOf(decodeHeader(answer.headers.get("PAYMENT-RESPONSE") ?? ""));
        if (answer.ok) {
          if (deposits) memory.deposited += amount;
          const said = number(extra, "chargedAmount");
          const state = number(membersOf(extra).channelState, "chargedCumulativeAmount");
          const { charged } = memory;
          memory.charged =
            buyer.total?.({ charged, said, state, price }) ?? charged + (said > price ? 0n : said);
          return answer.text();
        }
        const proven = provenBy(answer, (digest) => voucherDigest(id, digest, chainId));
        if (proven !== undefined) memory.charged = proven;
        else if (!isAskedAgain || buyer.signsAnew !== true) return undefined;
      }
      return undefined;
    }

    /** The charges according to a 402; undefined if it is not believed. */
    function provenBy(answer: Response, digestOf: (max: bigint) => Hex): bigint | undefined {
      const { accepts } = membersOf(decodeHeader(answer.headers.get("PAYMENT-REQUIRED") ?? ""));
      const { extra } = membersOf(Array.isArray(accepts) ? accepts[0] : undefined);
      const { channelState, voucherState } = membersOf(extra);
      isAskedAgain = channelState === undefined;
      if (isAskedAgain) return undefined;
      const charged = number(channelState, "chargedCumulativeAmount");
      const signed = number(voucherState, "signedMaxClaimable");
      const { signature } = membersOf(voucherState);
      const by = isBytes(signature) ? recoverSigner(digestOf(signed), signature) : undefined;
      const isOwn = by !== undefined && sameAddress(by, signer.address);
      const isBelieved = buyer.believes?.({ charged, signed, isOwn }) ?? (isOwn && charged <= signed);
      return isBelieved ? charged : undefined;
    }

    for (let purchase = 1; purchase <= Number(X402_PURCHASES); purchase++) {
      const body = await buy();
      if (body === undefined) return false;
      print(`${body}\n`);
    }
    return true;
  });
