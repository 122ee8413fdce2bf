import { z } from "zod";
import { type NetworkName, networkNames } from "../../protocol/networks.ts";
import { address, bytes32 } from "../../protocol/primitives.ts";

/** What a running harness is made of: printed by `up --json`, and served at `GET /harness`. */
export const harnessDescriptionSchema = z.object({
  facilitator: z.object({ url: z.string() }),
  organization: z.object({ id: z.string(), apiKey: z.string(), recipient: address }),
  /** Only where the chains have a clock of their own. */
  seed: z.int().optional(),
  payers: z.record(z.string(), z.object({ address, privateKey: bytes32 })),
  networks: z.partialRecord(
    z.enum(networkNames),
    z.object({
      chainId: z.int(),
      caip2: z.string(),
      rpcUrl: z.string(),
      facilitatorContract: address,
      asset: z.object({ address, name: z.string(), version: z.string(), decimals: z.int() }),
      /** Only of a fork: the block that it goes on from, where the rest is read, and whether its token can blacklist. */
      fork: z
        .object({ block: z.int(), from: z.enum(["remote", "recording"]), hasBlacklist: z.boolean() })
        .optional(),
    }),
  ),
});

export type HarnessDescription = z.infer<typeof harnessDescriptionSchema>;

export type RunningNetwork = NonNullable<HarnessDescription["networks"][NetworkName]>;
