import { readNetwork } from "../../config/values.ts";
import type { NetworkName } from "../../protocol/networks.ts";

const named = { placeholder: "NAME", example: "base" };

/** `--network` of commands that act on one network. */
export const networkOption = {
  ...named,
  describe: "on which network",
  read: readNetwork,
  required: true,
} as const;

/** `--network` of commands that act on all networks unless one is named. */
export const onlyNetworkOption = {
  ...named,
  describe: "only on this network",
  read: (text: string): NetworkName | undefined => readNetwork(text),
  fallback: undefined,
};
