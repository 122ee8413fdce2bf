import { domainSeparatorOf } from "../../chain/views.ts";
import { domainSeparator } from "../../methods/eip712.ts";
import { methodOfOffer } from "../../methods/people.ts";
import {
  hiddenHeaders,
  namesInHeader,
  type ShopChallenge,
  type ShopFinding,
} from "../../observe/explain/explain-shop.ts";
import { readBazaar } from "../../protocol/discovery/read-resource.ts";
import { isAddress, sameAddress } from "../../protocol/hex.ts";
import { type MistakeId, mistakes } from "../../protocol/mistakes.ts";
import type { Network } from "../../protocol/networks.ts";
import { membersOf } from "../../util/json.ts";
import { showValue } from "../../util/text.ts";
import { type CaseRow, NotRun } from "../frame/run-cases.ts";
import type { UnpaidBuyer } from "./shop-buyer.ts";
import { probingCases } from "./shop-cases.ts";
import type { Answer, SendOptions } from "./shop-payment.ts";

/** A shop, as the rules of `x402-kit check` see it. */
export type CheckedShop = {
  url: string;
  /** True if no network lies between the shop and its buyers. */
  isLocal: boolean;
  /** Its response to a request without payment, sent as a page of another origin. */
  first: Answer;
  challenges: readonly ShopChallenge[];
  /** The offers on known networks. */
  offers: readonly CheckedOffer[];
  /** The findings of `explain` about the response. */
  found: readonly ShopFinding[];
  ask(options?: Omit<SendOptions, "timeoutMs">): Promise<Answer | undefined>;
  /** Sends a buyer without money. Returns it with what it was served for free. */
  visit(): { buyer: UnpaidBuyer; served: readonly string[]; complaints: readonly string[] };
  facilitator: CheckedFacilitator | undefined;
  /** Calls a node of a network; undefined if there is none. */
  nodeOf(network: Network): ((method: string, ...params: unknown[]) => Promise<unknown>) | undefined;
  /** The network's facilitator contract, a valid recipient although it has code. */
  contractOf(network: Network): string;
};

type CheckedOffer = { at: string; x402Version: 1 | 2; network: Network; offer: Record<string, unknown> };

export type CheckedFacilitator = {
  url: string;
  kinds: readonly { x402Version?: unknown; scheme?: unknown; network?: unknown; extra?: unknown }[];
  /** The URLs in its catalogue; undefined if it has none. */
  listed: readonly string[] | undefined;
};

export type Problem = { level: "wrong" | "differs"; seen: string; note?: string | undefined };

export type ShopRule = CaseRow & {
  find(shop: CheckedShop): readonly Problem[] | Promise<readonly Problem[]>;
};

const wrong = (seen: string): Problem => ({ level: "wrong", seen });
const differs = (seen: string): Problem => ({ level: "differs", seen });

/** The mistakes in a challenge that have their own rule, with the text of `explain`. */
const ofExplain = [
  "not-json",
  "not-encoded",
  "encoded-twice",
  "odd-base64",
  "no-challenge",
  "misplaced-challenge",
  "resource-differs",
  "unknown-scheme",
  "unknown-network",
  "wrong-version",
  "wrong-asset",
  "pay-to-not-accepted",
  "pay-to-nobody",
  "other-tier",
  "bad-checksum",
  "amount-in-dollars",
  "amount-zero",
  "amount-off-by-decimals",
  "timeout-out-of-range",
  "extra-differs",
  "missing-member",
] as const satisfies readonly MistakeId[];

const ofAnswer: readonly string[] = ofExplain.slice(0, ofExplain.indexOf("unknown-scheme"));
/** The last rule takes all mistakes without their own rule. `permit-facilitator` is left to `upto-extra`, which says more. */
const named: ReadonlySet<string> = new Set<MistakeId>([...ofExplain.slice(0, -1), "permit-facilitator"]);

const explainRules: readonly ShopRule[] = ofExplain.map((id) => ({
  name: id,
  situation: `${mistakes[id].title}.`,
  good: mistakes[id].fix,
  find({ found, offers }) {
    if (offers.length === 0 && found.length === 0 && !ofAnswer.includes(id))
      return skip("no offer is on a network that is known here");
    return found
      .filter(({ mistake }) => mistake === id || (id === "missing-member" && !named.has(mistake)))
      .map(({ at, got, expected, why, fix, isMinor }) => ({
        level: isMinor ? "differs" : "wrong",
        seen: [
          at,
          ...(got === undefined ? [] : [`is ${got}`]),
          ...(expected === undefined ? [] : [`expected ${expected}`]),
        ].join("; "),
        note: fix === mistakes[id].fix ? (why ?? mistakes[id].why) : fix,
      }));
  },
}));

