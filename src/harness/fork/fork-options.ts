import type { Address } from "../../protocol/hex.ts";
import { builtInNetworks, type Network, type NetworkName } from "../../protocol/networks.ts";
import { ConfigurationError, type ConfigurationProblem } from "../../util/errors.ts";
import type { NodeFork } from "../nodes/nodes.ts";
import type { AuthorizationSlots } from "./authorization-slots.ts";

export type ForkOption =
  /** A JSON-RPC URL of the network; its newest block. */
  | string
  | {
      url: string;
      /** The block to fork from; the newest by default. Older ones need an archive node. */
      blockNumber?: number | bigint | undefined;
      /** A file to write a recording to when the harness closes: everything that was asked of the network. */
      recordTo?: string | undefined;
    }
  /** A file that `x402-kit fork record`, or `recordTo`, has written. Needs no network. */
  | { recording: string };

/** The sources of forks, each network at most once. */
export type ForkOptions = Readonly<Partial<Record<NetworkName, ForkOption>>>;

/** A fork as it was asked for, checked. */
export type ForkSpec = RemoteForkSpec | RecordedForkSpec;

export type RemoteForkSpec = {
  kind: "remote";
  url: URL;
  /** The newest block when undefined. */
  blockNumber: bigint | undefined;
  recordTo: string | undefined;
};

export type RecordedForkSpec = { kind: "recording"; path: string };

/**
 * Checks what the chains are to be forked from.
 *
 * @param networks those that are started
 * @throws {ConfigurationError} with everything that is wrong; it shows no URL, since those hold keys
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

/** Reads one fork; notes what is wrong with it. Takes anything: callers may be JavaScript. */
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
    // Most often a variable of the environment that is not set: an empty chain would pass for a fork.
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

/** Null when it is no number of a block. */
function toBlock(value: unknown): bigint | null | undefined {
  if (value === undefined) return undefined;
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : null;
}

/** The source of a node's fork: a server on this machine that forwards to the network, or answers from a recording. */
export type ForkSource = NodeFork & {
  readonly network: Network;
  /** The URL that the node forks from. It holds no key: every user of the machine can see the arguments of a process. */
  readonly url: string;
  /**
   * From a recording only: the token whose authorizations were all signed after it, with the slot of the mapping that
   * keeps their states. Gives where to note what calls name.
   */
  expectAuthorizations(token: Address, mappingSlot: bigint): AuthorizationSlots;
  /** Ends the server, and writes the recording that was asked for. */
  close(): Promise<void>;
};

export type OpenForkOptions = {
  network: Network;
  spec: ForkSpec;
  facilitatorContract: Address;
  /** The accounts that the harness puts in place itself; on the fork nothing of theirs is left. */
  blankAccounts: readonly Address[];
  /** Gives up opening. */
  signal?: AbortSignal | undefined;
};
