import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { RunningCommand } from "../../../src/judge/scene/run-command.ts";
import { payFor, readTerms, type Terms } from "../../../src/judge/shop/shop-payment.ts";
import { methods } from "../../../src/methods/methods.ts";
import { timesFrom } from "../../../src/methods/payment-times.ts";
import { type Hex, sameAddress } from "../../../src/protocol/hex.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { decodeHeader } from "../../../src/protocol/payment-headers.ts";
import { type HttpAnswer, HttpFailure, sendHttp } from "../../../src/util/http-client.ts";
import { membersOf } from "../../../src/util/json.ts";
import { http } from "../../../src/util/node-http.ts";
import { type Decide, decisionsOf, type OnDecision } from "./decisions.ts";

/*
 * Buyers for `judge client` that run in the test's process: a careful one, and others that differ from it by one fault
 * each. Protocol version 2, all payment methods.
 */

/** The outcome of a request with a payment. */
export type Attempt = {
  status: number | "no answer" | "timeout" | "cut";
  /** How many bytes of the body arrived. */
  bytes: number;
  body: string;
  error: string;
  /** The receipt header; undefined if there is none, null if it is unreadable. */
  receipt: Readonly<Record<string, unknown>> | undefined | null;
  /** The terms of a 402. */
  terms: readonly Terms[];
  location: string | null;
  /** True if the connection broke after the whole response had arrived. */
  brokeAfterwards: boolean;
};

/** A buyer's next step: send the payment again, sign another, follow a redirect, take the body, stop, or repeat forever. */
type Step = "again" | "anew" | "follow" | "take" | "stop" | "forever";

/** Facts that a buyer may have learned before. */
type Memory = { asked: Terms; payer: string; sawPending: boolean; hadGoods: boolean };

export type Buyer = {
  /** Its mistake, in the words of the guide. */
  fault: string;
  /** The case that finds it. */
  foundBy: string;
  /** The offer that it pays; by default one that it may pay. */
  choose?(offers: readonly Terms[], allowed: (terms: Terms) => boolean, maximum: bigint): Terms | undefined;
  validSeconds?: number;
  /** True if all its runs for a URL make the same payment. */
  isPredictable?: boolean;
  /** How long it waits for a response. */
  patienceMs?: number;
  /** Its steps that differ from a careful buyer's. */
  step?(attempt: Attempt, memory: Memory): Step | undefined;
  /** True if it repeats its request forever when it cannot read the 402. */
  asksForever?: boolean;
};

const goods = (attempt: Attempt) => attempt.status === 200;
const is402 = ({ status }: Attempt) => status === 402;
const asksTheSame = ({ terms: [terms] }: Attempt, { asked }: Memory) =>
  terms !== undefined && terms.value === asked.value && sameAddress(terms.payTo, asked.payTo);
const discards = (when: (receipt: Attempt["receipt"], memory: Memory) => boolean) => ({
  step: (attempt: Attempt, memory: Memory): Step | undefined =>
    goods(attempt) && when(attempt.receipt, memory) ? "stop" : undefined,
});
const signsAnew = (when: (attempt: Attempt, memory: Memory) => boolean) => ({
  step: (attempt: Attempt, memory: Memory): Step | undefined => (when(attempt, memory) ? "anew" : undefined),
});

const asksForever = (reason: RegExp) => ({
  step: (attempt: Attempt): Step | undefined =>
    is402(attempt) && reason.test(attempt.error) ? "forever" : undefined,
});

