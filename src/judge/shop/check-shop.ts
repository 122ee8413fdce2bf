import { readSafeInteger } from "../../chain/rpc/calls.ts";
import { createLocalRpc } from "../../chain/rpc/local-rpc.ts";
import { askPolicy } from "../../harness/control/ask-chain.ts";
import { askHarness, deploymentOf } from "../../harness/control/description.ts";
import type { Deployment } from "../../observe/explain/deployment.ts";
import type { ExplainContext } from "../../observe/explain/explain-input.ts";
import { explainOffers, isForeign, readChallenges } from "../../observe/explain/explain-shop.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { requestJson } from "../../util/http-client.ts";
import { membersOf } from "../../util/json.ts";
import { isBad, type Report, worstFirst } from "../frame/report.ts";
import { type Finding, NotRun, runCases, type Verdict } from "../frame/run-cases.ts";
import { asPage, type CheckedFacilitator, type CheckedShop, type Problem, shopRules } from "./check-rules.ts";
import { isGood } from "./shop-buyer.ts";
import { type Answer, send } from "./shop-payment.ts";

type CheckOptions = {
  networks: NetworkRegistry;
  /** The context for judging the offers. */
  context: Omit<ExplainContext, "now" | "networks">;
  facilitator: CheckedFacilitator | undefined;
  nodes: readonly Node[];
  /** The HTTP method that buys. */
  method: string;
  timeoutMs: number;
  /** True if the shop runs on this machine, where it is safe to try every method. */
  isLocal(url: string): boolean;
};

type Node = { chainId: number; rpcUrl: string };

type Facts = readonly Problem[];

/** Checks a shop by all rules, without paying. */
export async function checkShop(url: string, options: CheckOptions): Promise<Finding<Facts>[]> {
  const { method, timeoutMs, isLocal, facilitator, context, networks } = options;
  const ask: CheckedShop["ask"] = (request = {}) => send(url, { method, ...request, timeoutMs });
  const first = await ask({ headers: asPage });
  const suite = url;
  let shop: CheckedShop | undefined;
  const entry = {
    name: "asks-for-payment",
    situation: "A buyer sends no payment.",
    good: "Answers 402.",
    suite,
    async run(): Promise<Facts> {
      if (first === undefined) throw new NotRun("nothing answers there", undefined, "not_judged");
      const { status, headers } = first;
      if (status === 402) {
        shop = openShop(first);
        return [];
      }
      const to = headers.get("location");
      const seen = `answers ${status}${to === null ? "" : `, and leads to ${to}: check that URL`}`;
      return [
        {
          level: "wrong",
          seen,
          note: isGood(first) ? "It serves without a payment, or sells by another --method." : undefined,
        },
      ];
    },
  };
  const openShop = (answer: Answer): CheckedShop => {
    const { challenges, findings } = readChallenges(answer);
    const offers = challenges.flatMap(({ place, x402Version, accepts }) =>
      accepts.flatMap((one, index) => {
        const offer = { ...membersOf(one) };
        const name = `${offer.network}`;
        const network = networks.find(name, 1) ?? networks.find(name, 2);
        if (network === undefined || isForeign(one, x402Version, networks)) return [];
        return [{ at: `${place}.accepts[${index}]`, x402Version, network, offer }];
      }),
    );
    const ofOffers = challenges.flatMap((one) =>
      explainOffers(one, url, { ...context, networks, now: undefined }),
    );
    return {
      url,
      isLocal: isLocal(url),
      first: answer,
      challenges,
      offers,
      found: [...findings.map((one) => ({ ...one, isMinor: one.mistake === "odd-base64" })), ...ofOffers],
      ask,
      visit: () =>
        visit(url, {
          method,
          timeoutMs,
          isLocal: isLocal(url),
          x402Version: challenges[0]?.x402Version ?? 2,
        }),
      facilitator,
      nodeOf: (network) => callsOf(options.nodes, network),
      contractOf: ({ tier }) => context.contracts[tier],
    };
  };
  const rules = shopRules.map(({ find, ...row }) => ({
    ...row,
    suite,
    async run(): Promise<Facts> {
      if (shop === undefined) throw new NotRun("the shop asks for no payment");
      return find(shop);
    },
  }));
  return runCases<Facts>([entry, ...rules], judgeProblems, { atOnce: 4, afterFirst: async () => undefined });
}

function judgeProblems(problems: Facts): Verdict {
  const level = problems.some((one) => one.level === "wrong")
    ? "wrong"
    : problems.length > 0
      ? "differs"
      : "good";
  const text = { wrong: "wrong", differs: "worth a change", good: "good" }[level];
  return {
    verdict: level,
    text,
    level,
    seen: problems.map(({ seen }) => seen),
    notes: [...new Set(problems.flatMap(({ note }) => note ?? []))],
  };
}