/** The headers of a request from a page of another origin. */
export const asPage = { Origin: "https://x402-check.example" };

function requirePages({ first }: CheckedShop): void {
  if (first.headers.has("access-control-allow-origin")) return;
  skip("the 402 has no Access-Control-Allow-Origin: pages of other origins cannot buy there");
}

/** The headers that a payment for the offers may be sent in. */
const paymentHeadersOf = (challenges: readonly ShopChallenge[]) => [
  ...new Set(challenges.map(({ x402Version }) => (x402Version === 1 ? "X-PAYMENT" : "PAYMENT-SIGNATURE"))),
];

const httpRules: readonly ShopRule[] = [
  {
    name: "clear-text",
    situation: "The shop is reached by http:// over the network.",
    good: "Sells by https://: on the way, anyone can take a payment and the goods.",
    find: ({ url, isLocal }) => (isLocal || !url.startsWith("http:") ? [] : [differs(url)]),
  },
  {
    name: "cors-exposed",
    situation: "A page of another origin reads the 402 and the receipt.",
    good: "Names the headers of x402 in Access-Control-Expose-Headers: pages see no others.",
    find(shop) {
      requirePages(shop);
      return hiddenHeaders(shop.first.headers, shop.challenges).map((name) =>
        differs(`Access-Control-Expose-Headers lacks ${name}`),
      );
    },
  },
  {
    name: "cors-preflight",
    situation:
      "Before a page of another origin pays, its browser asks with OPTIONS whether it may send the payment.",
    good: "Answers 2xx without a payment, and names the header in Access-Control-Allow-Headers.",
    async find(shop) {
      requirePages(shop);
      const problems: Problem[] = [];
      for (const name of paymentHeadersOf(shop.challenges)) {
        const headers = {
          ...asPage,
          "Access-Control-Request-Method": "GET",
          "Access-Control-Request-Headers": name.toLowerCase(),
        };
        const answer = await shop.ask({ method: "OPTIONS", headers });
        const isGood = answer !== undefined && answer.status >= 200 && answer.status < 300;
        if (!isGood) problems.push(differs(`OPTIONS: ${answer?.status ?? "no answer"}`));
        else if (
          namesInHeader(answer.headers, "access-control-allow-headers")?.includes(name.toLowerCase()) ===
          false
        )
          problems.push(differs(`Access-Control-Allow-Headers lacks ${name}`));
      }
      return problems;
    },
  },
  ...probingCases.map(
    (tested): ShopRule => ({
      ...tested,
      async find(shop) {
        const { buyer, served, complaints } = shop.visit();
        await tested.run(buyer);
        return [
          ...served.map((request) => wrong(`${request}: served without a payment`)),
          ...complaints.map(differs),
        ];
      },
    }),
  ),
];

const facilitatorRules: readonly ShopRule[] = [
  {
    name: "supported",
    situation: "The shop offers a kind of payment that its facilitator does not settle.",
    good: "Offers what GET /supported of its facilitator lists: version, scheme and network.",
    find({ challenges, facilitator }) {
      if (facilitator === undefined) return skip("it needs the facilitator: --facilitator");
      return challenges.flatMap(({ x402Version, place, accepts }) =>
        accepts.flatMap((offer, index) => {
          const { scheme, network } = membersOf(offer);
          const isListed = facilitator.kinds.some((kind) =>
            isSettledBy(kind, { x402Version, scheme, network }),
          );
          const offered = `version ${x402Version}, ${showValue(scheme)} on ${showValue(network)}`;
          return isListed
            ? []
            : [wrong(`${place}.accepts[${index}]: ${offered} is not in ${facilitator.url}/supported`)];
        }),
      );
    },
  },
  {
    name: "upto-extra",
    situation: "An offer of scheme upto does not name the facilitator that submits the payment.",
    good: "Copies facilitatorAddress from GET /supported into extra: payers sign for it.",
    find: ({ offers, facilitator }) =>
      offers
        .filter(({ offer }) => offer.scheme === "upto")
        .flatMap(({ at, offer, network }) => {
          const { facilitatorAddress: got } = membersOf(offer.extra);
          if (!isAddress(got)) return [wrong(`${at}.extra.facilitatorAddress is ${showValue(got)}`)];
          const terms = { x402Version: 2, scheme: "upto", network: network.caip2 };
          const kind = facilitator?.kinds.find((one) => isSettledBy(one, terms));
          const { facilitatorAddress: due } = membersOf(kind?.extra);
          if (!isAddress(due) || sameAddress(due, got)) return [];
          return [wrong(`${at}.extra.facilitatorAddress is ${got}; the facilitator says ${due}`)];
        }),
  },
  {
    name: "discovery-entry",
    situation: "The 402 describes the resource for catalogues (extension bazaar), and that cannot be read.",
    good: "Has info and schema in extensions.bazaar, and info is as schema says.",
    find: ({ challenges }) =>
      challenges.flatMap(({ place, value }) => {
        const { bazaar } = membersOf(value.extensions);
        const isGood = bazaar === undefined || readBazaar(bazaar) !== undefined;
        return isGood ? [] : [differs(`${place}.extensions.bazaar: ${showValue(bazaar)}`)];
      }),
  },
  {
    name: "discovery-listed",
    situation:
      "The 402 describes the resource for catalogues, and the facilitator's catalogue does not list it.",
    good: "Is listed once it was paid for there.",
    find({ challenges, facilitator, url }) {
      const described = challenges.filter(({ value }) => membersOf(value.extensions).bazaar !== undefined);
      if (described.length === 0) return [];
      if (facilitator?.listed === undefined)
        return skip("it needs a facilitator with a catalogue: --facilitator");
      const { origin, pathname } = new URL(url);
      const isListed = facilitator.listed.some((one) => one === `${origin}${pathname}`);
      return isListed
        ? []
        : [differs(`${facilitator.url}/discovery/resources does not list ${origin}${pathname}`)];
    },
  },
];