export const wrongBuyers: readonly Buyer[] = [
  {
    fault: "buys once more when it has the goods",
    foundBy: "plain",
    ...signsAnew((attempt, { hadGoods }) => goods(attempt) && !hadGoods),
  },
  {
    fault: "signs again when no answer comes in time",
    foundBy: "slow-answer",
    patienceMs: 9_000,
    ...signsAnew(({ status }) => status === "timeout"),
  },
  {
    fault: "signs again while the receipt says settlement_pending",
    foundBy: "pending",
    ...signsAnew(({ receipt }) => receipt?.errorReason === "settlement_pending"),
  },
  {
    fault: "asks for ever once it was told that its payment is pending",
    foundBy: "pending-refused",
    step: (attempt, { sawPending }) => (sawPending && !goods(attempt) ? "forever" : undefined),
  },
  {
    fault: "signs again when the connection is reset before an answer",
    foundBy: "shop-answer-lost",
    ...signsAnew(({ status }) => status === "no answer"),
  },
  {
    fault: "signs again when its payment is already used, after its answer was lost",
    foundBy: "nothing-redelivered",
    ...signsAnew(({ error }) => error.includes("nonce_already_used")),
  },
  {
    fault: "signs again when the connection is reset after the headers",
    foundBy: "reset-before-body",
    ...signsAnew(({ status, bytes }) => status === "cut" && bytes === 0),
  },
  {
    fault: "takes half a body for a whole one",
    foundBy: "reset-in-body",
    step: ({ status, bytes }) => (status === "cut" && bytes > 0 ? "take" : undefined),
  },
  {
    fault: "signs again when the connection breaks after the whole body",
    foundBy: "reset-after-body",
    ...signsAnew((attempt) => goods(attempt) && attempt.brokeAfterwards),
  },
  {
    fault: "signs again after a 402 that says nothing of what became of its payment",
    foundBy: "facilitator-answer-lost",
    ...signsAnew((attempt) => attempt.error === "unexpected_settle_error" && attempt.receipt === undefined),
  },
  {
    fault: "signs again when the receipt says success: false",
    foundBy: "receipt-denies",
    ...signsAnew(({ receipt }) => receipt?.success === false && receipt.errorReason !== "settlement_pending"),
  },
  {
    fault: "signs again after a 503",
    foundBy: "unavailable-after-settle",
    ...signsAnew(({ status }) => status === 503),
  },
  {
    fault: "signs again after a 502",
    foundBy: "bad-gateway",
    ...signsAnew(({ status }) => status === 502),
  },
  {
    fault: "signs again when it is asked the same again",
    foundBy: "asks-again",
    ...signsAnew(
      (attempt, memory) => is402(attempt) && attempt.error === "try again" && asksTheSame(attempt, memory),
    ),
  },
  {
    fault: "signs again for more, whatever its maximum is",
    foundBy: "asks-more",
    choose: ([first], allowed, maximum) =>
      first !== undefined && (allowed(first) || first.value === 2n * maximum) ? first : undefined,
    ...signsAnew(({ terms: [terms] }, { asked }) => terms !== undefined && terms.value > asked.value),
  },
  {
    fault: "signs again for another recipient",
    foundBy: "other-terms",
    ...signsAnew(
      (attempt, memory) =>
        is402(attempt) &&
        attempt.terms.length > 0 &&
        !sameAddress(attempt.terms[0]?.payTo ?? "0x", memory.asked.payTo),
    ),
  },
  {
    fault: "pays whatever is asked",
    foundBy: "thousandfold",
    choose: (offers, allowed, maximum) =>
      offers.find(allowed) ?? offers.find(({ value }) => value > 100n * maximum),
  },
  {
    fault: "pays on any network",
    foundBy: "other-network-first",
    choose: (offers, allowed) =>
      offers.find((one) => offers.some((other) => other.network !== one.network)) ?? offers.find(allowed),
  },
  {
    fault: "pays with any token",
    foundBy: "other-asset-first",
    choose: (offers, allowed) =>
      offers.find((one) =>
        offers.some(({ network, asset }) => network === one.network && asset.address !== one.asset.address),
      ) ?? offers.find(allowed),
  },
  {
    fault: "signs again where a redirect leads to",
    foundBy: "redirect",
    ...signsAnew(({ status, location }) => status === 307 && location !== null && !location.includes("://")),
  },
  {
    fault: "follows a redirect to another origin with its payment",
    foundBy: "redirect-elsewhere",
    step: ({ location }) => (location === null ? undefined : "follow"),
  },
  { fault: "signs for 23 hours", foundBy: "settles-late", validSeconds: 23 * 3_600 },
  { fault: "has a nonce that is not random", foundBy: "parallel", isPredictable: true },
  {
    fault: "sends a payment that was refused for ever",
    foundBy: "used-authorization",
    step: (attempt, { sawPending }) =>
      is402(attempt) && !sawPending && attempt.error === "invalid_transaction_state" ? "forever" : undefined,
  },
  {
    fault: "signs again when its payment is refused as used",
    foundBy: "used-authorization",
    step: (attempt, { sawPending }) =>
      is402(attempt) && !sawPending && attempt.error === "invalid_transaction_state" ? "anew" : undefined,
  },
  {
    fault: "sends for ever what is said to have expired",
    foundBy: "clock-behind",
    ...asksForever(/valid_before/),
  },
  {
    fault: "sends for ever what is said not to be valid yet",
    foundBy: "clock-ahead",
    ...asksForever(/valid_after/),
  },
  { fault: "asks for ever where it cannot read the terms", foundBy: "malformed-402", asksForever: true },
  {
    fault: "throws away goods whose receipt it cannot read",
    foundBy: "malformed-receipt",
    ...discards((receipt) => receipt === null),
  },
  {
    fault: "throws away goods whose receipt names another network",
    foundBy: "receipt-of-other-network",
    ...discards((receipt, { asked }) => receipt != null && receipt.network !== asked.network.caip2),
  },
  {
    fault: "throws away goods whose receipt names another payer",
    foundBy: "receipt-of-other-payer",
    ...discards((receipt, { payer }) => receipt != null && String(receipt.payer).toLowerCase() !== payer),
  },
];

