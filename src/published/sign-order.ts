import { createDigestSigner, signAuthorization } from "../methods/exact-eip3009/authorization.ts";
import { buildBody, paymentOf } from "../methods/exact-eip3009/eip3009-payload.ts";
import { timesFrom } from "../methods/exact-eip3009/payment-times.ts";
import { methodOf } from "../methods/methods.ts";
import { permitPayment, permitTimes } from "../methods/permit2/permit2-payload.ts";
import { signPermit } from "../methods/permit2/sign-permit.ts";
import { type Address, type Hex, isBytes32 } from "../protocol/hex.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { KitError } from "../util/errors.ts";
import { nearest } from "../util/text.ts";
import type { Breakage, PaymentOrder } from "./payment-order.ts";
import { createPayerSigner, signAs, signPermitAs } from "./sign-as.ts";
import { type TestPayerName, testPayers } from "./test-payers.ts";

/** A network that orders are signed for. */
export type OrderNetwork = Pick<Network, "name" | "caip2" | "chainId"> & {
  facilitatorContract: Address;
  /** Where payments go by default. */
  payTo: Address;
  asset: Asset;
};

/** A signed payment, in the forms in which it travels. */
export type SignedOrder = {
  /** The body of a verify. */
  body: object;
  /** That of a settle, which takes less where scheme “upto” is asked for less than the maximum. */
  settleBody: object;
  /** The header that buys at a shop. */
  header: { name: string; value: string };
  payer: Address;
  network: string;
};

/**
 * Signs what a test in a language without own cryptography has ordered.
 *
 * @param networks those that run
 * @param readNow the time of a network's chain, in unix seconds
 * @throws {KitError} when there is no such payer or network, or the members do not go together
 */
export async function signOrder(
  order: PaymentOrder,
  networks: readonly OrderNetwork[],
  readNow: (network: string) => Promise<bigint> | bigint,
): Promise<SignedOrder> {
  const { scheme, method = scheme === "upto" ? "permit2" : "eip3009", x402Version, resource } = order;
  if (scheme === "upto" && method !== "permit2") throw new KitError("Scheme upto is paid by Permit2 alone");
  if (method === "permit2" && x402Version === 1) throw new KitError("Version 1 knows EIP-3009 alone");
  if (scheme === "exact" && order.max !== undefined) throw new KitError("Only scheme upto has a maximum");
  const network = networkOf(order, networks);
  const max = order.max ?? order.amount ?? 10_000n;
  const amount = order.amount ?? max;
  const payTo = order.payTo ?? network.payTo;
  const payment = await sign(order, { network, max, payTo, method, now: await readNow(network.name) });
  const { write, extra } = methodOf(payment);
  const { asset, facilitatorContract } = network;
  const body = buildBody(
    {
      ...{ x402Version, network, asset, payTo, amount: max, resource, scheme },
      extra: extra({ name: network.name, facilitatorContract, assets: [asset] }) ?? {},
    },
    write(payment),
  );
  const { paymentPayload, paymentRequirements } = body;
  const settled = { ...Object(paymentRequirements), amount: `${amount}` };
  return {
    body,
    settleBody: amount === max ? body : { ...body, paymentRequirements: settled },
    header: {
      name: x402Version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE",
      value: Buffer.from(JSON.stringify(paymentPayload)).toString("base64"),
    },
    payer: payment.payer,
    network: network.name,
  };
}

function networkOf({ network }: PaymentOrder, networks: readonly OrderNetwork[]): OrderNetwork {
  const names = networks.map(({ name }) => name);
  const found = network === undefined ? networks[0] : networks.find(({ name }) => name === network);
  if (found !== undefined) return found;
  throw new KitError(
    `There is no network "${network}" here; did you mean ${nearest(network ?? "", names, 1)}? There is ${names.join(", ")}`,
  );
}

type Terms = { network: OrderNetwork; max: bigint; payTo: Address; method: string; now: bigint };

/** What is signed instead, where the payment is to be wrong. */
function sign(
  { payer, scheme, broken, validForSeconds }: PaymentOrder,
  { network, max, payTo, method, now }: Terms,
): Promise<SignedPayment> {
  const window = { expired: { until: -60 }, too_early: { from: 3_600, until: 7_200 } };
  const isOfTime = broken === "expired" || broken === "too_early";
  const times = timesFrom(now, isOfTime ? window[broken] : { until: validForSeconds });
  const chainId = network.chainId + (broken === "other_chain" ? 1 : 0);
  const to = broken === "other_recipient" ? somebodyElse : payTo;
  const value = max + (broken === "too_much" ? 1n : broken === "too_little" ? -1n : 0n);
  const { asset, facilitatorContract } = network;
  return method === "permit2"
    ? signBy(
        payer,
        {
          ...{ chainId, token: asset.address, to, amount: value, ...permitTimes(times) },
          ...(scheme === "upto" && { facilitator: facilitatorContract }),
        },
        { as: signPermitAs, by: signPermit, broken },
      ).then(permitPayment)
    : signBy(
        payer,
        { asset, chainId, to, value, ...times },
        { as: signAs, by: signAuthorization, broken },
      ).then((signed) => paymentOf(asset.address, signed));
}

/** Neither a payer nor a payee of the kit. */
const somebodyElse: Address = "0x00000000000000000000000000000000DeaDBeef";
const anotherKey = testPayers.empty.privateKey;

type Signer = ReturnType<typeof createPayerSigner>;

/** Signs as a test payer or with a private key, well or not. */
async function signBy<T, Signed extends { signature: Hex }>(
  payer: string,
  terms: T,
  {
    as,
    by,
    broken,
  }: {
    as: (payer: TestPayerName, terms: T) => Promise<Signed>;
    by: (signer: Signer, terms: T) => Promise<Signed>;
    broken: Breakage | undefined;
  },
): Promise<Signed> {
  if (broken === "wrong_signer") {
    const address = isTestPayer(payer) ? testPayers[payer].address : signerOf(payer).address;
    const other = createPayerSigner(anotherKey);
    const signer = createDigestSigner(address, other.signDigest);
    return by({ ...signer, signDigest: other.signDigest }, terms);
  }
  const signed = await (isTestPayer(payer) ? as(payer, terms) : by(signerOf(payer), terms));
  return broken === "no_signature" ? { ...signed, signature: "0x" } : signed;
}

function isTestPayer(payer: string): payer is TestPayerName {
  return Object.hasOwn(testPayers, payer);
}

function signerOf(key: string): Signer {
  try {
    if (isBytes32(key)) return createPayerSigner(key);
  } catch {
    // Outside the curve's order: wrong like what is no key at all.
  }
  const names = Object.keys(testPayers);
  throw new KitError(`The payer is neither a test payer (${names.join(", ")}) nor a private key`);
}
