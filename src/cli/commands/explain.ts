import { stat } from "node:fs/promises";
import { readFacilitatorUrl, readHttpUrl, readMoment } from "../../config/values.ts";
import { askPolicy, askTime } from "../../harness/control/ask-chain.ts";
import { resolveFacilitatorContracts } from "../../harness/setup/addresses.ts";
import { comparePayment, explainHeader } from "../../observe/explain/compare-payment.ts";
import { type ExplainContext, type Explanation, explain } from "../../observe/explain/explain-input.ts";
import { explainShop, readChallenges, type ShopAnswer } from "../../observe/explain/explain-shop.ts";
import { explanationOf, formatExplanations } from "../../observe/explain/explanations.ts";
import { namedPayment, namesIn, readInput } from "../../observe/explain/read-input.ts";
import { isBytes32 } from "../../protocol/hex.ts";
import { finding, sortByRank } from "../../protocol/mistakes.ts";
import { unitsOf } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { self } from "../../util/self-command.ts";
import { askShop } from "../kit/ask-shop.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  flag,
  networkFileOption,
  option,
  payToOption,
  textOption,
  tokenOption,
} from "../kit/command.ts";
import { readInputFile, readText } from "../kit/files.ts";
import { explanationAt, withLink } from "../kit/payment-line.ts";
import { askThere } from "./look-up.ts";

/** Longer than any payment, but short enough to stop at a file named by mistake. */
const mostBytes = 1_048_576;

export const explainCommand = defineCommand({
  exitCodes: "0 if nothing is wrong, otherwise 1",
  options: {
    what: textOption(
      "TEXT",
      "the payment header (with its name, such as X-PAYMENT: …), request body, 402 challenge or answer itself, a file that holds it, - for stdin, or the URL of a shop, whose 402 is explained",
      { example: "bad-payment.json, or - for what is piped into it", positional: true, required: true },
    ),
    ...contractOptions,
    ...payToOption,
    ...networkFileOption,
    url: option(
      "URL",
      "also ask the `up`, `mock` or admin listener of `serve` there what it did about the payment of a request body or header; at `up` and `mock`, times are compared with the time there, and at `up` the chain says whether the authorization was used (when, and by whom) and whether the payer can pay",
      { read: readFacilitatorUrl, example: "http://127.0.0.1:4402" },
    ),
    shop: option(
      "URL",
      "the shop that refused the payment: it is compared with the offers there, member by member",
      {
        read: readHttpUrl,
        example: "http://127.0.0.1:3000/report",
      },
    ),
    token: tokenOption,
    at: option(
      "TIME",
      "the time that those of the payment are compared with (default: that of the chain at --url, else this machine's)",
      { read: readMoment, example: "2026-11-20T10:00:00Z" },
    ),
    json: flag("print one line of JSON"),
  },

  async run({ what, url, shop, token, at, "pay-to": payTo, ...contracts }, { networks }) {
    const ofShop = /^https?:\/\//i.test(what) ? readHttpUrl(what) : shop;
    const asked = ofShop === undefined ? undefined : await askChallenge(ofShop);
    // Public facilitators have no contract, and a shop on another machine probably uses one.
    const usualPayTo = ofShop === undefined || isLoopbackUrl(ofShop) ? undefined : ("any" as const);
    const given = ofShop === shop ? await readWhat(what) : "";
    const { input } = readInput(given);
    const facilitatorContracts = resolveFacilitatorContracts(contractsOf(contracts));
    const there =
      url === undefined
        ? undefined
        : await askThere({
            url,
            token,
            payment: namedPayment(input, networks),
            contracts: facilitatorContracts,
          });
    const network = namesIn(input, networks)?.network?.name;
    const time =
      url === undefined || network === undefined || at !== undefined
        ? undefined
        : await askTime(url, network);
    const policy = url === undefined ? { payTo: usualPayTo, strictness: undefined } : await askPolicy(url);
    const context = {
      networks,
      contracts: facilitatorContracts,
      strictness: policy.strictness,
      payTo: payTo ?? policy.payTo,
      now: time ?? BigInt(Math.floor((at ?? Date.now()) / 1_000)),
      clock:
        time !== undefined ? `the clock at ${url}` : at === undefined ? "this machine's clock" : undefined,
    };
    const { kind, says, findings } =
      asked !== undefined && ofShop !== shop
        ? { kind: "challenge" as const, says: undefined, findings: explainShop(asked, what, context) }
        : explainPayment(given, { shop: asked, seen: there === undefined ? null : there.seen }, context);
    const names = new Set<string>(findings.map(({ mistake }) => mistake));
    // If the amount is off by decimals, the advice to fund the payer would be wrong.
    if (names.has("amount-off-by-decimals")) names.add("insufficient_funds");
    const more = (there?.explanations ?? []).filter(({ mistake }) => !names.has(mistake));
    const named = namesIn(input, networks);
    const payment = {
      network: named?.network?.name ?? null,
      payer: named?.payer ?? null,
      amount: named?.value === undefined ? null : `${named.value}`,
      asset: named?.assets?.[0] ?? null,
      token: named?.network === undefined ? null : unitsOf(named.network.usdc),
    };
    const own = findings.map((one) => ({ ...one, ...explanationOf(one) }));
    const found = sortByRank([...own, ...more]).map((one) => explanationAt(one, payment, url));
    const about = {
      kind,
      ...(says !== undefined && { says }),
      ...(there !== undefined && { known: there.known }),
    };
    return {
      json: {
        kind,
        says: found.length === 0 ? formatExplanations([], about) : says,
        findings: found.map(withLink),
        ...(there !== undefined && { seen: there.seen ?? null, there: there.told }),
      },
      text: [formatExplanations(found, about), ...(there === undefined ? [] : [there.told])].join("\n\n"),
      code: found.length === 0 ? 0 : 1,
    };
  },
});

