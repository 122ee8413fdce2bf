import { createInterface } from "node:readline/promises";
import { chooseEndpoint, type OnChain } from "../../chain/deploy/endpoints.ts";
import { createLocalSigner, type Signer } from "../../chain/signing/local-signer.ts";
import { type DeployEnvironment, readDeployEnvironment } from "../../config/environment.ts";
import type { KnownNetwork } from "../../config/known-networks.ts";
import type { Address } from "../../protocol/hex.ts";
import { isPublishedAddress } from "../../service/health/check-configuration.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { Interruption, type Terminal } from "../kit/terminal.ts";

/** How the user decided about sending: no, yes, or ask at the terminal. */
export type Mode = "dry run" | "send" | "ask";

/** The context that all forms of `deploy` share. */
export type DeploySession = {
  network: KnownNetwork;
  environment: DeployEnvironment;
  /** The sender; undefined in a dry run without a key. */
  signer: Signer | undefined;
  mode: Mode;
  json: boolean;
  /** True if all RPC URLs are on this machine, so nothing of value is at stake. */
  isLocal: boolean;
  terminal: Terminal;
};

/**
 * Reads the environment.
 *
 * @throws ConfigurationError if something is missing
 */
export function openSession(options: {
  network: KnownNetwork;
  mode: Mode;
  json: boolean;
  terminal: Terminal;
}): DeploySession {
  const { network, terminal, ...how } = options;
  const environment = readDeployEnvironment(terminal.env, network);
  const { deployerKey, rpcUrls, warnings } = environment;
  const isLocal = rpcUrls.every(isLoopbackUrl);
  if (deployerKey === undefined && how.mode !== "dry run") {
    throw new ConfigurationError([
      {
        name: "DEPLOYER_PRIVATE_KEY",
        problem: "is needed to send; --dry-run can do without",
        example: "0x and 64 hexadecimal digits",
      },
    ]);
  }
  for (const warning of warnings) terminal.printError(`warning: ${warning.name}: ${warning.problem}`);
  const signer = deployerKey && createLocalSigner(deployerKey);
  return { ...how, network, environment, signer, isLocal, terminal };
}

/** Connects to an RPC endpoint of the network. Returns it with the network, configured as the service would have it. */
export async function connectToNetwork(
  session: DeploySession,
  facilitatorContract: Address,
): Promise<OnChain> {
  const { network: known, environment } = session;
  const { rpcUrls, maxFeePerGas } = environment;
  const assets = [known.usdc];
  const network = { ...known, facilitatorContract, rpcUrls, assets, maxFeePerGas };
  return { network, rpc: await chooseEndpoint(network) };
}

/**
 * Finds the accounts whose keys are published, without duplicates. They may only be used on a local chain.
 *
 * @throws ConfigurationError if there are any and the chain is not local
 */
export function findPublishedAccounts(
  { isLocal }: DeploySession,
  accounts: readonly { name: string; address: Address }[],
): readonly Address[] {
  const published = accounts.filter(({ address }) => isPublishedAddress(address));
  if (isLocal || published.length === 0) return [...new Set(published.map(({ address }) => address))];
  throw new ConfigurationError(
    published.map(({ name, address }) => ({
      name,
      problem: `${address} is the account of a published test key, which anyone can sign with; only a chain on this machine may know it`,
    })),
  );
}

/**
 * Decides whether to send what was printed; asks at the terminal if necessary.
 *
 * @param before what must be done before it can be sent
 * @throws KitError if there is no terminal to ask at
 */
export async function confirm(
  { mode }: DeploySession,
  question: string,
  before: readonly string[] = [],
): Promise<boolean> {
  if (mode !== "ask") return mode === "send";
  if (!process.stdin.isTTY) {
    throw new KitError("Nothing was sent: there is no terminal to ask at", {
      hints: [...before, "Add --yes to send it."],
    });
  }
  return askYesOrNo(question);
}

/** Asks at the terminal. Anything but yes means no. */
async function askYesOrNo(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const interruption = new AbortController();
  // In a prompt, Ctrl-C arrives as a key.
  terminal.on("SIGINT", () => interruption.abort());
  try {
    const answer = await terminal.question(`${question} (yes/no) `, { signal: interruption.signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch {
    throw new Interruption();
  } finally {
    terminal.close();
  }
}
