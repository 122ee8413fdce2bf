import { expect, test } from "vitest";
import { createLogger } from "../observe/log/logger.ts";
import type { Address } from "../protocol/hex.ts";
import type { Check } from "./health/check.ts";
import { createSupervision } from "./service-health.ts";

const operator: Address = "0x857b06519E91e3A54538791bDbb0E22373e36b66";

test("a signer that is down is logged once, keeps its operator from sending, and is forgotten when it is back", async () => {
  const log: string[] = [];
  let checks: readonly Check[] = [];
  const supervision = createSupervision({
    inspect: async () => ({ checks, verdict: "serve" }),
    log: createLogger("info", { write: (line: string) => void log.push(JSON.parse(line).msg) }),
  });
  expect(supervision.canSend("base", operator)).toBe(true);

  checks = [{ name: "signer", status: "failed", detail: "the connection failed", account: operator }];
  await supervision.inspect("base");
  await supervision.inspect("base");
  expect(supervision.canSend("base", operator)).toBe(false);
  expect(supervision.canSend("optimism", operator)).toBe(true);
  expect(log).toEqual(["signer: the connection failed"]);

  checks = [];
  await supervision.inspect("base");
  expect(supervision.canSend("base", operator)).toBe(true);
  expect(log.slice(1)).toEqual(["every check of the network is ok again"]);
});

test("gas money that runs low is said once, whatever the balance, and keeps no operator from sending", async () => {
  const log: string[] = [];
  let balance = 10;
  const supervision = createSupervision({
    inspect: async () => ({
      checks: [{ name: "gas money", status: "warning", detail: `${balance--} ETH`, account: operator }],
      verdict: "serve",
    }),
    log: createLogger("info", { write: (line: string) => void log.push(JSON.parse(line).msg) }),
  });
  await supervision.inspect("base");
  await supervision.inspect("base");
  expect(log).toEqual(["gas money: 10 ETH"]);
  expect(supervision.canSend("base", operator)).toBe(true);
});

test("of a network that cannot be asked its endpoint is logged, and not what could not be looked at for that", async () => {
  const log: string[] = [];
  const supervision = createSupervision({
    inspect: async () => ({
      checks: [
        { name: "RPC", status: "failed", detail: "the connection failed" },
        { name: "the rest", status: "skipped", detail: "was not looked at" },
      ],
      verdict: "later",
    }),
    log: createLogger("info", { write: (line: string) => void log.push(JSON.parse(line).msg) }),
  });
  await supervision.inspect("base");
  expect(log).toEqual(["RPC: the connection failed"]);
});
