import { afterAll, beforeAll, expect, test } from "vitest";
import { type PaymentSpec, signPayment } from "../../../src/harness/control/pay.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { TestPayerName } from "../../../src/published/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import {
  type ReferenceFacilitator,
  startReferenceFacilitator,
} from "../../support/conformance/reference-facilitator.ts";
import { createRandom } from "../../support/random.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, startTestHarness } from "../../support/service.ts";

/*
 * Random payments, each verified by `up --plain` and by the public reference facilitator on the same chain: the verdicts are
 * the same, but for the classes of `onPurpose`.
 */

let harness: RunningHarness;
let reference: ReferenceFacilitator;
beforeAll(async () => {
  harness = await startTestHarness({
    ...{ networks: ["base"], open: { onClose() {} }, payTo: "any", strictness: "reference" },
  });
  const chain = runningChain(harness, "base");
  reference = await startReferenceFacilitator({ ...chain, chainId: chain.network.chainId });
}, 60_000);
afterAll(async () => {
  await reference?.close();
  await harness?.close();
});

type Kind = "v1" | "v2" | "permit2" | "upto";

const specs: Readonly<Record<Kind, Partial<PaymentSpec>>> = {
  v1: { x402Version: 1 },
  v2: { x402Version: 2 },
  permit2: { method: "permit2" },
  upto: { scheme: "upto" },
};

/** A change of a payment: of what is signed, or of the body. `kinds`: those that it is about. */
type Change = {
  kinds: readonly Kind[];
  spec?: Partial<PaymentSpec>;
  change?: (body: Body) => void;
};

const all: readonly Kind[] = ["v1", "v2", "permit2", "upto"];
const eip3009: readonly Kind[] = ["v1", "v2"];
const v2: readonly Kind[] = ["v2", "permit2", "upto"];
const permits: readonly Kind[] = ["permit2", "upto"];

const authorizationOf = (body: Body) => body.paymentPayload.payload.authorization;

/** The same address with the case of one letter changed, which breaks its checksum. */
function breakCase(address: string): string {
  const letter = /[a-fA-F]/.exec(address.slice(2))?.[0] ?? "a";
  const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
  return `0x${address.slice(2).replace(letter, other)}`;
}

/** In the requirements, and where version 2 repeats them. */
function inTerms(edit: (terms: Body) => void): (body: Body) => void {
  return ({ paymentRequirements, paymentPayload }) => {
    edit(paymentRequirements);
    if (paymentPayload.accepted !== undefined) edit(paymentPayload.accepted);
  };
}

const extended = (name: string, extension: object) => (body: Body) => {
  body.paymentPayload.extensions = { ...body.paymentPayload.extensions, [name]: extension };
};

const approvalInfo = (body: Body) => body.paymentPayload.extensions.eip2612GasSponsoring.info;

const changes: Readonly<Record<string, Change>> = {
  "extra missing": { kinds: all, change: inTerms((terms) => delete terms.extra) },
  "extra empty": { kinds: eip3009, change: inTerms((terms) => (terms.extra = {})) },
  "extra without name": { kinds: eip3009, change: inTerms(({ extra }) => delete extra.name) },
  "extra without version": { kinds: eip3009, change: inTerms(({ extra }) => delete extra.version) },
  "extra of another name": { kinds: eip3009, change: inTerms(({ extra }) => (extra.name = "Another")) },
  "case of from": {
    kinds: eip3009,
    change: (body) => (authorizationOf(body).from = breakCase(authorizationOf(body).from)),
  },
  "case of to": {
    kinds: eip3009,
    change: (body) => (authorizationOf(body).to = breakCase(authorizationOf(body).to)),
  },
  "case of payTo": { kinds: all, change: inTerms((terms) => (terms.payTo = breakCase(terms.payTo))) },
  "case of asset": { kinds: all, change: inTerms((terms) => (terms.asset = breakCase(terms.asset))) },
  "lower case": {
    kinds: eip3009,
    change: (body) => (authorizationOf(body).from = authorizationOf(body).from.toLowerCase()),
  },
  "small v": {
    kinds: all,
    change({ paymentPayload: { payload } }) {
      const v = Number.parseInt(payload.signature.slice(-2), 16);
      payload.signature = `${payload.signature.slice(0, -2)}0${v === 27 ? 0 : 1}`;
    },
  },
  "requirements of version 2": {
    kinds: ["v1"],
    change: ({ paymentRequirements: terms }) => {
      terms.amount = terms.maxAmountRequired;
      delete terms.maxAmountRequired;
    },
  },
  "ten days": { kinds: all, spec: { validForSeconds: 864_000 } },
  "a hundred years": { kinds: all, spec: { validForSeconds: 3_155_760_000 } },
  expired: { kinds: all, spec: { validForSeconds: -30 } },
  "resource empty": { kinds: ["v1"], change: inTerms((terms) => (terms.resource = "")) },
  "resource no URL": { kinds: ["v1"], change: inTerms((terms) => (terms.resource = "report")) },
  "description null": { kinds: ["v1"], change: inTerms((terms) => (terms.description = null)) },
  "mimeType null": { kinds: ["v1"], change: inTerms((terms) => (terms.mimeType = null)) },
  "identifier without info": { kinds: v2, change: extended("payment-identifier", {}) },
  "identifier without id": {
    kinds: v2,
    change: extended("payment-identifier", { info: { required: false } }),
  },
  "identifier malformed": {
    kinds: v2,
    change: extended("payment-identifier", { info: { required: false, id: "short" } }),
  },
  // Not of scheme upto, whose open maxima count at verify.
  "approval of version 1.0": {
    kinds: ["permit2"],
    spec: { approval: true, payer: "unapproved" },
    change: (body) => (approvalInfo(body).version = "1.0"),
  },
  "approval incomplete": {
    kinds: permits,
    spec: { approval: true, payer: "unapproved" },
    change: (body) => delete approvalInfo(body).amount,
  },
  "approval expired, and not needed": {
    kinds: permits,
    spec: { approval: true, payer: "funded" },
    change: (body) => (approvalInfo(body).deadline = "1000"),
  },
  "amount spelled 010000": { kinds: eip3009, change: inTerms((terms) => spell(terms, "010000")) },
  "amount another": { kinds: all, change: inTerms((terms) => spell(terms, "10001")) },
  "value zero": { kinds: ["v1", "v2"], spec: { amount: 0n } },
  "payTo another": { kinds: all, change: inTerms((terms) => (terms.payTo = `0x${"12".repeat(20)}`)) },
  "nonce another": {
    kinds: eip3009,
    change: (body) => (authorizationOf(body).nonce = `0x${"34".repeat(32)}`),
  },
};

