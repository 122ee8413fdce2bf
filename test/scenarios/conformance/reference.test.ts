import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import {
  type ReferenceFacilitator,
  startReferenceFacilitator,
} from "../../support/conformance/reference-facilitator.ts";
import { runHere } from "../../support/run-here.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/*
 * `x402-kit conformance` against the public reference facilitator: what it calls wrong is wrong by a sentence of the
 * public specification, and what it merely does otherwise is not held against it.
 */

const reportSchema = z.object({
  facilitator: z.string(),
  wrong: z.number(),
  scenarios: z.array(
    z.object({
      name: z.string(),
      outcome: z.string(),
      level: z.string().optional(),
      rule: z.object({ section: z.string(), says: z.string() }).optional(),
      differences: z.array(z.object({ at: z.string(), expected: z.string(), got: z.string() })).optional(),
    }),
  ),
});

let harness: RunningHarness;
let reference: ReferenceFacilitator;
let report: z.infer<typeof reportSchema>;
let code: number | null;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  const chain = runningChain(harness, "base");
  reference = await startReferenceFacilitator({ ...chain, chainId: chain.network.chainId });
  const payerKey = generatePrivateKey();
  await chain.fund(privateKeyToAddress(payerKey), 1_000_000n);
  await chain.approvePermit2(privateKeyToAddress(payerKey), 1_000_000n);
  const merchant = privateKeyToAddress(generatePrivateKey());
  const command = ["conformance", "--url", reference.origin, "--pay-to", merchant, "--json"];
  const ended = await runHere(command, { PAYER_PRIVATE_KEY: payerKey });
  code = ended.code;
  report = reportSchema.parse(JSON.parse(ended.stdout));
}, 120_000);
afterAll(async () => {
  await reference?.close();
  await harness?.close();
});

test("it is found at the root, without a key", () => {
  expect(report.facilitator).toBe(reference.origin);
  const passed = report.scenarios.filter(({ outcome }) => outcome === "passed").map(({ name }) => name);
  expect(passed).toEqual(
    expect.arrayContaining([
      ...["verify.success.funded", "verify.v2.success.funded"],
      ...["settle.success.funded", "settle.v2.success.funded"],
      ...["verify.v2.success.permit2", "settle.v2.success.permit2"],
    ]),
  );
});

test("every wrong answer rests on a sentence of the specification, and is another verdict or no answer at all", () => {
  const wrong = report.scenarios.filter(({ level }) => level === "wrong");
  const told = wrong.map(({ name, rule, differences = [] }) => {
    const { at, got, expected } = differences.at(-1) ?? {};
    return [`${name}: ${at} is ${got}, not ${expected}`, `${rule?.section} ${rule?.says}`];
  });
  expect(told).toMatchInlineSnapshot(`
    [
      [
        "settle.invalid_payload.no_network: body.network is nothing, not "base"",
        "5.3.2 SettlementResponse: success, transaction (a hash, or an empty string) and network are required",
      ],
      [
        "settle.v2.invalid_payload.no_network: body.network is nothing, not "eip155:8453"",
        "5.3.2 SettlementResponse: success, transaction (a hash, or an empty string) and network are required",
      ],
      [
        "settle.v2.channel.strangers_refund: body.success is a success, not a refusal: only the channel's shop may have it refunded",
        "7.2 Executes a verified payment by broadcasting the transaction to the blockchain",
      ],
    ]
  `);
  expect(wrong).toHaveLength(report.wrong);
  expect(code).toBe(1);
});

test("another reason is never wrong, in version 1 as little as in version 2, and least of all its five of settle", () => {
  const v1Codes = [
    ...["invalid_payload", "invalid_payment_requirements", "insufficient_funds"],
    ...["invalid_transaction_state", "unexpected_settle_error"],
  ];
  const byReason = report.scenarios.filter(({ level, differences = [] }) => {
    const places = differences.map(({ at }) => at);
    return level !== "kit" && places.length > 0 && places.every((at) => /Reason$/.test(at));
  });
  expect(byReason.length).toBeGreaterThan(10);
  expect(byReason.map(({ level }) => level)).toEqual(byReason.map(() => "differs"));
  const codes = byReason.flatMap(({ name }) => /^settle\.(\w+)\./.exec(name)?.[1] ?? []);
  for (const code of codes) expect([...v1Codes, "v2"]).toContain(code);
  // Each wrong verdict of one version is one of the other too, where the versions say the same: version 1 has no channels.
  const wrong = report.scenarios
    .filter(({ level, name }) => level === "wrong" && !name.includes(".channel."))
    .map(({ name }) => name.replace(".v2", ""));
  for (const name of new Set(wrong)) expect(wrong.filter((one) => one === name)).toHaveLength(2);
});

test("verdicts that are right by other words differ, and extensions of this kit are not counted", () => {
  const levelOf = (wanted: string) => report.scenarios.find(({ name }) => name === wanted)?.level;
  expect(levelOf("verify.insufficient_funds.empty")).toBe("differs");
  expect(levelOf("settle.v2.insufficient_funds.empty")).toBe("differs");
  expect(levelOf("verify.success.short_form")).toBe("kit");
  expect(levelOf("settle.invalid_payment_requirements.two_amounts")).toBe("kit");
});
