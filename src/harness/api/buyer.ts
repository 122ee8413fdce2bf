import { readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import type { SignedPurchase } from "../../methods/batch-settlement/channel-buyer.ts";
import { writePayload } from "../../methods/build-request.ts";
import { methodsOf, type Scheme } from "../../methods/method-lists.ts";
import type { TransferMethod } from "../../methods/methods.ts";
import type { RefusalExplanation } from "../../observe/explain/explanations.ts";
import { tokenNamed } from "../../payer/local-chains.ts";
import { readOffer } from "../../payer/read-offer.ts";
import { bodiesOf, headerOf, methodFor, requirePlain, signOffer } from "../../payer/sign-payment.ts";
import { type Amount, toUnits, usual } from "../../payer/terms.ts";
import type { Address } from "../../protocol/hex.ts";
import { decodeHeader } from "../../protocol/payment-headers.ts";
import { KitError } from "../../util/errors.ts";
import { aTextOrObject, needed, requireGiven, type Wanted } from "../../util/given.ts";
import { parseJson } from "../../util/json.ts";
import { deploymentOf, type HarnessDescription, payToOf, requireRunning } from "../control/description.ts";
import { createLocalChannels, type LocalChannels } from "../control/local-channels.ts";
import { type Payer, type PaymentSpec, paymentSpec, readPayer } from "../control/pay.ts";

/** A shop's response. If the shop refuses the payment with another 402, `findings` says how it differs from the offers. */
export type BoughtResponse = Response & { findings?: readonly RefusalExplanation[] };

export type HarnessBuyer = {
  /** Like `fetch`, but pays a 402 once and returns the response to the payment. */
  fetch(url: string | URL, init?: RequestInit): Promise<BoughtResponse>;
  /**
   * Signs a payment for the shop's 402 without sending it. Returns the payment headers, to send with `fetch` any number of
   * times.
   *
   * @throws {KitError} if the shop asks for no payment, or offers nothing that can be paid on this harness
   *
   * @example
   * const headers = await harness.buyer("funded").sign(url);
   * expect((await fetch(url, { headers })).status).toBe(200);
   * expect((await fetch(url, { headers })).status).toBe(402);
   */
  sign(url: string | URL, init?: RequestInit): Promise<Record<string, string>>;
};

/** Settings of a payment that the shop leaves open. */
export type BuyerOptions = Pick<PaymentSpec, "x402Version" | "validForSeconds">;

const buyerOptions: Readonly<Record<keyof BuyerOptions, Wanted>> = {
  x402Version: paymentSpec.x402Version,
  validForSeconds: paymentSpec.validForSeconds,
};

/** A shop's 402, and how to pay it. */
export type ChallengeSpec = BuyerOptions & {
  /** The shop's URL, or its 402: the body, or the text of its `PAYMENT-REQUIRED` header. */
  challenge: string | URL | object;
  /** `funded` by default. */
  payer?: Payer;
};

const challengeSpec: Readonly<Record<keyof ChallengeSpec, Wanted>> = {
  ...buyerOptions,
  payer: paymentSpec.payer,
  challenge: needed(aTextOrObject),
};

/** Returns true for a shop's 402, false for explicit payment terms. */
export const isOfShop = (spec: object): spec is ChallengeSpec => "challenge" in Object(spec);

/**
 * Signs a payment for a shop's 402 and returns the body of a verify or settle call.
 *
 * @throws {KitError} if the shop offers nothing that can be paid on this harness
 */
export async function signChallenge(
  description: HarnessDescription,
  spec: ChallengeSpec,
): Promise<Record<string, unknown>> {
  requireGiven(spec, challengeSpec);
  const { challenge, payer = usual.payer, ...options } = spec;
  const buyer = createBuyer(description, payer, options);
  const isUrl = challenge instanceof URL || /^https?:/i.test(String(challenge));
  const offer = isUrl ? await askOffer(buyer, String(challenge)) : choose(buyer, challenge, "The shop");
  const { x402Version, written } = offer;
  const { paymentPayload } = await sign(buyer, offer);
  return { x402Version, paymentPayload, paymentRequirements: written };
}

/** @throws {KitError} if there is no such payer; from `fetch`, if a 402 offers nothing that can be paid on this harness */
export function createHarnessBuyer(
  description: HarnessDescription,
  payer: Payer,
  options: BuyerOptions,
): HarnessBuyer {
  requireGiven(options, buyerOptions, "options");
  const buyer = createBuyer(description, payer, options);
  return {
    async fetch(url, init) {
      const first = await fetch(url, init);
      if (first.status !== 402) return first;
      const offer = await offerOf(buyer, first);
      async function send({ headers: payment }: Purchase): Promise<Response> {
        const headers = new Headers(init?.headers);
        for (const [name, value] of Object.entries(payment)) headers.set(name, value);
        return fetch(url, { ...init, headers });
      }
      return buyer.channels.inTurn(offer, async () => {
        let purchase = await sign(buyer, offer);
        let answer = await send(purchase);
        if (answer.status === 402 && purchase.channel?.recover(decode(answer, "PAYMENT-REQUIRED"))) {
          purchase = await sign(buyer, offer);
          answer = await send(purchase);
        }
        if (answer.status !== 402) {
          purchase.channel?.learn(decode(answer, "PAYMENT-RESPONSE"));
          return answer;
        }
        return Object.assign(answer, { findings: await compare(purchase.headers, answer, description) });
      });
    },
    sign: async (url, init) => (await sign(buyer, await askOffer(buyer, url, init))).headers,
  };
}

type Buyer = BuyerOptions & { description: HarnessDescription; payer: Payer; channels: LocalChannels };

function createBuyer(description: HarnessDescription, payer: Payer, options: BuyerOptions): Buyer {
  return { description, payer, channels: createLocalChannels(readPayer(payer), description), ...options };
}

/** A signed payment, its headers, and its channel if it is made from one. */
type Purchase = {
  paymentPayload: object;
  headers: Record<string, string>;
  channel?: SignedPurchase | undefined;
};

const decode = ({ headers }: Response, name: string) => decodeHeader(headers.get(name) ?? "");

async function askOffer(buyer: Buyer, url: string | URL, init?: RequestInit) {
  const response = await fetch(url, init);
  if (response.status === 402) return offerOf(buyer, response);
  throw new KitError(`The shop at ${response.url} answers ${response.status}, and asks for no payment`);
}

/** Chooses the offer of a 402 to pay. */
async function offerOf(buyer: Buyer, response: Response) {
  // A shop that supports both versions offers version 2 in the header and version 1 in the body.
  const header = buyer.x402Version === 1 ? null : response.headers.get("PAYMENT-REQUIRED");
  const challenge = header ?? parseJson(await readText(response)) ?? null;
  return choose(buyer, challenge, `The shop at ${response.url}`);
}

/** More than any shop's 402 needs. */
const mostBytes = 1 << 20;
const readMs = 10_000;

/**
 * Reads the body of a 402.
 *
 * @throws {KitError} if it is too large, breaks off, or does not end in time
 */
async function readText({ body, url }: Response): Promise<string> {
  if (body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const signal = AbortSignal.timeout(readMs);
    for await (const chunk of body.pipeThrough(new TransformStream<Uint8Array, Uint8Array>(), { signal })) {
      size += chunk.length;
      if (size > mostBytes) throw new Error(`it has more than ${mostBytes} bytes`);
      chunks.push(chunk);
    }
  } catch (cause) {
    throw new KitError(`The 402 of the shop at ${url} could not be read to its end`, { cause });
  }
  return Buffer.concat(chunks).toString();
}

/** Returns the first offer of a challenge that can be paid on this harness. */
function choose(
  { description, x402Version: wanted, validForSeconds }: Buyer,
  challenge: unknown,
  shop: string,
) {
  const networks = Object.entries(description.networks).map(([name, network]) => ({ name, ...network }));
  const offer = readOffer(challenge, networks, shop);
  if (wanted !== undefined && wanted !== offer.x402Version) {
    throw new KitError(`${shop} asks for payments of version ${offer.x402Version}, not ${wanted}`);
  }
  return { ...offer, validForSeconds: validForSeconds ?? offer.validForSeconds };
}

async function sign({ payer, channels }: Buyer, offer: ReturnType<typeof choose>): Promise<Purchase> {
  const now = await readHeadTime(createLocalRpc(offer.network.rpcUrl), offer.network.name);
  const channel = await channels.sign(offer, now);
  const paymentPayload =
    channel === undefined
      ? bodiesOf(offer, await signOffer(readPayer(payer), offer, now)).request.paymentPayload
      : writePayload(offer, channel.payload);
  const { name, value } = headerOf(offer.x402Version, paymentPayload);
  return { paymentPayload, headers: { [name]: value }, channel };
}

/** Compares a refused payment with the offers of the 402 that refused it. */
async function compare(
  payment: Record<string, string>,
  answer: Response,
  description: HarnessDescription,
): Promise<RefusalExplanation[]> {
  // Loaded on demand, so that tests start faster.
  const [{ comparePayment }, { readChallenges }, { explanationOf }] = await Promise.all([
    import("../../observe/explain/compare-payment.ts"),
    import("../../observe/explain/explain-shop.ts"),
    import("../../observe/explain/explanations.ts"),
  ]);
  const { headers } = answer;
  const { challenges } = readChallenges({ headers, body: await readText(answer.clone()) });
  const context = { ...deploymentOf(description), now: undefined };
  return Object.entries(payment).flatMap(([name, value]) =>
    comparePayment({ name, value }, challenges, context).map(explanationOf),
  );
}

type Headers = { Authorization: string };

/** The configuration of a shop that uses `@x402/express`, `@x402/hono` or `@x402/next`. */
export type ShopConfig = {
  /** For `new HTTPFacilitatorClient(…)`: the facilitator's URL, and the organization's key. */
  facilitator: {
    url: string;
    createAuthHeaders(): Promise<{ verify: Headers; settle: Headers; supported: Headers }>;
  };
  /** The price of a route: `paymentMiddleware({ "GET /report": { accepts } }, server)`. */
  accepts: {
    scheme: Scheme;
    network: `eip155:${number}`;
    payTo: Address;
    price: { asset: Address; amount: string; extra: { name: string; version: string } };
    /** Only if the method is not the scheme's default. */
    extra?: { assetTransferMethod: TransferMethod };
  };
};

export type ShopOptions = Pick<PaymentSpec, "scheme" | "method" | "asset">;

const shopOptions: Readonly<Record<keyof ShopOptions, Wanted>> = {
  scheme: paymentSpec.scheme,
  method: paymentSpec.method,
  asset: paymentSpec.asset,
};

/** @throws {KitError} if the network does not run there, or has no such token */
export function describeShop(
  description: HarnessDescription,
  {
    network,
    amount,
    apiKey,
    options,
  }: { network: string; amount: Amount; apiKey: string; options: ShopOptions },
): ShopConfig {
  requireGiven(options, shopOptions, "options");
  const running = requireRunning(description, network);
  const { caip2 } = running;
  const asset = tokenNamed(running, options.asset);
  const { scheme, transfer, paysPlain } = methodFor(options, asset);
  const payTo = payToOf(description, network, apiKey);
  if (paysPlain === true) requirePlain(payTo, running);
  const isUsual = transfer === methodsOf(scheme)[0]?.transfer;
  const headers = { Authorization: `Bearer ${apiKey}` };
  const { address, name, version } = asset;
  return {
    facilitator: {
      url: description.facilitator.url,
      createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
    },
    accepts: {
      scheme,
      network: caip2,
      payTo,
      price: { asset: address, amount: `${toUnits(amount, asset)}`, extra: { name, version } },
      ...(!isUsual && { extra: { assetTransferMethod: transfer } }),
    },
  };
}