/** A buyer without money. On a remote shop it tries no method that may change something. */
function visit(
  url: string,
  {
    method: usual,
    timeoutMs,
    isLocal,
    x402Version,
  }: { method: string; timeoutMs: number; isLocal: boolean; x402Version: 1 | 2 },
): ReturnType<CheckedShop["visit"]> {
  const served: string[] = [];
  const complaints: string[] = [];
  const buyer: ReturnType<CheckedShop["visit"]>["buyer"] = {
    url,
    goods: undefined,
    terms: { x402Version },
    methods: [
      "OPTIONS",
      ...(isLocal ? ["POST", "PUT", "PATCH", "DELETE"].filter((one) => one !== usual) : []),
    ],
    async send(headers = {}, { url: at = url, method = usual, target, isService = isGood } = {}) {
      const answer = await send(at, { method, target, headers, timeoutMs });
      // Frameworks answer OPTIONS with the list of methods.
      const isList = method === "OPTIONS" && answer?.body === answer?.headers.get("allow");
      if (answer !== undefined && !isList && isService(answer)) {
        const { pathname, search } = new URL(at);
        served.push(`${method} ${target ?? `${pathname}${search}`}`);
      }
      return answer;
    },
    expect(answer, ...statuses) {
      if (answer === undefined) complaints.push("no answer came");
      // A 2xx is already reported in `served`.
      else if (!statuses.includes(answer.status) && !isGood(answer))
        complaints.push(`answered ${answer.status}; ${statuses.join(" or ")} is due`);
    },
  };
  return { buyer, served, complaints };
}

function callsOf(nodes: readonly Node[], { chainId }: Network): ReturnType<CheckedShop["nodeOf"]> {
  const node = nodes.find((one) => one.chainId === chainId);
  if (node === undefined) return undefined;
  return async (method, ...params) => {
    try {
      return await createLocalRpc(node.rpcUrl, 10_000).request(method, ...params);
    } catch {
      // The cause is dropped, because the URL in it may hold a key.
      throw new NotRun(`the node gives no answer to ${method}`, undefined, "not_judged");
    }
  };
}

/** A facilitator; if it is an `up`, with its chains. */
type FoundFacilitator = {
  deployment: Partial<Deployment>;
  facilitator: CheckedFacilitator;
  nodes: readonly Node[];
};

/**
 * Asks a facilitator what it settles.
 *
 * @throws {KitError} if the response has no kinds
 */
export async function askFacilitator(url: string): Promise<FoundFacilitator> {
  const { status, body } = await requestJson(`${url}/supported`, { timeoutMs: 10_000 });
  const { kinds } = membersOf(body);
  if (!Array.isArray(kinds)) {
    throw new KitError(`${url}/supported answers ${status} without kinds`, {
      hints: ["Give the URL of a facilitator, to which /supported is added."],
    });
  }
  const catalogue = `${url}/discovery/resources?limit=100`;
  const { items } = membersOf(
    (await requestJson(catalogue, { timeoutMs: 10_000 }).catch(() => undefined))?.body,
  );
  const up = await askHarness(url).catch(() => undefined);
  return {
    facilitator: {
      url,
      kinds: kinds.map(membersOf),
      listed: Array.isArray(items) ? items.map((item) => `${membersOf(item).resource}`) : undefined,
    },
    nodes: Object.values(up?.networks ?? {}),
    deployment: up === undefined ? await askPolicy(url) : deploymentOf(up),
  };
}

/**
 * Asks a node which chain it serves.
 *
 * @throws {KitError} if it does not say; the message omits the URL, which may hold a key
 */
export async function readNode(rpcUrl: string): Promise<Node> {
  const chainId = await createLocalRpc(rpcUrl, 10_000)
    .request("eth_chainId")
    .then(readSafeInteger, () => undefined);
  if (chainId === undefined) throw new KitError("The node at --rpc-url does not say which chain it serves");
  return { chainId, rpcUrl };
}

/** The report on shops. If `isStrict`, findings that are only worth a change fail too. */
export function reportShops(
  urls: readonly string[],
  found: readonly Finding<Facts>[],
  isStrict: boolean,
): Report {
  const findings = worstFirst(found);
  const isWrong = findings.some(({ level }) => level === "wrong" || (isStrict && level === "differs"));
  // Good rules are listed only if nothing else is.
  const shown = findings.some(isBad) ? findings.filter((one) => one.level !== "good") : findings;
  const where = (suite: string) => (urls.length > 1 ? [suite] : []);
  return {
    title: `x402 check of ${urls.join(", ")}, without paying`,
    noun: "rule",
    differs: "Worth a change: some buyers, or some facilitators, do without it",
    findings,
    table: {
      columns: [...(urls.length > 1 ? ["shop" as const] : []), "rule", "verdict"],
      rows: shown.map(({ suite, name, text }) => [...where(suite), name, text]),
    },
    advice: findings.some(isBad)
      ? "Does it serve for nothing, or charge for it? `x402-kit judge shop` says that of a shop on this machine."
      : undefined,
    exitCode: isWrong ? 1 : findings.some(({ level }) => level === "not_judged") ? 3 : 0,
    json: {
      urls,
      findings: findings.map(
        ({ facts: _, suite: url, text: _text, tookMs: _tookMs, order: _order, ...finding }) => ({
          url,
          ...finding,
        }),
      ),
    },
  };
}
