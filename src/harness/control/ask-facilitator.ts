import { z } from "zod";
import type { NetworkName } from "../../protocol/networks.ts";
import { type PayToPolicy, payToPolicies } from "../../protocol/signed-payment.ts";
import { requestJson } from "./http-json.ts";

/** Chains answer from memory. */
const answersWithinMs = 5_000;

/** The JSON at a URL; undefined where there is none. */
async function read(url: string): Promise<unknown> {
  try {
    return (await requestJson(url, { timeoutMs: answersWithinMs })).body;
  } catch {
    return undefined;
  }
}

const chainsSchema = z.array(z.object({ network: z.string(), time: z.int() }));
const clockSchema = z.object({ now: z.int() });

/**
 * The time by which an `up` or `mock` at a URL judges payments on a network, in unix seconds: its chain's, or the mock's.
 * Undefined where what answers there has no time of its own, as `serve` has none.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 */
export async function askTime(origin: string, network: NetworkName): Promise<bigint | undefined> {
  const chains = chainsSchema.safeParse(await read(`${origin}/harness/chains`)).data;
  const chain = chains?.find((one) => one.network === network);
  const time = chain?.time ?? clockSchema.safeParse(await read(`${origin}/__clock`)).data?.now;
  return time === undefined ? undefined : BigInt(time);
}

const supportedSchema = z.object({
  kinds: z.array(
    z.object({
      extra: z
        .object({ payTo: z.enum(payToPolicies) })
        .optional()
        .catch(undefined),
    }),
  ),
});

/**
 * Where the facilitator at a URL lets payments go, as its `/supported` says; undefined where it says nothing of it.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 */
export async function askPayTo(origin: string): Promise<PayToPolicy | undefined> {
  const { kinds = [] } = supportedSchema.safeParse(await read(`${origin}/supported`)).data ?? {};
  return kinds.find(({ extra }) => extra !== undefined)?.extra?.payTo;
}
