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

/** The URL of the lease server, which contains a secret of the run, and the networks of every harness. */
export type PoolAddress = { url: string; networks: readonly NetworkName[] };

/**
 * Leases a fresh harness from a pool for exclusive use; closing it returns it to the pool.
 *
 * @throws {KitError} if the pool does not run one of the networks, or is gone
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

/** Opens a lease. It lasts as long as the connection: until `end` is called or this process exits. */
async function openLease(poolUrl: string): Promise<{ url: string; end(): void }> {
  // A dedicated connection: one kept for reuse would keep the lease. It stays open, idle, as long as the test runs.
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

/** The key under which the global setup provides the lease server's address to the workers. */
export const providedKey = "x402-facilitator-kit";

declare module "vitest" {
  interface ProvidedContext {
    "x402-facilitator-kit": PoolAddress;
  }
}
