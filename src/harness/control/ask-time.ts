import { z } from "zod";
import type { NetworkName } from "../../protocol/networks.ts";
import { requestJson } from "../../util/http-client.ts";

/** Chains answer from memory. */
const answersWithinMs = 5_000;

const chainsSchema = z.array(z.object({ network: z.string(), time: z.int() }));
const clockSchema = z.object({ now: z.int() });

/**
 * The time by which an `up` or `mock` at a URL judges payments on a network, in unix seconds: its chain's, or the mock's.
 * Undefined where what answers there has no time of its own, as `serve` has none.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 */
export async function askTime(origin: string, network: NetworkName): Promise<bigint | undefined> {
  const read = async (path: string) => {
    try {
      return (await requestJson(`${origin}${path}`, { timeoutMs: answersWithinMs })).body;
    } catch {
      // It has no such route.
      return undefined;
    }
  };
  const chains = chainsSchema.safeParse(await read("/harness/chains")).data;
  const chain = chains?.find((one) => one.network === network);
  const time = chain?.time ?? clockSchema.safeParse(await read("/__clock")).data?.now;
  return time === undefined ? undefined : BigInt(time);
}
