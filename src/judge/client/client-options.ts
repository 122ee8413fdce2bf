import type { NetworkName, NetworkRegistry } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { ClientCase } from "./client-case.ts";

/** How a client is judged. */
export type JudgeClientOptions = {
  /** The program and its arguments. */
  command: readonly string[];
  cases: readonly ClientCase[];
  networks: readonly NetworkName[];
  /** The networks that there are, and the file with those that are not built in. */
  knownNetworks: NetworkRegistry;
  networkFile?: string | undefined;
  versions: readonly X402Version[];
  header?: { name: string; value: string } | undefined;
  /** How long the command may take in a case. */
  timeoutMs: number;
  /** How long the slow shop takes. */
  slowMs: number;
  seed: number;
  /** Whether the facilitator serves the studio, and payments have links into it. */
  studio?: boolean;
  signal?: AbortSignal | undefined;
};