function spell(terms: Body, amount: string): void {
  terms[terms.maxAmountRequired === undefined ? "amount" : "maxAmountRequired"] = amount;
}

/** The classes that differ on purpose, and why. */
const onPurpose: Readonly<Record<string, string>> = {
  "amount spelled 010000": "one amount has one spelling, or two readers could take it for two",
  "value zero": "a payment of nothing costs gas; ALLOW_ZERO_VALUE takes it",
};

const payers: readonly [TestPayerName, ...TestPayerName[]] = [
  ...(["funded", "funded", "funded", "empty", "blacklisted", "smartWallet", "unapproved"] as const),
];

/** What one of the two says: whether the payment is good. No verdict is none. */
async function verdictOf(url: string, body: object): Promise<boolean> {
  const { body: answer } = await requestJson(url, { method: "POST", headers: {}, body });
  return Reflect.get(Object(answer), "isValid") === true;
}

test("random payments are judged as by the public reference facilitator", async () => {
  const count = Number(process.env.DIFFERENTIAL_PAYMENTS ?? 300);
  const random = createRandom(Number(process.env.DIFFERENTIAL_SEED ?? 11));
  const { origin } = new URL(harness.description.facilitator.url);
  const tally = { valid: 0, invalid: 0 };
  const purposeful = new Set<string>();
  const wrong: object[] = [];

  async function compare(kind: Kind, names: readonly string[], payer: TestPayerName): Promise<void> {
    const chosen = names.flatMap((name) => changes[name] ?? []);
    const spec = Object.assign({}, specs[kind], { payer }, ...chosen.map((one) => one.spec));
    const sign = (own: object) => signPayment(harness.description, { network: "base", ...spec, ...own });
    const merchant = { payTo: harness.description.organization.recipient };
    // Scheme upto names who submits: each side has a payment of its own.
    const submitters =
      kind === "upto"
        ? [{}, { permit: { facilitator: reference.address } }].map((own) => ({ ...merchant, ...own }))
        : [merchant];
    const bodies = await Promise.all(
      submitters.map(async (own) => {
        const body = structuredClone(JSON.parse(JSON.stringify((await sign(own)).request)));
        for (const { change } of chosen) change?.(body);
        return body;
      }),
    );
    const [ours, theirs] = await Promise.all([
      verdictOf(`${origin}/verify`, bodies[0]),
      verdictOf(`${reference.origin}/verify`, bodies.at(-1)),
    ]);
    if (ours === theirs) tally[ours ? "valid" : "invalid"]++;
    else if (names.some((name) => name in onPurpose && !ours)) {
      for (const name of names) if (name in onPurpose) purposeful.add(name);
    } else wrong.push({ kind, payer, names, ours, theirs });
  }

  const kinds: readonly [Kind, ...Kind[]] = ["v1", "v2", "permit2", "upto"];
  const cases = Array.from({ length: count }, (_, index) => {
    const kind = random.pick(kinds);
    const fitting = random.shuffle(
      Object.keys(changes).filter((name) => changes[name]?.kinds.includes(kind)),
    );
    // Most with one change: two often hide each other.
    return { kind, names: fitting.slice(0, [1, 1, 1, 0, 2][index % 5]), payer: random.pick(payers) };
  });
  const every = Object.entries(changes).flatMap(([name, { kinds: own }]) =>
    own.map((kind) => ({ kind, names: [name], payer: "funded" as const })),
  );
  const queue = [...every, ...cases];
  const work = async () => {
    for (let one = queue.pop(); one !== undefined; one = queue.pop())
      await compare(one.kind, one.names, one.payer);
  };
  await Promise.all(Array.from({ length: 8 }, work));

  expect(wrong).toEqual([]);
  expect([...purposeful].sort()).toEqual(Object.keys(onPurpose).sort());
  expect(tally.valid).toBeGreaterThan(count / 8);
  expect(tally.invalid).toBeGreaterThan(count / 8);
}, 600_000);
