import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { readFacilitatorUrl, readMoment } from "../../config/values.ts";
import { KitError } from "../../errors.ts";
import { describeMistake } from "../../explain/describe-mistake.ts";
import { explain } from "../../explain/explain.ts";
import { formatExplanation } from "../../explain/format-explanation.ts";
import { type Input, isRecord, readInput } from "../../explain/read-input.ts";
import { askTime } from "../../harness/control/ask-time.ts";
import { resolveFacilitatorContracts } from "../../harness/stage/addresses.ts";
import type { Network, NetworkRegistry } from "../../protocol/networks.ts";
import { parsePaymentRequest } from "../../protocol/requests.ts";
import type { PaymentDetail } from "../../studio/payment-view.ts";
import { createPaymentReader } from "../../studio/read-payments.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  flag,
  networkFileOption,
  option,
  textOption,
  tokenOption,
} from "../kit/command.ts";

/** Longer than any payment, shorter than what would be read by mistake. */
const mostBytes = 1_048_576;

export const explainCommand = defineCommand({
  options: {
    what: textOption(
      "TEXT",
      "the payment header, request body, 402 challenge or answer itself, a file that holds it, or - for stdin",
      { example: "bad-payment.json, or - for what is piped into it", positional: true, required: true },
    ),
    ...contractOptions,
    ...networkFileOption,
    url: option(
      "URL",
      "ask the `up`, `mock` or admin listener of `serve` there, too, what it did about the payment: whether its authorization was used before, when and by whom; and the first two for their time",
      { read: readFacilitatorUrl, example: "http://127.0.0.1:4402" },
    ),
    token: tokenOption,
    at: option(
      "TIME",
      "the time that validAfter and validBefore are compared with (default: that of the chain at --url, else this machine's)",
      { read: readMoment, example: "2026-11-20T10:00:00Z" },
    ),
    json: flag("print one line of JSON"),
  },

  async run({ what, url, token, at, ...contracts }, { networks }) {
    const given = await readWhat(what);
    const { input } = readInput(given);
    const id = settlementIdIn(input, networks);
    const seen =
      url === undefined || id === undefined ? undefined : await createPaymentReader(url, token).find(id);
    const network = networkIn(input, networks)?.name;
    const there =
      url === undefined || network === undefined || at !== undefined
        ? undefined
        : await askTime(url, network);
    const explanation = explain(given, {
      networks,
      contracts: resolveFacilitatorContracts(contractsOf(contracts)),
      now: there ?? BigInt(Math.floor((at ?? Date.now()) / 1_000)),
    });
    const names = new Set<string>(explanation.findings.map(({ mistake }) => mistake));
    const more = (seen?.explanations ?? []).filter(({ mistake }) => !names.has(mistake));
    const told = more.map((one) => describeMistake(one, "   ").join("\n"));
    return {
      json: url === undefined ? explanation : { ...explanation, seen: seen ?? null },
      text: [
        formatExplanation(explanation),
        ...(url === undefined ? [] : [whatWasSeen(url, seen), ...told]),
      ].join("\n\n"),
      code: explanation.findings.length + more.length === 0 ? 0 : 1,
    };
  },
});

/** The id of the payment in a request body; undefined for anything else. */
function settlementIdIn(input: Input | undefined, networks: NetworkRegistry): string | undefined {
  if (input?.kind !== "request") return undefined;
  const { payload: paymentPayload, requirements: paymentRequirements } = input;
  const parsed = parsePaymentRequest({ paymentPayload, paymentRequirements }, networks);
  return parsed.ok ? parsed.request.settlementId : undefined;
}

/** The network that a payment names, in either version's words. */
function networkIn(input: Input | undefined, networks: NetworkRegistry): Network | undefined {
  if (input === undefined || !("payload" in input) || !isRecord(input.payload)) return undefined;
  const { accepted, network = isRecord(accepted) ? accepted.network : undefined } = input.payload;
  return typeof network === "string" ? (networks.find(network, 1) ?? networks.find(network, 2)) : undefined;
}

function whatWasSeen(url: string, seen: PaymentDetail | undefined): string {
  if (seen === undefined) return `At ${url}: this is no request body of a payment that was seen there.`;
  const ends = (["verify", "settle"] as const).flatMap((operation) => {
    const view = seen[operation];
    return view === null
      ? []
      : `${operation} ${view.outcome}${view.reason === null ? "" : `: ${view.reason}`}`;
  });
  return `At ${url}: ${ends.join(", ")}${seen.transaction === null ? "" : `, transaction ${seen.transaction}`}.`;
}

const fromStdin = "To read stdin, give - as the text: … | x402-kit explain -";

/** The text itself, or what the file of that name or stdin holds. */
async function readWhat(what: string): Promise<string> {
  const found = what === "-" ? await text(process.stdin) : await readIfFile(what);
  const given = found ?? what;
  if (given.length > mostBytes) {
    throw new KitError(`${what === "-" ? "stdin" : "The file"} is longer than any payment: more than 1 MiB`);
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

async function readIfFile(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // A name that cannot be one is the text itself.
    if (code === "ENOENT" && !path.endsWith(".json")) return undefined;
    if (code === "ENAMETOOLONG" || code === "ENOTDIR" || code === "ERR_INVALID_ARG_VALUE") return undefined;
    throw new KitError(`${path} cannot be read`, { cause });
  }
}
