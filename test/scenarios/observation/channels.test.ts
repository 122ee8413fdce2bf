import { expect, test } from "vitest";
import { createHarness } from "../../../src/harness/index.ts";
import { channels, type FromService, type Message } from "../../../src/observe/channels/channels.ts";
import { checkNames } from "../../../src/protocol/checks.ts";

test("a settle can be followed on the channels from its request to the delivery of its answer", async () => {
  await using harness = await createHarness({ networks: ["base"], journal: false });
  const seen: string[] = [];
  const ids = new Set<string>();
  const note = (what: string, { serviceId }: FromService) => {
    ids.add(serviceId);
    if (seen.at(-1) !== what) seen.push(what);
  };
  const made: Message<"checks">[] = [];
  let claimedAt = 0;
  const body = await harness.sign({ network: "base" });
  const subscriptions = [
    channels.request.subscribe((message) => note(`request ${message.operation}`, message)),
    channels.checks.subscribe((message) => {
      note("checks", message);
      made.push(message);
    }),
    channels.settlement.subscribe((message) => {
      if (message.step === "claimed") claimedAt = message.at;
      note(`settlement ${message.step}`, message);
    }),
    channels.transaction.subscribe((message) => note(`transaction ${message.step}`, message)),
    channels.delivery.subscribe((message) => note(`delivery ${message.fate}`, message)),
    channels.answer.subscribe((message) => note(`answer ${message.result.outcome}`, message)),
    channels.rpc.subscribe((message) => {
      if (message.purpose === "send") note(`rpc ${message.methods.join()}`, message);
    }),
  ];
  try {
    await harness.settle(body);
    await expect.poll(() => seen).toContain("settlement delivered");
  } finally {
    for (const unsubscribe of subscriptions) unsubscribe();
  }

  expect(seen.filter((what) => !what.startsWith("delivery") && !what.startsWith("answer"))).toEqual([
    "request settle",
    "checks",
    "settlement claimed",
    "transaction signed",
    "transaction broadcast",
    "rpc eth_sendRawTransaction",
    "transaction receipt",
    "transaction concluded",
    "settlement settled",
    "settlement delivered",
  ]);
  // Payments through the facilitator contract have no wallet that could be another's, and EIP-3009 has no maxima.
  const unasked: readonly string[] = ["formIsOfReference", "payToIsOwn", "maximumIsCovered"];
  const asked = checkNames.filter((name) => !unasked.includes(name));
  expect(made.flatMap(({ checks }) => checks.map(({ check }) => check))).toEqual(asked);
  const times = made.map(({ at }) => at);
  expect(times).toEqual([...times].sort((a, b) => a - b));
  expect(times.at(-1)).toBeLessThanOrEqual(claimedAt);
  // What is waited for tells them apart: the ledger, the chain.
  expect(made.map(({ checks }) => checks.at(-1)?.check)).toEqual([
    "signatureHolds",
    "authorizationIsFree",
    "payerIsAccepted",
  ]);
  expect(seen).toContain("answer settled");
  expect(seen).toContain("delivery delivered");
  expect(ids.size).toBe(1);
});

test("two services of one process are told apart", async () => {
  await using first = await createHarness({ networks: ["base"] });
  await using second = await createHarness({ networks: ["polygon"] });
  const checks: Message<"checks">[] = [];
  const unsubscribe = channels.checks.subscribe((message) => checks.push(message));
  const [onBase, onPolygon] = await Promise.all([
    first.pay({ network: "base" }),
    second.pay({ network: "polygon" }),
  ]);
  unsubscribe();

  const servicesOf = (id: string) =>
    new Set(checks.filter(({ settlementId }) => settlementId === id).map(({ serviceId }) => serviceId));
  expect(servicesOf(onBase.settlementId).size).toBe(1);
  expect(servicesOf(onPolygon.settlementId).size).toBe(1);
  expect(servicesOf(onBase.settlementId)).not.toEqual(servicesOf(onPolygon.settlementId));
  expect(await first.journal.payments()).toEqual([onBase.settlementId]);
  expect(await second.journal.payments()).toEqual([onPolygon.settlementId]);
});

test("a fault shows when it hits, with what it has hit", async () => {
  await using harness = await createHarness({ networks: ["base"] });
  const hits: object[] = [];
  const unsubscribe = channels.fault.subscribe(({ network, fault, faultId, methods }) =>
    hits.push({ network, fault, faultId, methods }),
  );
  const { id: faultId } = await harness.faults.on("base", { method: "eth_send*", nth: 1 }).answerLost();
  await harness.pay({ network: "base" });
  unsubscribe();

  expect(hits).toEqual([
    { network: "base", fault: "answer-lost", faultId, methods: ["eth_sendRawTransaction"] },
  ]);
});
