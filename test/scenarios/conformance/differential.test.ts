import { parseTransaction } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PaymentSpec, signPayment } from "../../../src/harness/control/pay.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { checksumAddress, keccak256Text } from "../../../src/protocol/hex.ts";
import { createSerialQueue, inParallel } from "../../../src/util/concurrency.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import {
  type ReferenceFacilitator,
  startReferenceFacilitator,
} from "../../support/conformance/reference-facilitator.ts";
import { createRandom } from "../../support/random.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, balanceOf, startTestHarness } from "../../support/service.ts";

/*
 * Random payments, each verified and settled by `up --plain` and by the public reference facilitator on the same chain, with a
 * signature and a recipient for each of the two. The verdicts and outcomes are the same, but for the classes of `onPurpose`; what was
 * due has moved with every success, and nothing with a refusal.
 */

let harness: RunningHarness;
let reference: ReferenceFacilitator;
beforeAll(async () => {
  harness = await startTestHarness({
    ...{
      networks: ["base"],
      open: { onClose() {} },
      payTo: "any",
      strictness: "reference",
      reasons: "reference",
    },
  });
  const chain = runningChain(harness, "base");
  const { chainId } = chain.network;
  reference = await startReferenceFacilitator({ ...chain, chainId }, { approvals: true });
  // The reference facilitator gives no gas money.
  await chain.setBalance(testPayers.sponsored.address, 10n ** 18n);
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
  /** True if the payment is settled before it is judged. */
  isAgain?: true;
  spec?: Partial<PaymentSpec>;
  change?: (body: Body) => unknown;
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

/** Signs the approval that came as a transaction again, as one of an older type. */
const signedAs =
  (type: "legacy" | "eip2930") =>
  async ({ paymentPayload }: Body) => {
    const info = paymentPayload.extensions.erc20ApprovalGasSponsoring?.info;
    // Of two changes the later one may bring another approval.
    if (info === undefined) return;
    const read = parseTransaction(info.signedTransaction);
    const { nonce, to, data, gas, chainId = 0, gasPrice = read.maxFeePerGas } = read;
    const terms = { nonce, to, data, gas, chainId, gasPrice };
    const account = privateKeyToAccount(testPayers.sponsored.privateKey);
    info.signedTransaction = await account.signTransaction(
      type === "legacy" ? { ...terms, type } : { ...terms, type },
    );
  };

const byTransaction: Partial<PaymentSpec> = { approval: "transaction", payer: "sponsored" };

const approvalInfo = (body: Body) => body.paymentPayload.extensions.eip2612GasSponsoring?.info ?? {};

const changes: Readonly<Record<string, Change>> = {
  "extra missing": { kinds: all, change: inTerms((terms) => delete terms.extra) },
  "extra empty": { kinds: eip3009, change: inTerms((terms) => (terms.extra = {})) },
  "extra without name": { kinds: eip3009, change: inTerms(({ extra }) => delete extra?.name) },
  "extra without version": { kinds: eip3009, change: inTerms(({ extra }) => delete extra?.version) },
  "extra of another name": {
    kinds: eip3009,
    change: inTerms((terms) => (terms.extra = { ...terms.extra, name: "Another" })),
  },
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
  "approval by transaction": { kinds: permits, spec: byTransaction },
  "approval by legacy transaction": { kinds: permits, spec: byTransaction, change: signedAs("legacy") },
  "approval by transaction of type 1": { kinds: permits, spec: byTransaction, change: signedAs("eip2930") },
  "approval of version 1.0": {
    kinds: permits,
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

/** Its own list: chosen at random it would hide what another change does. */
const settledBefore: Change = { kinds: all, isAgain: true };

function spell(terms: Body, amount: string): void {
  terms[terms.maxAmountRequired === undefined ? "amount" : "maxAmountRequired"] = amount;
}

/** The classes that differ on purpose, and why. `holds`: whether a difference between two outcomes is of the class. */
const onPurpose: Readonly<
  Record<string, { why: string; holds?: (ours: Outcome, theirs: Outcome) => boolean }>
> = {
  "amount spelled 010000": { why: "one amount has one spelling, or two readers could take it for two" },
  "value zero": { why: "a payment of nothing costs gas; ALLOW_ZERO_VALUE takes it" },
  "approval expired, and not needed": {
    why: "the reference facilitator refuses it at verify, and settles it by exact; here both operations say the same",
    holds: (ours, theirs) => ours.valid === theirs.valid,
  },
  // Only beside an approval by transaction.
  "small v": {
    why: "what brings a transaction is not simulated there: it is called valid, and is not settled",
    holds: (_, theirs) => theirs.valid && !theirs.settled,
  },
};

/** Where both refuse, and the reasons differ on purpose; `holds` gets them as they were given for the same operation. */
const otherReasons: Readonly<
  Record<string, { why: string; holds(refused: Refused & { operation: keyof Reasons }): boolean }>
> = {
  "an error's message": {
    why: "a settle in version 1 that fails as it is sent has the message of the library as its reason there",
    holds: ({ kind, operation, theirs }) => kind === "v1" && operation === "settle" && theirs.includes(" "),
  },
  "Permit2 at settle": {
    why: "there it is sent without a simulation, and whatever fails is transaction_failed; clients act by ours",
    holds: ({ kind, operation, ours, theirs }) =>
      kind === "permit2" &&
      operation === "settle" &&
      theirs === "invalid_exact_evm_transaction_failed" &&
      /^permit2_(insufficient_balance|allowance_required)$|^invalid_permit2_signature$/.test(ours),
  },
  "small v": {
    why: "the token refuses it, as it does what code at the payer's address refuses, which is wrong by its signature",
    holds: ({ names, ours, theirs }) =>
      names.includes("small v") && ours.endsWith("_signature") && theirs.endsWith("simulation_failed"),
  },
  "upto at settle": {
    why: "there the payment is verified before its amount is looked at",
    holds: ({ kind, operation, ours }) =>
      kind === "upto" && operation === "settle" && ours.endsWith("settlement_exceeds_amount"),
  },
  "two wrongs": {
    why: "either is right; here what needs neither chain nor signature is looked at first",
    holds: ({ names, payer }) => names.length + (payer === "funded" ? 0 : 1) > 1,
  },
};

/** A payment that both refuse, and their reasons. */
type Refused = {
  kind: Kind;
  names: readonly string[];
  payer: TestPayerName;
  ours: string;
  theirs: string;
};

/** Those whose code, key or transaction decides; they are not among the random ones. */
const otherPayers = ["hijacked", "gasBurner", "delegated", "fickle"] as const;

const payers: readonly [TestPayerName, ...TestPayerName[]] = [
  ...(["funded", "funded", "funded", "empty", "blacklisted", "smartWallet", "unapproved"] as const),
];

/** One side's verdict on a payment; amounts in the asset's smallest unit. */
type Outcome = {
  valid: boolean;
  settled: boolean;
  /** The answer of settle names a transaction. */
  isNamed: boolean;
  moved: bigint;
  due: bigint;
  reasons: Reasons;
};

/** Of both operations; undefined where there was a success, or no verdict. */
type Reasons = { verify: string | undefined; settle: string | undefined };

/** A request that has to be asked again until it is decided: `up` answers 503 while it is not. */
async function ask(url: string, body: object): Promise<object> {
  for (;;) {
    const { status, body: answer } = await requestJson(url, { method: "POST", headers: {}, body });
    if (status !== 503) return Object(answer);
  }
}

async function judge(origin: string, sign: () => Promise<Body>, isAgain: boolean): Promise<Outcome> {
  const body = await sign();
  if (isAgain) {
    expect(await ask(`${origin}/settle`, body)).toMatchObject({ success: true });
    // Answered once the first success counts as delivered, which is recorded behind its answer.
    expect(await ask(`${origin}/settle`, body)).toMatchObject({ success: false });
  }
  const { payTo, maxAmountRequired, amount } = body.paymentRequirements;
  const due = BigInt(maxAmountRequired ?? amount);
  const verify: Body = await ask(`${origin}/verify`, body);
  const before = await balanceOf(harness, payTo);
  const settle: Body = await ask(`${origin}/settle`, body);
  return {
    valid: verify.isValid === true,
    settled: settle.success === true,
    isNamed: /^0x/.test(settle.transaction ?? ""),
    due,
    moved: (await balanceOf(harness, payTo)) - before,
    reasons: { verify: verify.invalidReason, settle: settle.errorReason },
  };
}

test("random payments are judged and settled as by the public reference facilitator", async () => {
  const count = Number(process.env.DIFFERENTIAL_PAYMENTS ?? 150);
  const random = createRandom(Number(process.env.DIFFERENTIAL_SEED ?? 11));
  const { origin } = new URL(harness.description.facilitator.url);
  const tally = { valid: 0, invalid: 0, settled: 0, reverted: 0, differentOnPurpose: 0 };
  const purposeful = new Set<string>();
  const otherwise = new Set<string>();
  const wrong: object[] = [];
  // It takes the nonces of its key as the node counts them, one transaction after the other.
  const referencesTurn = createSerialQueue();
  // Each of a payer's approvals is the payer's next one.
  const approvalsTurn = createSerialQueue();
  let payees = 0;

  async function compare(kind: Kind, names: readonly string[], payer: TestPayerName): Promise<void> {
    const chosen = names.flatMap((name) =>
      name === "settled before" ? settledBefore : (changes[name] ?? []),
    );
    const isAgain = chosen.some((one) => one.isAgain);
    const spec = Object.assign({}, specs[kind], { payer }, ...chosen.map((one) => one.spec));
    const sign = (own: Partial<PaymentSpec>) => async () => {
      const payTo = checksumAddress(`0x${keccak256Text(`payee ${payees++}`).slice(26)}`);
      const { request } = await signPayment(harness.description, { network: "base", payTo, ...spec, ...own });
      const body: Body = JSON.parse(JSON.stringify(request));
      for (const { change } of chosen) await change?.(body);
      return body;
    };
    const judgeBoth = async () => {
      // Scheme upto names who submits.
      const submitter = kind === "upto" ? { permit: { facilitator: reference.address } } : {};
      const ours = await judge(origin, sign({}), isAgain);
      return [ours, await referencesTurn(() => judge(reference.origin, sign(submitter), isAgain))] as const;
    };
    const both = await (spec.approval === undefined ? judgeBoth() : approvalsTurn(judgeBoth));
    const [ours, theirs] = both;
    // A success without what was due, or a refusal with money moved, is wrong on either side, whatever the other says.
    const isFalse = both.some(({ settled, moved, due }) => moved !== (settled ? due : 0n));
    const isSame =
      ours.valid === theirs.valid && ours.settled === theirs.settled && ours.isNamed === theirs.isNamed;
    const reasons = names.filter((name) => {
      const one = onPurpose[name];
      return one !== undefined && !ours.settled && (one.holds?.(ours, theirs) ?? true);
    });
    for (const operation of ["verify", "settle"] as const) {
      const [mine, whole] = [ours.reasons[operation], theirs.reasons[operation]];
      // It adds the library's message to some, and has no verdict on others.
      const its = whole?.replace(/^(\w+): .*$/s, "$1");
      if (!isSame || mine === undefined || its === undefined || mine === its) continue;
      const refused = { kind, names, payer, operation, ours: mine, theirs: its };
      const classes = Object.keys(otherReasons).filter((name) => otherReasons[name]?.holds(refused));
      if (classes.length === 0) wrong.push(refused);
      for (const name of classes) otherwise.add(name);
    }
    if (isFalse || (!isSame && reasons.length === 0)) wrong.push({ kind, payer, names, ours, theirs });
    else if (!isSame) {
      tally.differentOnPurpose++;
      for (const name of reasons) purposeful.add(name);
    } else {
      tally[ours.valid ? "valid" : "invalid"]++;
      if (ours.settled) tally.settled++;
      else if (ours.isNamed) tally.reverted++;
    }
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
  // Two that differ together alone.
  const pair = {
    kind: "permit2" as const,
    names: ["small v", "approval by transaction"],
    payer: "funded" as const,
  };
  const every = Object.entries(changes).flatMap(([name, { kinds: own }]) =>
    own.map((kind) => ({ kind, names: [name], payer: "funded" as const })),
  );
  const others = kinds.flatMap((kind) => [
    { kind, names: ["settled before"], payer: "funded" as const },
    ...otherPayers.map((payer) => ({ kind, names: [], payer })),
  ]);
  await inParallel([pair, ...others, ...every, ...cases], 8, ({ kind, names, payer }) =>
    compare(kind, names, payer),
  );

  if (process.env.DIFFERENTIAL_PAYMENTS !== undefined)
    console.log(JSON.stringify({ count: 1 + every.length + cases.length, ...tally, wrong: wrong.length }));
  expect(wrong).toEqual([]);
  expect([...purposeful].sort()).toEqual(Object.keys(onPurpose).sort());
  expect([...otherwise].sort()).toEqual(Object.keys(otherReasons).sort());
  // Both name the transaction that was reverted.
  expect(tally.reverted).toBeGreaterThan(0);
  expect(tally.settled).toBeGreaterThan(count / 8);
  expect(tally.invalid).toBeGreaterThan(count / 8);
}, 600_000);
