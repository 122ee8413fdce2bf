import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";
import { type TestPayerName, testPayers } from "x402-facilitator-kit/test-payers";

/** What came of a request. */
export type Purchase = { status: number; body: unknown };

/** The header that carries a payment. */
const paymentHeader = "PAYMENT-SIGNATURE";

/** Buys as one of the test payers, with the public client. */
export async function buy(url: string, payer: TestPayerName = "funded"): Promise<Purchase> {
  return read(await payingFetch(fetch, payer)(url));
}

/** Signs a payment for what a URL asks, and keeps it. */
export async function sign(url: string, payer: TestPayerName = "funded"): Promise<string> {
  let payment: string | null = null;
  const keepingFetch: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    payment = request.headers.get(paymentHeader);
    return payment === null ? fetch(request) : new Response();
  };
  await payingFetch(keepingFetch, payer)(url);
  if (payment === null) throw new Error(`${url} asked for no payment`);
  return payment;
}

/** Sends a payment, for the first time or again. */
export async function send(url: string, payment: string): Promise<Purchase> {
  return read(await fetch(url, { headers: { [paymentHeader]: payment } }));
}

function payingFetch(inner: typeof fetch, payer: TestPayerName) {
  const account = privateKeyToAccount(testPayers[payer].privateKey);
  return wrapFetchWithPayment(inner, new x402Client().register("eip155:*", new ExactEvmScheme(account)));
}

async function read(response: Response): Promise<Purchase> {
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}
