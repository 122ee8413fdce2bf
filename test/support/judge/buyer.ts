import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { authorizationJson, signAuthorization } from "../../../src/methods/exact-eip3009/authorization.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";

/*
 * Buyers for `judge client`, for protocol version 1. The first argument says how they behave:
 * - safe: sends one payment, and the same one again if its response is lost or bad;
 * - signs-anew: signs another payment then, as careless clients do;
 * - gives-up: sends one payment, once;
 * - buys-again: buys once more when it has the goods;
 * - pays-itself: signs a payment to its own address;
 * - and two that do not work: never-asks, hangs.
 */

type Offer = {
  network: string;
  asset: `0x${string}`;
  payTo: `0x${string}`;
  maxAmountRequired: string;
  extra: { name: string; version: string };
};

const manner = process.argv[2] ?? "safe";
const { X402_URL = "", X402_PRIVATE_KEY = "", X402_NETWORK = "", X402_ASSET = "" } = process.env;
const { X402_CAIP2 = "" } = process.env;
const maxAmount = BigInt(process.env.X402_MAX_AMOUNT ?? 0);
const signer = createPayerSigner(`0x${X402_PRIVATE_KEY.slice(2)}`);

if (manner === "never-asks") process.exit(3);
if (manner === "hangs") {
  // A process that the command started, and that outlives it.
  spawn("sleep", ["600"]);
  await sleep(600_000);
}

const [, headerName = "", headerValue = ""] = /^([^:]+): (.*)$/.exec(process.env.X402_HEADER ?? "") ?? [];
const headers = headerName === "" ? {} : { [headerName]: headerValue };

const first = await fetch(X402_URL, { headers });
const { accepts }: { accepts: Offer[] } = JSON.parse(await first.text());
const offer = accepts.find(
  ({ network, asset, maxAmountRequired }) =>
    network === X402_NETWORK && asset === X402_ASSET && BigInt(maxAmountRequired) <= maxAmount,
);
if (offer === undefined) throw new Error("nothing that may be paid");

let payment = await sign(offer);
const attempts = manner === "gives-up" ? 1 : 4;
for (let attempt = 1; attempt <= attempts; attempt++) {
  try {
    const response = await fetchHere({ ...headers, "X-PAYMENT": payment });
    const body = await response.text();
    if (response.ok) {
      console.log(body);
      if (manner === "buys-again") await fetchHere({ ...headers, "X-PAYMENT": await sign(offer) });
      process.exit(0);
    }
  } catch {
    // A missing response does not mean that nothing was paid.
  }
  if (manner === "signs-anew") payment = await sign(offer);
  await sleep(500);
}
process.exit(1);

/** Follows redirects, but only within the shop. */
async function fetchHere(headers: Record<string, string>): Promise<Response> {
  const request = { headers, signal: AbortSignal.timeout(4_000), redirect: "manual" } as const;
  const response = await fetch(X402_URL, request);
  const location = response.headers.get("location");
  if (location === null) return response;
  const next = new URL(location, X402_URL);
  if (next.origin !== new URL(X402_URL).origin) return response;
  return await fetch(next, request);
}

async function sign({ network, asset, payTo, maxAmountRequired, extra }: Offer): Promise<string> {
  const chainId =
    network === X402_NETWORK ? Number(X402_CAIP2.split(":")[1]) : builtInNetworks.named(network)?.chainId;
  if (chainId === undefined) throw new Error(`${network} is not known`);
  const { authorization, signature } = await signAuthorization(signer, {
    asset: { address: asset, ...extra },
    chainId,
    to: manner === "pays-itself" ? signer.address : payTo,
    value: BigInt(maxAmountRequired),
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 60),
  });
  const payload = { signature, authorization: authorizationJson(authorization) };
  return Buffer.from(JSON.stringify({ x402Version: 1, scheme: "exact", network, payload })).toString(
    "base64",
  );
}
