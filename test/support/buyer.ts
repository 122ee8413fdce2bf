import { ExactEvmScheme } from "@x402/evm/exact/client";
import { UptoEvmScheme } from "@x402/evm/upto/client";
import { ExactEvmSchemeV1 } from "@x402/evm/v1";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client, x402HTTPClient } from "@x402/fetch";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { HarnessChain } from "../../src/harness/setup/prepare-chain.ts";
import type { Hex } from "../../src/protocol/hex.ts";

/** A signer for the public clients: a viem account, or anything like it. */
export type BuyerAccount = ConstructorParameters<typeof ExactEvmScheme>[0];

type SpendControls = Parameters<x402Client["setSpendControls"]>[0];

/** The result of one paid request, as the buyer sees it. */
export type Purchase = {
  status: number;
  body: unknown;
  /** The payment's header as it was sent, so that it can be sent again. */
  payment: PaymentHeader;
  /** The decoded receipt header; undefined if there is none. */
  receipt: ReturnType<typeof decodePaymentResponseHeader> | undefined;
  /** Why the server asks for payment again; undefined if it does not. */
  refusal: string | undefined;
};

export type PaymentHeader = { name: string; value: string };

/** A buyer with the unmodified public fetch clients of both protocol versions. */
export type Buyer = { buy(url: string): Promise<Purchase> };

const paymentHeaders = ["PAYMENT-SIGNATURE", "X-PAYMENT"];

/** @param rpcUrl where the clients may read the chain, which they do before they sign an approval */
export function createBuyer(
  account: BuyerAccount,
  spendControls?: SpendControls,
  rpcUrl?: string | undefined,
): Buyer {
  const options = rpcUrl === undefined ? undefined : { rpcUrl };
  const client = new x402Client()
    .register("eip155:*", new ExactEvmScheme(account, options))
    .register("eip155:*", new UptoEvmScheme(account, options));
  for (const network of ["base", "base-sepolia", "polygon"] as const) {
    client.registerV1(network, new ExactEvmSchemeV1(account));
  }
  if (spendControls !== undefined) client.setSpendControls(spendControls);
  return {
    async buy(url) {
      let payment: PaymentHeader | undefined;
      const recordingFetch: typeof fetch = (input, init) => {
        const { headers } = new Request(input, init);
        for (const name of paymentHeaders) {
          const value = headers.get(name);
          if (value !== null) payment = { name, value };
        }
        return fetch(input, init);
      };
      const response = await wrapFetchWithPayment(recordingFetch, client)(url);
      if (payment === undefined) throw new Error(`${url} asked for no payment`);
      return readPurchase(response, payment);
    },
  };
}

/** Sends a payment again, byte for byte. */
export async function payAgain(url: string, payment: PaymentHeader): Promise<Purchase> {
  return readPurchase(await fetch(url, { headers: { [payment.name]: payment.value } }), payment);
}

/** A new account with some of the chain's token. */
export async function fundedAccount(
  chain: HarnessChain,
  amount: bigint,
): Promise<{ address: Hex } & BuyerAccount> {
  const account = privateKeyToAccount(generatePrivateKey());
  await chain.fund(account.address, amount);
  return account;
}

async function readPurchase(response: Response, payment: PaymentHeader): Promise<Purchase> {
  const receipt = response.headers.get("PAYMENT-RESPONSE") ?? response.headers.get("X-PAYMENT-RESPONSE");
  const body: unknown = await response.json();
  return {
    status: response.status,
    body,
    payment,
    receipt: receipt === null ? undefined : decodePaymentResponseHeader(receipt),
    refusal: response.status === 402 ? readRefusal(response, body) : undefined,
  };
}

function readRefusal(response: Response, body: unknown): string | undefined {
  const getHeader = (name: string) => response.headers.get(name);
  try {
    return new x402HTTPClient(new x402Client()).getPaymentRequiredResponse(getHeader, body).error;
  } catch {
    // A failed settlement is reported only in the receipt.
    return undefined;
  }
}
