import type { Address } from "../../protocol/hex.ts";
import { builtInNetworks, type Network, type NetworkName } from "../../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../util/errors.ts";
import type { NodeFork } from "../nodes/nodes.ts";
import type { AuthorizationSlots } from "./authorization-slots.ts";

export type ForkOption =
  /** A JSON-RPC URL of the network; forks from the newest block. */
  | string
  | {
      url: string;
      /** The block to fork from; the newest by default. Older ones need an archive node. */
      blockNumber?: number | bigint | undefined;
      /** The file to write a recording to when the harness closes: all requests to the network and their answers. */
      recordTo?: string | undefined;
    }
  /** A file written by `x402-kit fork record` or `recordTo`. Needs no network. */
  | { recording: string };

/** The fork source of each network. */
export type ForkOptions = Readonly<Partial<Record<NetworkName, ForkOption>>>;

/** A validated fork option. */
export type ForkSpec = RemoteForkSpec | RecordedForkSpec;

export type RemoteForkSpec = {
  kind: "remote";
  url: URL;
  /** The newest block if undefined. */
  blockNumber: bigint | undefined;
  recordTo: string | undefined;
};

export type RecordedForkSpec = { kind: "recording"; path: string };

/**
 * Validates the fork options.
 *
 * @param networks the networks that are started
 * @throws {ConfigurationError} listing every problem. It shows no URLs, since they hold keys.
 */
export function readForkOptions(
  fork: ForkOptions,
  networks: readonly NetworkName[],
): ReadonlyMap<NetworkName, ForkSpec> {
  const problems: ConfigurationProblem[] = [];
  if (typeof fork !== "object" || fork === null) {
    const example = '{ base: "https://…" }';
    throw new ConfigurationError([{ name: "fork", problem: "names no network to fork", example }]);
  }
  const specs = new Map<NetworkName, ForkSpec>();
  for (const [name, option] of Object.entries(fork)) {
    if (!networks.includes(name) && builtInNetworks.named(name) === undefined) {
      problems.push({
        name: `fork.${name}`,
        problem: `there is no such network; there are ${builtInNetworks.names.join(", ")}`,
      });
    } else if (!networks.includes(name)) {
      problems.push({
        name: `fork.${name}`,
        problem: `${name} is not among the networks that are started: ${networks.join(", ")}`,
      });
    } else {
      const spec = readForkOption(`fork.${name}`, option, problems);
      if (spec !== undefined) specs.set(name, spec);
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return specs;
}

/** Reads one fork option and adds what is wrong to `problems`. Takes `unknown` because callers may be JavaScript. */
function readForkOption(
  name: string,
  option: unknown,
  problems: ConfigurationProblem[],
): ForkSpec | undefined {
  const refuse = (field: string, problem: string, example: string) => {
    problems.push({ name: field, problem, example });
    return undefined;
  };
  if (typeof option === "string") return readForkOption(name, { url: option }, problems);
  const whole = '{ url: "https://…" } or { recording: "base.fork.json" }';
  if (option === undefined) {
    // Usually an unset environment variable. Starting an empty chain instead would look like a fork.
    return refuse(name, "is undefined; leave it out to start an empty chain", whole);
  }
  if (typeof option !== "object" || option === null) {
    return refuse(name, "is neither a URL nor a description of a fork", whole);
  }
  const { url, blockNumber, recordTo, recording, ...unknown }: Record<string, unknown> = { ...option };
  const [surplus] = Object.keys(unknown);
  if (surplus !== undefined) return refuse(`${name}.${surplus}`, "there is no such option", whole);
  if ((url === undefined) === (recording === undefined)) {
    return refuse(name, "needs a url, or a recording, and not both", whole);
  }
  if (recording !== undefined) {
    if (typeof recording !== "string" || recording === "") {
      return refuse(`${name}.recording`, "is not the path of a file", "base.fork.json");
    }
    if (blockNumber !== undefined || recordTo !== undefined) {
      return refuse(name, "a recording has its block, and is not recorded again", whole);
    }
    return { kind: "recording", path: recording };
  }
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    return refuse(`${name}.url`, "is not a URL that begins with https:// or http://", "https://base.example");
  }
  const block = typeof blockNumber === "bigint" ? blockNumber : toBlock(blockNumber);
  if (block === null || (block !== undefined && block < 0n)) {
    return refuse(`${name}.blockNumber`, "is not the number of a block", "21000000");
  }
  if (recordTo !== undefined && (typeof recordTo !== "string" || recordTo === "")) {
    return refuse(`${name}.recordTo`, "is not the path of a file", "base.fork.json");
  }
  return { kind: "remote", url: parsed, blockNumber: block, recordTo };
}

/** Returns null if the value is not a valid block number. */
function toBlock(value: unknown): bigint | null | undefined {
  if (value === undefined) return undefined;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : null;
}

/** The source of a node's fork: a local server that forwards to the network or answers from a recording. */
export type ForkSource = NodeFork & {
  readonly network: Network;
  /** The URL that the node forks from. It holds no key, because any user of the machine can see process arguments. */
  readonly url: string;
  /**
   * For recordings only. If the recording lacks the state of an authorization of the token, answers that it is unused,
   * since it was signed after the recording was made.
   *
   * @param mappingSlot the slot of the mapping that holds the authorization states
   * @returns the collector that must see the calldata of every call
   */
  expectAuthorizations(token: Address, mappingSlot: bigint): AuthorizationSlots;
  /** Stops the server and writes the recording, if one is to be kept. */
  close(): Promise<void>;
};

export type OpenForkOptions = {
  network: Network;
  spec: ForkSpec;
  facilitatorContract: Address;
  /** Accounts that the harness sets up itself. The fork sees them as never used. */
  blankAccounts: readonly Address[];
  /** Aborts opening. */
  signal?: AbortSignal | undefined;
};