/** Returns true if a facilitator lists the kind. Some list a whole family of networks: `eip155:*`. */
function isSettledBy(
  kind: CheckedFacilitator["kinds"][number],
  { x402Version, scheme, network }: { x402Version: number; scheme: unknown; network: unknown },
): boolean {
  const family = typeof network === "string" ? network.replace(/:.*/, ":*") : network;
  return (
    kind.x402Version === x402Version && kind.scheme === scheme && [network, family].includes(kind.network)
  );
}

const chainRules: readonly ShopRule[] = [
  {
    name: "token-code",
    situation: "On its chain, there is no contract at the address of the token.",
    good: "Names the address of a token on the network of the offer.",
    find: (shop) =>
      onChain(shop, async ({ at, offer: { asset } }, call) =>
        isAddress(asset) && (await call("eth_getCode", asset, "latest")) === "0x"
          ? [wrong(`${at}.asset: ${asset} has no code`)]
          : [],
      ),
  },
  {
    name: "token-domain",
    situation: "The token's own EIP-712 domain is not that of the offer, for which payers sign.",
    good: "Has the name and version of the token's DOMAIN_SEPARATOR() in extra; name() may differ.",
    find: (shop) =>
      onChain(shop, async ({ at, offer, network }, call) => {
        const { asset, extra } = offer;
        const { name, version } = membersOf(extra);
        if (methodOfOffer(offer)?.spender !== undefined || !isAddress(asset)) return [];
        const view = { to: asset, data: domainSeparatorOf(asset).data };
        const separator = await call("eth_call", view, "latest");
        if (typeof separator !== "string" || !/^0x[0-9a-f]{64}$/.test(separator)) return [];
        const isSame =
          typeof name === "string" &&
          typeof version === "string" &&
          separator === domainSeparator({ name, version, address: asset }, network.chainId);
        return isSame
          ? []
          : [wrong(`${at}.extra: ${showValue({ name, version })} is not the domain of ${asset}`)];
      }),
  },
  {
    name: "pay-to-code",
    situation: "payTo is a contract. What it gets is lost unless it can send it on.",
    good: "Is paid at an account with a key, at a wallet contract, or at the facilitator contract.",
    find: (shop) =>
      onChain(shop, async ({ at, offer: { payTo }, network }, call) => {
        if (!isAddress(payTo) || sameAddress(payTo, shop.contractOf(network))) return [];
        const code = await call("eth_getCode", payTo, "latest");
        // Code that begins with 0xef0100 belongs to an account that has delegated (EIP-7702).
        const hasCode = typeof code === "string" && code !== "0x" && !code.startsWith("0xef0100");
        return hasCode ? [differs(`${at}.payTo: ${payTo} has code`)] : [];
      }),
  },
];

type Call = NonNullable<ReturnType<CheckedShop["nodeOf"]>>;

/** Checks each offer against its chain. */
async function onChain(
  { offers, nodeOf }: CheckedShop,
  find: (offer: CheckedOffer, call: Call) => Promise<readonly Problem[]>,
): Promise<readonly Problem[]> {
  const askable = offers.flatMap((one) => {
    const call = nodeOf(one.network);
    return call === undefined ? [] : [{ one, call }];
  });
  if (askable.length === 0) return skip("it needs a node of the network: --rpc-url");
  const found = await Promise.all(askable.map(({ one, call }) => find(one, call)));
  return found.flat();
}

function skip(why: string): never {
  throw new NotRun(why);
}

/** The rules in the order of the report. */
export const shopRules: readonly ShopRule[] = [
  ...explainRules,
  ...httpRules,
  ...facilitatorRules,
  ...chainRules,
];