/** A buyer that does what every case calls good. */
export const carefulBuyer: Buyer = { fault: "none", foundBy: "none" };

/** How many seconds before signing the payments became valid. */
const validBeforeNow = 60;

/** How often it pays, with the same payment or another, without success; and while the payment is pending. */
const mostAttempts = 4;
const mostPendingAttempts = 60;

/** Runs a buyer like a command, with a command's variables, until it ends or is ended. */
export function startBuyer(buyer: Buyer, onDecision: OnDecision<Buyer>) {
  const decide = decisionsOf(buyer, onDecision);
  const predictable = new Map<string, Promise<Record<string, string>>>();
  return async (env: Readonly<Record<string, string>>): Promise<RunningCommand> =>
    runAsCommand(async (print, signal) => {
      const body = await buy(decide, env, predictable, signal);
      print(body ?? "");
      return body !== undefined;
    });
}

/** Runs a function as if it were a command, which fails if the function returns false or throws. */
export function runAsCommand(
  run: (print: (text: string) => void, signal: AbortSignal) => Promise<boolean>,
): RunningCommand {
  const ending = new AbortController();
  let printed = "";
  let hasEnded = false;
  const print = (text: string) => {
    printed += text;
  };
  const ended = run(print, ending.signal)
    .catch(() => false)
    .then((isGood) => {
      hasEnded = true;
      return { code: isGood ? 0 : 1, signal: null };
    });
  return {
    stdout: () => printed,
    stderr: () => "",
    hasEnded: () => hasEnded,
    ended,
    outputEnded: ended,
    async [Symbol.asyncDispose]() {
      ending.abort();
      await ended;
    },
  };
}

