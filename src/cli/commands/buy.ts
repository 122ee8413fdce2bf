import { readHeadTime } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { readHttpUrl, readNetwork, readOneOf, readPrice } from "../../config/values.ts";
import { createVariableReader } from "../../config/variable-reader.ts";
import { deploymentOf, findHarness, requireRunning } from "../../harness/control/description.ts";
import { createLocalChannels, type LocalChannels } from "../../harness/control/local-channels.ts";
import { writePayload } from "../../methods/build-request.ts";
import { keepsChannels } from "../../methods/method-lists.ts";
import { comparePayment, explainReceipt } from "../../observe/explain/compare-payment.ts";
import type { Deployment } from "../../observe/explain/deployment.ts";
import { explainOffers, readChallenges, saysTheSame } from "../../observe/explain/explain-shop.ts";
import {
  explanationOf,
  formatExplanations,
  type RefusalExplanation,
} from "../../observe/explain/explanations.ts";
import { namedPayment, readInput } from "../../observe/explain/read-input.ts";
import { localContracts } from "../../payer/local-chains.ts";
import { findChallenge, readOffers } from "../../payer/read-offer.ts";
import { createPayerSigner, signerAs } from "../../payer/sign-as.ts";
import { bodiesOf, headerOf, type KeySigner, type Offer, signOffer } from "../../payer/sign-payment.ts";
import { nameOfTestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { type Hex, sameAddress } from "../../protocol/hex.ts";
import { type Finding, finding, isCause, sortByRank } from "../../protocol/mistakes.ts";
import { formatMoment } from "../../protocol/moments.ts";
import type { Asset, Network, NetworkName, NetworkRegistry } from "../../protocol/networks.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import type { HttpAnswer } from "../../util/http-client.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { inShell, self } from "../../util/self-command.ts";
import { askShop, shopMethodOption } from "../kit/ask-shop.ts";
import {
  defineCommand,
  flag,
  networkFileOption,
  type Outcome,
  option,
  textOption,
  urlOption,
} from "../kit/command.ts";
import { explanationAt, withLink } from "../kit/payment-line.ts";
import { askThere } from "./look-up.ts";

const payerNames = Object.keys(testPayers) as TestPayerName[];

/** The same limit as in the buyers of `x402-kit init`: until a payment expires, whoever has it can submit it. */
const longestValidity = 600;

/** The highest price on a live chain if no limit is given, in whole tokens. */
const usualMost = readPrice("0.1");

/** A shop settles before it answers a payment, which takes its facilitator up to 80 s. */
const paidAnswerWithinMs = 120_000;
const shownBody = 4_096;

export const buy = defineCommand({
  exitCodes:
    "0 if it was bought and the receipt is good, or nothing stands against it with --dry-run; 1 if not, or if something is wrong; 2 if the command line is; 3 if nothing answers",
  options: {
    shop: option("URL", "what to buy", {
      read: readHttpUrl,
      example: "http://127.0.0.1:3000/report",
      positional: true,
      required: true,
    }),
    payer: option("NAME", `who pays on local chains: ${payerNames.join(", ")}`, {
      read: readOneOf(payerNames),
      example: "empty",
      default: "funded",
    }),
    network: option("NAME", "pay on this network (default: the shop's first offer that can be paid)", {
      read: readNetwork,
      example: "base",
    }),
    method: shopMethodOption,
    body: textOption("TEXT", "the body of the request; JSON is sent as application/json", {
      example: "'{}'",
    }),
    max: option("AMOUNT", "pay at most this, in whole tokens (default: 0.1 with --live, else any price)", {
      read: readPrice,
      example: "0.01",
    }),
    "dry-run": flag("stop before anything is signed"),
    live: flag("pay on a live chain, with the key in PAYER_PRIVATE_KEY"),
    json: flag("print one line of JSON"),
    url: urlOption,
    ...networkFileOption,
  },
  variables: ["PAYER_PRIVATE_KEY"],
  environment(env, { live, "dry-run": isDry }) {
    if (live !== true) return { key: undefined };
    const reader = createVariableReader(env);
    const key = reader.read("PAYER_PRIVATE_KEY");
    const problems = [...reader.problems()];
    if (key === undefined && problems.length === 0 && isDry !== true) {
      problems.push({
        name: "PAYER_PRIVATE_KEY",
        problem: "is needed: the key that pays with --live",
        isMissing: true,
      });
    }
    if (problems.length > 0) throw new ConfigurationError(problems);
    return { key };
  },

  async run({ shop, payer, network, method, body, max, live, url, ...values }, { networks }, { key }) {
    const type =
      body !== undefined && parseJson(body) !== undefined ? { "content-type": "application/json" } : {};
    const request = { method, body };
    const first = await askShop(shop, { ...request, headers: type });
    if (first.status !== 402) return notAsked(shop, first);
    const place = live ? livePlace(networks, key) : await localPlace(url, shop, payer);
    const context = { networks, ...place.context, now: undefined };
    const { challenges, findings: ofReading } = readChallenges(readable(first));
    const ofShop = challenges.flatMap((one) => explainOffers(one, shop, context));
    const story: Story = { shop, first, up: live ? undefined : url, findings: [...ofReading, ...ofShop] };

    const offers = challenges.flatMap(({ value }) => {
      const challenge = findChallenge(value);
      return challenge === undefined ? [] : readOffers(challenge, place.networks);
    });
    const possible = offers.filter((one) => network === undefined || one.network.name === network);
    // A channel holds more than the price, and is only useful to a buyer that comes back.
    story.offer = possible.find(({ scheme }) => !live || !keepsChannels(scheme));
    if (story.offer === undefined)
      return report(story, possible.length > 0 ? "needs-channel" : "nothing-payable");
    const { offer } = story;
    const isUnsafe = ofReading.some(isCause) || ofShop.some(({ isMinor }) => !isMinor);
    // A limit in whole tokens is meaningless for an unknown token, which is therefore never paid on a live chain.
    const limit = (max ?? (live ? usualMost : undefined))?.(unitsOf(offer.asset), false);
    if (limit !== undefined && offer.value > limit) return report(story, "too-dear");
    // On a live chain, an offer with a mistake is not paid.
    const isKnown = sameAddress(offer.asset.address, offer.network.asset.address);
    if (live && (isUnsafe || !isKnown)) return report(story, "not-safe");
    if (values["dry-run"]) return report(story, "dry-run");

    const now = await place.now(offer.network.name);
    const validForSeconds = Math.min(offer.validForSeconds, longestValidity);
    const signer = place.signer();
    const channels = place.channelsOf?.(signer);
    const { address: buyer } = signer;
    const startedAt = performance.now();
    let answer: HttpAnswer | undefined;
    let header: { name: string; value: string };
    let isAgain = false;
    do {
      const terms = { ...offer, validForSeconds };
      const channel = await channels?.sign({ ...terms, most: limit }, now);
      const payload =
        channel === undefined
          ? bodiesOf(offer, await signOffer(signer, terms, now)).request.paymentPayload
          : writePayload(offer, channel.payload);
      header = headerOf(offer.x402Version, payload);
      story.signed = { payer: buyer, validUntil: now + BigInt(validForSeconds), now, header };
      const headersOfPayment = { ...type, [header.name]: header.value };
      // Without a response, the payment's outcome is unknown.
      answer = await askShop(shop, {
        ...request,
        headers: headersOfPayment,
        timeoutMs: paidAnswerWithinMs,
      }).catch(() => undefined);
      const refusals = answer?.status === 402 ? readChallenges(readable(answer)).challenges : [];
      isAgain = !isAgain && refusals.some(({ value }) => channel?.recover(value) === true);
    } while (isAgain);
    story.tookMs = Math.round(performance.now() - startedAt);
    if (answer === undefined) return report(story, "unclear");
    story.answer = answer;
    const { headers } = readable(answer);
    const isServed = answer.status >= 200 && answer.status < 300;
    const seller = {
      x402Version: offer.x402Version,
      payer: buyer,
      network: `${offer.written.network}`,
      claimsLater: keepsChannels(offer.scheme),
    };
    const hasReceipt = headers.has("payment-response") || headers.has("x-payment-response");
    if (isServed || hasReceipt) {
      const { receipt, findings } = explainReceipt(headers, seller, context);
      story.receipt = receipt;
      story.findings.push(...findings);
      if (isServed && !findings.some(isCause)) return report(story, "bought");
    }
    const isPaid = membersOf(story.receipt).success === true;
    if (isServed || isPaid || answer.status < 400 || answer.status > 499) return report(story, "unclear");
    const again = readChallenges(readable(answer)).challenges;
    if (answer.status === 402) {
      const compared = comparePayment(header, again.length > 0 ? again : challenges, { ...context, now });
      story.findings.push(...compared);
    }
    if (!live) {
      const named = namedPayment(readInput(header.value).input, networks);
      story.there = await askThere({ url, token: undefined, payment: named, contracts: context.contracts });
      if (story.there.seen === undefined) {
        const isAlike = saysTheSame(challenges, again) && !story.findings.some(isCause);
        story.findings.push(finding(isAlike ? "payment-not-seen" : "never-asked", ""));
      }
    }
    return report(story, "refused");
  },
});

/** The chains to pay on: those of an `up`, or live ones. */
type Place = {
  networks: readonly PayableNetwork[];
  context: Deployment;
  signer(): KeySigner;
  /** The channels of a payer, for scheme "batch-settlement". */
  channelsOf?(signer: KeySigner): LocalChannels;
  /** Unix seconds. */
  now(network: NetworkName): Promise<bigint>;
};

type PayableNetwork = Pick<Network, "name" | "caip2" | "chainId"> & {
  asset: Asset;
  tokens?: Readonly<Record<string, Asset>> | undefined;
};

/** @throws {KitError} if no `up` runs there, or the shop is on another machine, which has other chains */
async function localPlace(url: string, shop: string, payer: TestPayerName): Promise<Place> {
  const { host, hostname } = new URL(shop);
  // Names without a dot are those of containers.
  if (!isLoopbackUrl(shop) && hostname.includes(".")) {
    throw new KitError(`${host} is not on this machine: test payers pay on local chains only`, {
      hints: [
        `Its offers, without paying: ${self} check ${shop}`,
        "To pay with your own money: --live, and the key in PAYER_PRIVATE_KEY.",
      ],
    });
  }
  const up = await findHarness(url);
  return {
    networks: Object.entries(up.networks).map(([name, network]) => ({ name, ...network })),
    context: deploymentOf(up),
    signer: () => signerAs(payer),
    channelsOf: (signer) => createLocalChannels(signer, up),
    now: (name) => readHeadTime(createLocalRpc(requireRunning(up, name).rpcUrl), name),
  };
}

function livePlace({ all }: NetworkRegistry, key: Hex | undefined): Place {
  return {
    networks: all.map((network) => ({ ...network, asset: network.usdc })),
    context: { contracts: localContracts, payTo: "any" },
    signer() {
      const signer = key === undefined ? undefined : createPayerSigner(key);
      if (signer !== undefined && nameOfTestPayer(signer.address) === undefined) return signer;
      throw new KitError(
        "PAYER_PRIVATE_KEY is a key that is published for tests: it pays on local chains only",
      );
    },
    now: async () => BigInt(Math.floor(Date.now() / 1_000)),
  };
}

const readable = ({ headers, text }: HttpAnswer) => ({ headers: new Headers(headers), body: text });

/** Everything that has happened so far. */
type Story = {
  shop: string;
  first: HttpAnswer;
  /** The URL of the `up` whose chains are used; undefined on a live chain. */
  up: string | undefined;
  findings: (Finding & { isMinor?: boolean })[];
  offer?: Offer<PayableNetwork> | undefined;
  signed?: { payer: string; validUntil: bigint; now: bigint; header: { name: string; value: string } };
  answer?: HttpAnswer;
  tookMs?: number;
  receipt?: unknown;
  /** The facilitator's record of the payment. */
  there?: Awaited<ReturnType<typeof askThere>>;
};

const results = {
  bought: "Bought: the receipt says that the payment was settled.",
  refused: "Not bought: the shop refused the payment.",
  unclear: "It is not certain what became of the payment.",
  "dry-run": "Nothing was signed (--dry-run).",
  "nothing-payable": "Nothing was signed: no offer can be paid here.",
  "needs-channel":
    "Nothing was signed: --live does not pay batch-settlement offers, since a channel's deposit exceeds the price.",
  "too-dear": "Nothing was signed: it costs more than --max allows.",
  "not-safe":
    "Nothing was signed: on a live chain only offers without a mistake are paid, in the network's USDC.",
} as const;

function report(story: Story, result: keyof typeof results): Outcome {
  const { shop, first, offer, signed, answer, tookMs, receipt = null, there } = story;
  if (result === "unclear" && story.receipt === undefined) story.findings.push(finding("answer-lost", ""));
  const names = new Set<string>(story.findings.map(({ mistake }) => mistake));
  const ofFacilitator = (there?.explanations ?? []).filter(({ mistake }) => !names.has(mistake));
  const payment = {
    network: offer?.network.name ?? null,
    payer: signed?.payer ?? null,
    amount: offer === undefined ? null : `${offer.value}`,
    asset: offer?.asset.address ?? null,
    token: offer === undefined ? null : unitsOf(offer.asset),
  };
  const explanations: RefusalExplanation[] = [...story.findings.map(explanationOf), ...ofFacilitator];
  const found = sortByRank(explanations).map((one) => explanationAt(one, payment, story.up));
  const isWrong = story.findings.some((one) => isCause(one) && one.isMinor !== true);
  const isDone = result === "bought" || result === "dry-run";
  const price = offer && formatAmount(offer.value, unitsOf(offer.asset));
  const until = signed && formatMoment(signed.validUntil, signed.now);
  // Whoever has the payment can submit it until it expires, so it is only shown if it may have to be sent again.
  const again =
    signed && result === "unclear"
      ? [`again    curl -H '${signed.header.name}: ${signed.header.value}' ${inShell(shop)}`]
      : [];
  const lines = [
    `402      ${shop}${offer === undefined ? "" : ` sells for ${price} on ${offer.network.name} (version ${offer.x402Version}, ${offer.scheme}, ${offer.method})`}`,
    ...(signed === undefined
      ? []
      : [`signed   ${price} by ${signed.payer} to ${offer?.payTo}, valid until ${until}`]),
    ...(signed === undefined
      ? []
      : [`answer   ${answer === undefined ? "none" : answer.status} after ${tookMs} ms`]),
    ...(receipt === null ? [] : [`receipt  ${JSON.stringify(receipt)}`]),
    ...again,
  ];
  return {
    json: {
      shop,
      result,
      challenges: readChallenges(readable(first)).challenges.map(({ value }) => value),
      offer: offer && { ...offer.written, x402Version: offer.x402Version },
      signed: signed && { ...signed, now: undefined, amount: offer?.value, to: offer?.payTo },
      answer: answer && { status: answer.status, body: answer.text.slice(0, shownBody), receipt },
      findings: found.map(withLink),
      ...(there !== undefined && { there: there.told }),
    },
    text: [
      [...lines, "", results[result]].join("\n"),
      ...(found.length === 0 ? [] : [formatExplanations(found, { kind: undefined })]),
      ...(there === undefined ? [] : [there.told]),
      ...(answer === undefined || answer.status > 299 ? [] : [answer.text.slice(0, shownBody)]),
    ].join("\n\n"),
    code: isDone && !isWrong ? 0 : 1,
  };
}

/** The outcome if a shop does not ask for payment. */
function notAsked(shop: string, { status, text, headers }: HttpAnswer): Outcome {
  const to = headers.location === undefined ? "" : `, and leads to ${headers.location}`;
  const body = text.slice(0, shownBody);
  return {
    json: { shop, result: "not-asked", answer: { status, body, receipt: null }, findings: [] },
    text: [`${shop} answers ${status}${to}, and asks for no payment.`, body].join("\n\n"),
    code: 1,
  };
}
