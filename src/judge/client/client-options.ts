import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { SceneOptions } from "../scene/scene.ts";
import type { ClientCase } from "./client-case.ts";

/** Options for judging a client. */
export type JudgeClientOptions = Pick<SceneOptions, "knownNetworks" | "networkFile" | "studio" | "signal"> & {
  /** The program and its arguments. */
  command: readonly string[];
  cases: readonly ClientCase[];
  networks: readonly NetworkName[];
  versions: readonly X402Version[];
  header?: { name: string; value: string } | undefined;
  /** How long the command may run in a case. */
  timeoutMs: number;
  /** The delay of the slow shop's answer. */
  slowMs: number;
  seed: number;
};
