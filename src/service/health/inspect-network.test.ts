import { parseEther } from "viem";
import { expect, test } from "vitest";
import type { EndpointAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { x402FacilitatorDeployedBytecode } from "../../contracts/x402Facilitator.ts";
import { domainSeparator } from "../../methods/eip712.ts";
import { type Address, addressWord, uintWord } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { type InspectionOptions, inspectNetwork } from "./inspect-network.ts";

const operator: Address = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const network: NetworkConfig = {
  ...networks.base,
  facilitatorContract: "0x4020000000000000000000000000000000000001",
  rpcUrls: ["http://127.0.0.1:1"],
  assets: [networks.base.usdc],
  confirmations: 2,
  forwardEndpoints: 1,
  maxFeePerGas: 5_000_000_000n,
};
const sponsor: Address = `0x${"5e".repeat(20)}`;
const nowMs = 1_800_000_000_000;

/** The answers of a good network's node to each call. */
function answerWell({ method, params }: RpcCall): unknown {
  switch (method) {
    case "eth_chainId":
      return "0x2105";
    case "eth_getBlockByNumber":
      return {
        number: "0x64",
        timestamp: `0x${(nowMs / 1000 - 2).toString(16)}`,
        baseFeePerGas: "0x3b9aca0",
      };
    case "eth_getCode":
      return x402FacilitatorDeployedBytecode;
    case "eth_getBalance":
      return "0xde0b6b3a7640000";
    case "eth_maxPriorityFeePerGas":
      return "0xf4240";
    case "eth_getTransactionCount":
      return "0x7";
    case "eth_call": {
      const data = JSON.stringify(params);
      if (data.includes("3644e515")) return tokenViews(6n);
      if (data.includes("6afdd850")) return permit2Views();
      if (data.includes("2d4e01fd")) return probes(uintWord(1_000_000_000n), uintWord(999_990_000n));
      return data.includes("5c975abb") ? contractViews(1) : probes(uintWord(0n));
    }
    default:
      throw new Error(`unexpected call of ${method}`);
  }
}

/** Domain and decimals of the only token. */
const tokenViews = (decimals: bigint) =>
  probes(domainSeparator(networks.base.usdc, 8453).slice(2), uintWord(decimals), uintWord(0n));

/** That Permit2 is there, and is that of both proxies of x402. */
const permit2Views = () =>
  probes(uintWord(0n), ...[1, 2].map(() => addressWord("0x000000000022D473030F116dDEE9F6B43aC78BA3")));

/** The contract's admin, its delay, that it is not paused, and that all accounts hold their roles. */
const contractViews = (accounts: number) =>
  probes(
    ...[addressWord(network.facilitatorContract), uintWord(172_800n), uintWord(0n)],
    ...Array.from({ length: accounts }, () => uintWord(1n)),
  );

/** Returns true if a call asks for the contract's limit. */
const asksLimit = ({ params }: RpcCall) => JSON.stringify(params).includes("2d4e01fd");
const unanswered = (count: number) =>
  `0x${uintWord(100n)}${`${uintWord(1n)}${uintWord(0n)}${uintWord(0n)}`.repeat(count)}`;

function probes(...words: string[]): string {
  return `0x${uintWord(100n)}${words.map((word) => `${uintWord(1n)}${uintWord(1n)}${word}`).join("")}`;
}

/** An endpoint, and how many requests it got. */
function endpoint(answer: (call: RpcCall) => unknown = answerWell) {
  const state = {
    requests: 0,
    ask: async (calls: readonly RpcCall[]): Promise<readonly EndpointAnswer[]> => {
      state.requests++;
      return calls.map((call) => {
        const result = answer(call);
        return result instanceof Error
          ? { error: { code: -32000, message: result.message, data: undefined }, endpoint: "1" }
          : { result, endpoint: "1" };
      });
    },
  };
  return state;
}

const ofOtherChain = () => endpoint((call) => (call.method === "eth_chainId" ? "0xa" : answerWell(call)));
const unreachable = () => ({
  ask: () =>
    Promise.reject(
      new UndeterminedError("base could not be reached", { cause: new Error("the connection failed") }),
    ),
});

const usual = {
  network,
  operators: [operator],
  recoverer: undefined,
  sponsor: undefined,
  nextTxNonce: async () => 7,
  now: () => nowMs,
};

async function inspect(
  endpoints: InspectionOptions["endpoints"],
  changes: Partial<InspectionOptions> = {},
): Promise<{ verdict: string; bad: string[] }> {
  const { checks, verdict } = await inspectNetwork({ ...usual, endpoints, ...changes });
  const bad = checks.filter(({ status }) => status !== "ok");
  return { verdict, bad: bad.map(({ name, status, detail }) => `${status} ${name}: ${detail}`) };
}

test("a network as it should be is served, and took one request", async () => {
  const node = endpoint();
  expect(await inspect([node])).toEqual({ verdict: "serve", bad: [] });
  expect(node.requests).toBe(1);
});

test("a network with one endpoint is served, and its operator is told what that means", async () => {
  const { forwardEndpoints: _, ...usual } = network;
  const one = { ...usual, rpcUrls: ["http://127.0.0.1:1"] as const };
  expect(await inspect([endpoint()], { network: one })).toEqual({
    verdict: "serve",
    bad: [expect.stringContaining("warning RPC endpoints: there is one")],
  });
  const two = { ...usual, rpcUrls: ["http://127.0.0.1:1", "http://127.0.0.1:2"] as const };
  expect(await inspect([endpoint(), endpoint()], { network: two })).toEqual({ verdict: "serve", bad: [] });
});

test.each([
  { successEndpoints: 2, urls: 2, found: "failed" },
  { successEndpoints: 1, urls: 2, found: "warning" },
  { successEndpoints: 2, urls: 3, found: undefined },
] as const)("one dead endpoint of $urls, with $successEndpoints to confirm, is $found", async (row) => {
  const url = "http://127.0.0.1:1";
  const rpcUrls = row.urls === 2 ? ([url, url] as const) : ([url, url, url] as const);
  const { successEndpoints } = row;
  const live = rpcUrls.slice(1).map(() => endpoint());
  const { checks, verdict } = await inspectNetwork({
    ...usual,
    network: { ...network, rpcUrls, successEndpoints },
    endpoints: [unreachable(), ...live],
  });
  expect(checks.find(({ name }) => name === "confirming")?.status).toBe(row.found);
  expect(verdict).toBe("serve");
});

test("what the first endpoint cannot say is asked of another", async () => {
  const node = endpoint();
  expect(await inspect([unreachable(), node])).toEqual({
    verdict: "serve",
    bad: ["warning RPC 1: the connection failed"],
  });
  expect(node.requests).toBe(2);
});

test("a network without an endpoint that answers is looked at later", async () => {
  expect(await inspect([unreachable()])).toEqual({
    verdict: "later",
    bad: [
      "failed RPC: the connection failed",
      "skipped the rest: was not looked at: there is no RPC endpoint to ask",
    ],
  });
});

test("a network whose endpoints all are of another chain is refused", async () => {
  expect((await inspect([ofOtherChain(), ofOtherChain()])).verdict).toBe("refuse");
});

test("an endpoint of another chain keeps neither its network from being served nor one from being tried again", async () => {
  expect(await inspect([ofOtherChain(), endpoint()])).toEqual({
    verdict: "serve",
    bad: ["failed chain id 1: the RPC serves chain 10, but base is chain 8453"],
  });
  expect((await inspect([ofOtherChain(), unreachable()])).verdict).toBe("later");
});

test.each(["eth_getCode", "eth_call", "eth_getTransactionCount"])(
  "a network is looked at again where %s got no usable answer",
  async (method) => {
    const node = endpoint((call) => (call.method === method ? new Error("busy") : answerWell(call)));
    const { verdict, bad } = await inspect([node]);
    expect(verdict).toBe("later");
    expect(bad.join()).toContain("busy");
  },
);

test("an operator whose gas money cannot be read does not keep a network from being served", async () => {
  const node = endpoint((call) => (call.method === "eth_getBalance" ? new Error("busy") : answerWell(call)));
  expect((await inspect([node])).verdict).toBe("serve");
});

test("an operator's gas money is counted with the tip that the node suggests, as settling pays it", async () => {
  const gwei = "0x3b9aca00";
  const node = endpoint((call) => {
    if (call.method === "eth_maxPriorityFeePerGas") return gwei;
    return call.method === "eth_getBalance" ? "0xb5e620f48000" : answerWell(call);
  });
  expect((await inspect([node])).bad).toEqual([
    `failed gas money: 0.0002 ETH of ${operator} does not cover one settlement, which needs 0.000649 ETH at hand`,
  ]);
});

test("an operator's gas money must cover the dearest way that the assets are paid in", async () => {
  // Between what a payment by EIP-3009 needs at these fees, and one by Permit2.
  const node = endpoint((call) => {
    if (call.method === "eth_maxPriorityFeePerGas") return "0x3b9aca00";
    return call.method === "eth_getBalance" ? "0x221b262dd8000" : answerWell(call);
  });
  expect((await inspect([node])).bad).toEqual([
    expect.stringMatching(/^failed gas money: 0\.0006 ETH .* does not cover one settlement/),
  ]);
  const assets = [{ ...networks.base.usdc, transfers: ["eip3009"] }];
  expect((await inspect([node], { network: { ...network, assets } })).bad).toEqual([
    expect.stringMatching(/^warning gas money: 0\.0006 ETH .* buys 4 settlements/),
  ]);
});

test("where the node suggests no tip, it is counted with the usual one", async () => {
  const node = endpoint((call) =>
    call.method === "eth_maxPriorityFeePerGas" ? new Error("no such method") : answerWell(call),
  );
  expect(await inspect([node])).toEqual({ verdict: "serve", bad: [] });
});

test("a token with other decimals than configured is served, and said", async () => {
  const node = endpoint((call) =>
    JSON.stringify(call.params).includes("3644e515") ? tokenViews(18n) : answerWell(call),
  );
  expect(await inspect([node])).toEqual({
    verdict: "serve",
    bad: [expect.stringMatching(/^warning asset: .* but has 18 decimals, not 6 as configured$/)],
  });
});

test.each<[string, (call: RpcCall) => unknown, string]>([
  [
    "no contract",
    (call) => (call.method === "eth_getCode" ? "0x" : answerWell(call)),
    `failed contract: there is no facilitator contract at ${network.facilitatorContract}`,
  ],
  [
    "another contract",
    (call) => (call.method === "eth_getCode" ? "0x60" : answerWell(call)),
    `failed contract: ${network.facilitatorContract} has other code than this version's contract`,
  ],
  [
    "a contract of a version without a limit of what the recoverer pays out",
    (call) => {
      if (call.method === "eth_getCode") return "0x60";
      return asksLimit(call) ? unanswered(2) : answerWell(call);
    },
    `failed contract: ${network.facilitatorContract} has other code than this version's contract: that of an older one, whose recoverer can take all that is stranded`,
  ],
  [
    "transactions that the ledger does not know",
    (call) => (call.method === "eth_getTransactionCount" ? "0x9" : answerWell(call)),
    `failed txNonce: the chain is at 9 for ${operator}, and this database at 7: another service sends with this key, or the database is an old copy`,
  ],
])("a network with %s is refused", async (_name, answer, bad) => {
  expect(await inspect([endpoint(answer)])).toEqual({ verdict: "refuse", bad: [bad] });
});

test.each<[string, string, string[]]>([
  ["a day's gifts", "0.01", []],
  [
    "gifts of less than a day",
    "0.000351",
    [
      `warning gifts: 0.000351 ETH of the sponsor ${sponsor} cover 3 gifts of 0.0001 ETH, and not the 0.01 ETH that may be given in a day`,
    ],
  ],
  [
    "no gift",
    "0.0001",
    [
      `warning gifts: 0.0001 ETH of the sponsor ${sponsor} do not cover one gift, up to 0.0001 ETH and its gas: payers without gas are told to approve Permit2 by themselves`,
    ],
  ],
])("a sponsor who has %s", async (_, coins, bad) => {
  const gifts = { each: 10n ** 14n, daily: 10n ** 16n };
  const balance = parseEther(coins);
  const node = endpoint((call) =>
    call.method === "eth_getBalance" && JSON.stringify(call.params).includes(sponsor)
      ? `0x${balance.toString(16)}`
      : answerWell(call),
  );
  const sponsored = { network: { ...network, gifts }, sponsor };
  expect(await inspect([node], sponsored)).toEqual({ verdict: "serve", bad });
  expect(await inspect([node], { sponsor })).toEqual({ verdict: "serve", bad: [] });
});

test("what the contract forwards is said where there is a recoverer", async () => {
  const limits = async (limit: bigint, available: bigint) => {
    const node = endpoint((call) => {
      if (asksLimit(call)) return probes(uintWord(limit), uintWord(available));
      return JSON.stringify(call.params).includes("5c975abb") ? contractViews(2) : answerWell(call);
    });
    const { checks, verdict } = await inspectNetwork({ ...usual, endpoints: [node], recoverer: operator });
    expect(verdict).toBe("serve");
    return checks
      .filter(({ name }) => name === "forward limit")
      .map(({ status, detail }) => `${status} ${detail}`);
  };
  expect(await limits(1_000_000_000n, 999_990_000n)).toEqual([
    "ok the contract forwards up to 999.99 USDC now; its limit is 1,000 USDC",
  ]);
  expect(await limits(0n, 0n)).toEqual([
    "warning the contract forwards no USDC: payments that were submitted directly to the token wait",
  ]);
});

test("transactions of the ledger that the node does not know are named", async () => {
  expect(await inspect([endpoint()], { nextTxNonce: async () => 12 })).toEqual({
    verdict: "serve",
    bad: [
      `warning txNonce: ${operator} goes on at 12, but the node knows only its transactions below txNonce 7: 5 are missing`,
    ],
  });
});

test("a node that lags, or a clock that is wrong, is said, and the rest is looked at all the same", async () => {
  expect(await inspect([endpoint()], { now: () => nowMs + 3_600_000 })).toEqual({
    verdict: "serve",
    bad: ["failed head: block 100 is 3,602 s old"],
  });
  expect(await inspect([endpoint()], { now: () => nowMs - 3_600_000 })).toEqual({
    verdict: "serve",
    bad: ["failed head: block 100 is 3,598 s ahead of this machine's clock"],
  });
});
