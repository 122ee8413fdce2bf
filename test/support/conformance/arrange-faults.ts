import { setTimeout } from "node:timers/promises";
import { encodeFunctionData } from "viem";
import { mockUsdcAbi } from "../../../src/contracts/mockUsdc.ts";
import { strangerAddress } from "../../../src/fixtures/cases/payment-spec.ts";
import type { ScenarioFault, ScenarioPlan } from "../../../src/fixtures/cases/scenario.ts";
import { writeRequest } from "../../../src/fixtures/cases/write-request.ts";
import type { FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import type { ScenarioEnvironment } from "../../../src/fixtures/engine/scenario-environment.ts";
import { createFaultSetters } from "../../../src/harness/faults/faults.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { ArrangedFault } from "../../../src/judge/conformance/run-conformance.ts";
import { sendRequest } from "../../../src/judge/conformance/send-request.ts";
import { authorizationOf } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { encodeSubmission } from "../../../src/methods/exact-eip3009/on-chain/token-calls.ts";
import { parsePaymentRequest } from "../../../src/methods/methods.ts";
import { exactProxyAddress, permit2Address } from "../../../src/methods/permit2/permit.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import type { Hex } from "../../../src/protocol/hex.ts";
import { runningChain } from "../running-chain.ts";
import { balanceOf, sendFrom } from "../service.ts";
import { type Breakage, startBreakingProxy } from "./breaking-proxy.ts";
import { sendAndGiveUp } from "./send-and-give-up.ts";
import { type StrainedService, startEndingService, startStrainedService } from "./strained-service.ts";

/** Code that refuses every call: `PUSH0 PUSH0 REVERT`. */
const revertingCode = "0x5f5ffd";

/** Causes each fault for real, around a service on local chains; payments are made on base. */
export function createFaultArranger(
  harness: RunningHarness,
  environment: ScenarioEnvironment,
): (fault: ScenarioFault, plan: ScenarioPlan) => Promise<ArrangedFault> {
  const origin = new URL(harness.description.facilitator.url).origin;
  const { node, asset, facilitatorContract } = runningChain(harness, "base");
  const faults = createFaultSetters(harness.faults);
  const send = (request: FixtureRequest) => sendRequest(origin, request);
  const tokenCall = (from: `0x${string}`, data: `0x${string}`) =>
    sendFrom(harness, from, asset.address, data);

  /** Resolves when the operator has a transaction that waits to be mined. */
  async function untilBroadcast(): Promise<void> {
    const count = (tag: string) =>
      node.request("eth_getTransactionCount", harnessAccounts.operator.address, tag);
    while ((await count("pending")) === (await count("latest"))) await setTimeout(5);
  }

  /** First sends another request, whose transaction is not mined before the fault ends. */
  async function whileUnderWay(other: FixtureRequest): Promise<ArrangedFault> {
    const held = await faults.chain("base").holdBlocks();
    const otherAnswer = send(other);
    await untilBroadcast();
    return {
      send,
      async end() {
        await held.remove();
        await otherAnswer;
      },
    };
  }

  async function behind(service: StrainedService): Promise<ArrangedFault> {
    return { send: (request) => sendRequest(service.origin, request), end: () => service.close() };
  }

  async function through(breakage: Breakage): Promise<ArrangedFault> {
    const proxy = await startBreakingProxy(origin, breakage);
    const sendThrough = breakage === "never_answers" ? sendAndGiveUp : sendRequest;
    return { send: (request) => sendThrough(proxy.origin, request), end: () => proxy.close() };
  }

  /** Calls `act` when the request's transaction waits to be mined. */
  function meanwhile(act: () => Promise<void>): ArrangedFault["send"] {
    return async (request) => {
      const answer = send(request);
      await untilBroadcast();
      await act();
      return answer;
    };
  }

  /** Puts other code at an address until the fault ends. */
  async function withCode(address: Hex, code: Hex): Promise<ArrangedFault> {
    const before = await node.request("eth_getCode", address, "latest");
    await node.request("anvil_setCode", address, code);
    return { send, end: async () => void (await node.request("anvil_setCode", address, before)) };
  }

  return async (fault, { request }) => {
    switch (fault) {
      case "rpc_down": {
        const down = await faults.on("base").reset();
        return { send, end: down.remove };
      }
      case "rpc_slow": {
        const slow = await faults.on("base").delay(200);
        return { send, end: slow.remove };
      }
      case "operator_without_gas": {
        const empty = await faults.chain("base").emptyOperator();
        return { send, end: empty.remove };
      }
      case "mining_held": {
        const held = await faults.chain("base").holdBlocks();
        return { send, end: held.remove };
      }
      case "mined_late": {
        const held = await faults.chain("base").holdBlocks();
        const release = meanwhile(async () => {
          await setTimeout(200);
          await held.remove();
        });
        return { send: release };
      }
      case "token_paused":
        await tokenCall(
          harnessAccounts.treasury.address,
          encodeFunctionData({ abi: mockUsdcAbi, functionName: "pause" }),
        );
        return {
          send,
          end: () =>
            tokenCall(
              harnessAccounts.treasury.address,
              encodeFunctionData({ abi: mockUsdcAbi, functionName: "unpause" }),
            ),
        };
      case "contract_blacklisted":
        await tokenCall(
          harnessAccounts.treasury.address,
          encodeFunctionData({
            abi: mockUsdcAbi,
            functionName: "blacklist",
            args: [facilitatorContract],
          }),
        );
        return { send };
      case "asset_missing":
        return withCode(asset.address, "0x");
      case "proxy_missing":
        return withCode(exactProxyAddress, "0x");
      case "permit2_reverts":
        return withCode(permit2Address, revertingCode);
      case "submitted_by_others":
        await tokenCall(strangerAddress, directSubmission(request));
        return { send };
      case "reverted": {
        const held = await faults.chain("base").holdBlocks();
        return {
          send: meanwhile(async () => {
            await spendEverything();
            await held.remove();
          }),
        };
      }
      case "front_run": {
        const held = await faults.chain("base").holdBlocks();
        return {
          send: (request) =>
            meanwhile(async () => {
              await sendFirst(strangerAddress, directSubmission(request));
              await held.remove();
            })(request),
        };
      }
      case "own_payment_under_way":
        return whileUnderWay(request);
      case "same_payment_under_way": {
        const headers = { ...request.headers, authorization: testKeys.rival.apiKey };
        return whileUnderWay({ ...request, headers });
      }
      case "balance_taken_up": {
        const amount = await balanceOf(harness, testPayers.funded.address);
        const at = { operation: "settle", x402Version: 1, label: "takes up the balance" } as const;
        return whileUnderWay(await writeRequest(environment, at, { amount, key: "rival" }));
      }
      case "rate_limited": {
        const rate = { burst: 1, perSecond: 0.1 };
        const service = await startStrainedService(harness, { rateLimits: { key: rate, address: rate } });
        await sendRequest(service.origin, { ...request, body: "{}" });
        return behind(service);
      }
      case "overloaded":
        return behind(
          await startStrainedService(harness, {
            pressure: {
              maxSettles: 0,
              maxVerifies: 0,
              maxOthers: 100,
              organizationShare: 1,
              maxLagMs: 60_000,
            },
          }),
        );
      case "shutting_down":
        return behind(await startEndingService(harness));
      case "reset_before":
      case "reset_after":
      case "never_answers":
      case "internal_error":
      case "gateway_timeout":
      case "gateway_error":
      case "cut_off":
      case "not_json":
        return through(fault);
    }
  };

  /** Transfers the payer's whole balance away before any other transaction. */
  async function spendEverything(): Promise<void> {
    const payer = testPayers.funded.address;
    const args = [strangerAddress, await balanceOf(harness, payer)] as const;
    await sendFirst(payer, encodeFunctionData({ abi: mockUsdcAbi, functionName: "transfer", args }));
  }

  /** Calls the token in a transaction that pays more than others and so comes before them. */
  async function sendFirst(from: `0x${string}`, data: `0x${string}`): Promise<void> {
    await node.request("anvil_impersonateAccount", from);
    await node.request("anvil_setBalance", from, "0xde0b6b3a7640000");
    await node.request("eth_sendTransaction", {
      ...{ from, to: asset.address, data },
      gas: "0x30d40",
      maxFeePerGas: "0x174876e800",
      maxPriorityFeePerGas: "0x174876e800",
    });
  }
}

/** The token calldata that uses a request's authorization. */
function directSubmission({ body = "" }: FixtureRequest): `0x${string}` {
  const parsed = parsePaymentRequest(JSON.parse(body));
  if (!parsed.ok) throw new Error("the request holds no payment");
  const { payment } = parsed.request;
  return encodeSubmission(authorizationOf(payment), payment.signature);
}
