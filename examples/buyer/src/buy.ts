import { setTimeout as sleep } from "node:timers/promises";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { x402Client, x402HTTPClient } from "@x402/fetch";
import { privateKeyToAccount } from "viem/accounts";

export type BuyOptions = {
  url: string;
  privateKey: `0x${string}`;
  /** CAIP-2: `eip155:84532`. */
  network: `eip155:${number}`;
  /** The token that may be paid with. */
  asset: string;
  /** The most that may be paid, in the token's smallest unit. */
  maxAmount: bigint;
  headers?: Record<string, string>;
  /** How long one request may take. */
  timeoutMs?: number;
};

/** Before each repetition of a payment; the shop may ask for a longer wait. */
const waitsMs = [500, 1_000, 2_000];

/** A payment is valid for ten minutes at most, however long the shop asks for: until then the shop can take it. */
const longestValiditySeconds = 600;

/** The longest wait that a shop may ask for. */
const longestWaitMs = 5_000;

/**
 * Buys what is at a URL, and pays at most once: one authorization is signed, and sent again, as it is, when its answer
 * is lost or says that it may be tried again.
 *
 * @throws if nothing was bought; once a payment was signed, the message says until when it can still be taken
 */
export async function buy(options: BuyOptions): Promise<string> {
  const { url, headers = {}, timeoutMs = 60_000 } = options;
  const get = async (more: Record<string, string>): Promise<Answer> => {
    const response = await fetchHere(url, { ...headers, ...more }, AbortSignal.timeout(timeoutMs));
    return { response, body: await response.text() };
  };
  const first = await get({});
  if (first.response.ok) return first.body;
  if (first.response.status !== 402) throw new Error(`${url} answered ${first.response.status}`);

  const { payment, validBefore } = await sign(first, options);
  let answer = await attempt(() => get(payment));
  for (const wait of waitsMs) {
    if (!(answer instanceof Error) && answer.response.ok) return answer.body;
    await sleep(Math.max(wait, retryAfterMs(answer)));
    answer = await attempt(() => get(payment));
  }
  if (!(answer instanceof Error) && answer.response.ok) return answer.body;
  const reason = answer instanceof Error ? answer.message : `${url} answers ${answer.response.status}`;
  const until = new Date(validBefore * 1_000).toISOString();
  throw new Error(`${reason}\nNot bought yet; it can still be taken until ${until}`, {
    cause: answer instanceof Error ? answer : answer.body,
  });
}

type Answer = { response: Response; body: string };

type Signed = {
  /** The headers that carry the payment. */
  payment: Record<string, string>;
  /** The shop can take the payment until this time, in seconds since 1970. */
  validBefore: number;
};

/** Signs a payment for an offer of the shop that is within the limits. */
async function sign({ response, body }: Answer, options: BuyOptions): Promise<Signed> {
  const { network, asset, maxAmount, privateKey } = options;
  const scheme = new CappedScheme(privateKeyToAccount(privateKey));
  const client = new x402Client().register(network, scheme);
  client.setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: `${maxAmount}` }] });
  const http = new x402HTTPClient(client);
  const asked = http.getPaymentRequiredResponse((name) => response.headers.get(name), parse(body));
  const accepts = asked.accepts.filter(
    (one) =>
      one.network === network &&
      one.asset.toLowerCase() === asset.toLowerCase() &&
      BigInt(one.amount) <= maxAmount,
  );
  if (accepts.length === 0) throw new Error("The shop asks for nothing that may be paid");
  const signed = await client.createPaymentPayload({ ...asked, accepts });
  const { authorization, permit2Authorization } = signed.payload;
  const { validBefore, deadline } = Object(authorization ?? permit2Authorization);
  return {
    payment: http.encodePaymentSignatureHeader(signed),
    validBefore: Number(validBefore ?? deadline),
  };
}

/** The payment still names the offer as the shop made it, with its own `maxTimeoutSeconds`. */
class CappedScheme extends ExactEvmScheme {
  override createPaymentPayload(...args: Parameters<ExactEvmScheme["createPaymentPayload"]>) {
    const [version, requirements, context] = args;
    const maxTimeoutSeconds = Math.min(requirements.maxTimeoutSeconds, longestValiditySeconds);
    return super.createPaymentPayload(version, { ...requirements, maxTimeoutSeconds }, context);
  }
}

/** Follows redirects with all headers, and only within the shop: a payment is for nobody else. */
async function fetchHere(url: string, headers: Record<string, string>, signal: AbortSignal) {
  let at = new URL(url);
  for (let redirects = 0; ; redirects++) {
    const response = await fetch(at, { headers, signal, redirect: "manual" });
    const location = response.headers.get("location");
    if (response.status < 300 || response.status > 399 || location === null || redirects > 4) return response;
    const next = new URL(location, at);
    if (next.origin !== at.origin) throw new Error(`${url} leads to another shop, ${next.origin}`);
    at = next;
  }
}

async function attempt(get: () => Promise<Answer>): Promise<Answer | Error> {
  try {
    return await get();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function retryAfterMs(answer: Answer | Error): number {
  const seconds = answer instanceof Error ? 0 : Number(answer.response.headers.get("retry-after") ?? 0);
  return Number.isFinite(seconds) ? Math.min(seconds * 1_000, longestWaitMs) : 0;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