async function buy(
  decide: Decide<Buyer>,
  {
    X402_URL = "",
    X402_PRIVATE_KEY = "",
    X402_CAIP2 = "",
    X402_ASSET = "",
    X402_MAX_AMOUNT = "",
  }: Readonly<Record<string, string>>,
  predictable: Map<string, Promise<Record<string, string>>>,
  signal: AbortSignal,
): Promise<string | undefined> {
  const maximum = BigInt(X402_MAX_AMOUNT);
  const allowed = ({ network, asset, value }: Terms) =>
    network.caip2 === X402_CAIP2 && sameAddress(asset.address, X402_ASSET) && value <= maximum;
  const choose = (offers: readonly Terms[]) =>
    decide((one) => one.choose?.(offers, allowed, maximum) ?? offers.find(allowed));
  const account = { privateKey: `0x${X402_PRIVATE_KEY.slice(2)}` as Hex, address: "0x" } as const;
  const sign = async (terms: Terms) => {
    const now = BigInt(Math.floor(Date.now() / 1_000));
    const until = decide((one) => one.validSeconds ?? terms.validForSeconds);
    const authorization = timesFrom(now, { from: -validBeforeNow, until });
    return (await payFor(terms, account, now, { authorization })).headers;
  };

  let first = await attempt(X402_URL, {}, signal);
  while (decide((one) => first.terms.length === 0 && one.asksForever === true) && !signal.aborted) {
    await sleep(100);
    first = await attempt(X402_URL, {}, signal);
  }
  if (goods(first)) return first.body;
  const asked = choose(first.terms);
  if (asked === undefined) return undefined;
  const isPredictable = decide((one) => one.isPredictable === true);
  const shared = isPredictable ? (predictable.get(X402_URL) ?? sign(asked)) : sign(asked);
  predictable.set(X402_URL, shared);
  let headers = await shared;
  const [written = ""] = Object.values(headers);
  const memory = { asked, payer: payerIn(decodeHeader(written)), sawPending: false, hadGoods: false };

  let url = X402_URL;
  let [attempts, pendingAttempts] = [0, 0];
  while (!signal.aborted) {
    const patienceMs = decide((one) => one.patienceMs);
    const answer = await attempt(url, headers, signal, patienceMs);
    const isPending = answer.receipt?.errorReason === "settlement_pending";
    memory.sawPending ||= isPending;
    if (isPending) pendingAttempts++;
    else attempts++;
    const step = decide((one) => one.step?.(answer, memory) ?? carefulStep(answer, url));
    memory.hadGoods ||= goods(answer);
    if (step === "take") return answer.body;
    if (step === "stop") return undefined;
    if (step === "follow") {
      url = new URL(answer.location ?? "", url).href;
      continue;
    }
    const hasTried = attempts >= mostAttempts || pendingAttempts >= mostPendingAttempts;
    if (hasTried && step !== "forever") return undefined;
    if (step === "anew") {
      const next = choose(answer.terms) ?? asked;
      headers = await sign(answer.terms[0] ?? next);
      if (answer.location !== null) url = new URL(answer.location, url).href;
    }
    await sleep(100);
  }
  return undefined;
}

function carefulStep(attempt: Attempt, url: string): Step {
  if (goods(attempt)) return "take";
  if (attempt.location === null) return "again";
  return new URL(attempt.location, url).origin === new URL(url).origin ? "follow" : "again";
}

function payerIn(payment: unknown): string {
  const { payload } = membersOf(payment);
  return String(methods.find((method) => method.owns(payload))?.payerOf(payload)).toLowerCase();
}

async function attempt(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
  timeoutMs = 60_000,
): Promise<Attempt> {
  const nothing = {
    ...{ bytes: 0, body: "", error: "", receipt: undefined, terms: [], location: null },
    brokeAfterwards: false,
  };
  const agent = new http.Agent({ keepAlive: true });
  const broken = new Promise<true>((resolve) => {
    agent.on("free", (socket: Socket) => void socket.once("close", () => resolve(true)));
  });
  let answer: HttpAnswer;
  let brokeAfterwards = false;
  try {
    answer = await sendHttp(url, { headers, agent, signal, timeoutMs });
    if (answer.status === 200) brokeAfterwards = await Promise.race([broken, sleep(afterwardsMs, false)]);
  } catch (error) {
    if (!(error instanceof HttpFailure)) throw error;
    if (error.partial === undefined) {
      return { ...nothing, status: error.kind === "timeout" ? "timeout" : "no answer" };
    }
    const { text: body } = error.partial;
    return { ...nothing, status: "cut", bytes: body.length, body };
  } finally {
    agent.destroy();
  }
  const { status, text: body } = answer;
  const read = new Headers(answer.headers);
  const challenge = membersOf(decodeHeader(read.get("payment-required") ?? ""));
  return {
    ...{ status, bytes: body.length, body, error: String(challenge.error ?? "") },
    receipt: receiptIn(read.get("payment-response")),
    terms: readTerms({ status, headers: read, body }, builtInNetworks),
    location: read.get("location"),
    brokeAfterwards,
  };
}

/** How long the connection of a good response is watched. */
const afterwardsMs = 400;

function receiptIn(text: string | null): Attempt["receipt"] {
  if (text === null) return undefined;
  const receipt = decodeHeader(text);
  return typeof receipt === "object" && receipt !== null ? membersOf(receipt) : null;
}