/** Explains a text on its own and against a shop's offers. `seen`: undefined if a service that was asked never saw it. */
function explainPayment(
  given: string,
  { shop, seen }: { shop: ShopAnswer | undefined; seen: unknown },
  context: ExplainContext,
): Explanation {
  const explained = explain(given, context);
  const { input } = readInput(given);
  if (input === undefined || !("payload" in input)) {
    if (shop === undefined) return explained;
    throw new KitError("--shop compares a payment with the shop's offers, and this is no payment");
  }
  const [, name, value = given] = /^([A-Za-z-]+):\s*(.*)$/s.exec(given.trim()) ?? [];
  const header =
    input.kind === "payment" ? { name, value } : { value: JSON.stringify(input.payload ?? null) };
  const ofHeader =
    shop === undefined
      ? explainHeader(header)
      : comparePayment(header, readChallenges(shop).challenges, context);
  const isUnseen = input.kind === "payment" && seen === undefined;
  const known = new Set(explained.findings.map(({ mistake, at }) => `${mistake} ${at}`));
  const more = ofHeader.filter(
    ({ mistake, at }) => mistake !== "encoded-twice" && !known.has(`${mistake} ${at}`),
  );
  return {
    ...explained,
    findings: sortByRank([...explained.findings, ...more, ...(isUnseen ? [finding("never-asked", "")] : [])]),
  };
}

/**
 * Requests a shop's 402.
 *
 * @throws {KitError} if the shop answers with another status
 */
async function askChallenge(url: string): Promise<ShopAnswer> {
  const { status, headers, text } = await askShop(url, { maxBytes: mostBytes });
  if (status === 402) return { headers: new Headers(headers), body: text };
  throw new KitError(`The shop answers ${status} at ${url}, and asks for no payment`, {
    hints: [`More about it: ${self} check ${url}`],
  });
}

const fromStdin = "To read stdin, give - as the text: … | x402-kit explain -";

/** The text itself, or the content of the named file or of stdin. */
async function readWhat(what: string): Promise<string> {
  const limit = { most: mostBytes, what: "any payment" };
  const found =
    what === "-" ? await readText(process.stdin, { ...limit, name: "stdin" }) : await readIfFile(what, limit);
  const given = found ?? what;
  if (isBytes32(given.trim())) {
    throw new KitError("That is the id of a settlement, or the hash of a transaction", {
      hints: [
        `${self} why ${given.trim()} explains the payment, where it was seen by a running up or serve.`,
      ],
    });
  }
  if (given.trim() === "") {
    const [problem, hint] =
      what === "-"
        ? ["Nothing came on stdin", "The command before the | printed nothing: run it alone to see why."]
        : what.trim() === ""
          ? ["The text is empty", `An unset variable is the usual cause. ${fromStdin}`]
          : [`${what} is empty`, "Write the payment, body, challenge or answer into it."];
    throw new KitError(problem, { hints: [hint] });
  }
  return given;
}

async function readIfFile(path: string, limit: { most: number; what: string }): Promise<string | undefined> {
  try {
    await stat(path);
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // Text that cannot be a file name is the input itself.
    if (code === "ENOENT" && !path.endsWith(".json")) return undefined;
    if (code === "ENAMETOOLONG" || code === "ENOTDIR" || code === "ERR_INVALID_ARG_VALUE") return undefined;
    throw new KitError(`${path} cannot be read`, { cause });
  }
  return readInputFile(path, limit);
}
