import { readAddress, readHost, readNetworks, readWholeNumber } from "../../config/values.ts";
import type { Address } from "../../protocol/hex.ts";
import { networkNames } from "../../protocol/networks.ts";
import type { Options } from "./options.ts";

/** What a facilitator for tests is told, with chains or without: what it serves, where. */
export const localOptions = {
  networks: {
    describe: "only these networks, separated by commas",
    placeholder: "NAMES",
    example: "base,polygon",
    read: readNetworks,
    fallback: networkNames,
  },
  port: {
    describe: "port of the facilitator; 0 for any free one (default 4402)",
    placeholder: "PORT",
    env: "PORT",
    example: "4402",
    read: readWholeNumber(0, 65_535),
    fallback: 4402,
  },
  host: {
    describe: "address to listen on (default 127.0.0.1)",
    placeholder: "ADDRESS",
    env: "HOST",
    example: "127.0.0.1",
    read: readHost,
    fallback: "127.0.0.1",
  },
  "contract-mainnet": {
    describe: "facilitator contract address on base, optimism and polygon",
    placeholder: "ADDRESS",
    env: "FACILITATOR_CONTRACT_MAINNET",
    example: "0x4020000000000000000000000000000000000001",
    read: (text): Address | undefined => readAddress(text),
    fallback: undefined,
  },
  "contract-testnet": {
    describe: "facilitator contract address on base-sepolia and optimism-sepolia",
    placeholder: "ADDRESS",
    env: "FACILITATOR_CONTRACT_TESTNET",
    example: "0x4020000000000000000000000000000000000002",
    read: (text): Address | undefined => readAddress(text),
    fallback: undefined,
  },
} satisfies Options;
