import type { IncomingMessage } from "node:http";
import { z } from "zod";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { requireGiven, texts } from "../../util/given.ts";
import { openHttp } from "../../util/http-client.ts";
import { connectHarness } from "../api/create-harness.ts";
import type { Harness } from "../api/harness-api.ts";

const grantSchema = z.union([
  z.object({ url: z.string() }),
  z.object({ error: z.string(), hints: z.array(z.string()) }),
]);

/** Where harnesses are leased (the URL holds a secret of the run), and the networks that each of them has. */
export type PoolAddress = { url: string; networks: readonly NetworkName[] };

/**
 * Leases a harness from a pool. It is for its holder alone, and as new; closing gives it back.
 *
 * @throws {KitError} when the pool runs without one of the networks, or is gone
 */
export async function leaseFrom<const N extends NetworkName = BuiltInNetworkName>(
  pool: PoolAddress,
  networks?: readonly N[],
): Promise<Harness<N>> {
  requireGiven({ networks }, { networks: { ...texts, example: '["base"]' } });
  const missing = networks?.filter((name) => !pool.networks.includes(name)) ?? [];
  if (missing.length > 0) {
    throw new KitError(`The harnesses of this run have no ${missing.join(", ")}`, {
      hints: [`The global setup starts ${pool.networks.join(", ")}: name the others in its options.`],
    });
  }
  const lease = await openLease(pool.url);
  try {
    const harness = await connectHarness(lease.url, networks);
    const close = async () => {
      await harness.close();
      lease.end();
    };
    return { ...harness, close, [Symbol.asyncDispose]: close };
  } catch (error) {
    lease.end();
    throw error;
  }
}

/** The lease lasts as long as the connection: until `end`, or until this process is gone. */
async function openLease(poolUrl: string): Promise<{ url: string; end(): void }> {
  // On a connection of its own: one that is kept for reuse would keep the lease. It is held for as long as the test.
  const response = await openHttp(poolUrl, { agent: false, isIdle: true }).catch((cause: unknown) => {
    throw new KitError(`The harness pool at ${new URL(poolUrl).origin} is gone`, { cause });
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new KitError(`What listens at ${new URL(poolUrl).origin} is not the harness pool of this run`, {
      hints: ["The pool has ended, and another program has its port: start the run again."],
    });
  }
  const grant = grantSchema.parse(JSON.parse(await readLine(response)));
  if ("error" in grant) throw new KitError(grant.error, { hints: grant.hints });
  return { url: grant.url, end: () => void response.destroy() };
}

async function readLine(response: IncomingMessage): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = "";
  response.setEncoding("utf8");
  response.on("data", (chunk: string) => {
    text += chunk;
    if (text.includes("\n")) resolve(text);
  });
  response.on("error", (cause) => reject(new KitError("The harness pool ended", { cause })));
  response.on("end", () => reject(new KitError("The harness pool ended")));
  return promise;
}

/** The name under which the global setup gives the workers the URL of the lease server. */
export const providedKey = "x402-facilitator-kit";

declare module "vitest" {
  interface ProvidedContext {
    "x402-facilitator-kit": PoolAddress;
  }
}
