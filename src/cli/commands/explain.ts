import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { KitError } from "../../errors.ts";
import { explain } from "../../explain/explain.ts";
import { formatExplanation } from "../../explain/format-explanation.ts";
import { readInput } from "../../explain/read-input.ts";
import { resolveFacilitatorContracts } from "../../harness/stage/addresses.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { parsePaymentRequest } from "../../protocol/requests.ts";
import type { PaymentDetail } from "../../studio/payment-view.ts";
import { createPaymentReader } from "../../studio/read-payments.ts";
import { escapeControls } from "../../util/escape-controls.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  flag,
  networkFileOption,
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
    url: textOption(
      "URL",
      "ask the `up`, `mock` or admin listener of `serve` there, too, what it did about the payment: whether its authorization was used before, when and by whom",
      { example: "http://127.0.0.1:4402" },
    ),
    token: tokenOption,
    json: flag("print one line of JSON"),
  },

  async run({ what, url, token, ...contracts }, { networks }) {
    const given = await readWhat(what);
    const id = url === undefined ? undefined : settlementIdIn(given, networks);
    const seen =
      url === undefined || id === undefined ? undefined : await createPaymentReader(url, token).find(id);
    const explanation = explain(given, {
      networks,
      contracts: resolveFacilitatorContracts(contractsOf(contracts)),
      now: BigInt(Math.floor(Date.now() / 1000)),
    });
    const names = new Set<string>(explanation.findings.map(({ mistake }) => mistake));
    const more = (seen?.explanations ?? []).filter(({ mistake }) => !names.has(mistake));
    const told = more.map(formatSeen);
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
function settlementIdIn(text: string, networks: NetworkRegistry): string | undefined {
  const { input } = readInput(text);
  if (input?.kind !== "request") return undefined;
  const { payload: paymentPayload, requirements: paymentRequirements } = input;
  const parsed = parsePaymentRequest({ paymentPayload, paymentRequirements }, networks);
  return parsed.ok ? parsed.request.settlementId : undefined;
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

function formatSeen({ title, at, got, expected, why, fix }: PaymentDetail["explanations"][number]): string {
  return [
    `${title}${at === "" ? "" : ` (${at})`}`,
    ...(got === null ? [] : [`   got:      ${got}`]),
    ...(expected === null ? [] : [`   expected: ${expected}`]),
    `   why:      ${why}`,
    `   fix:      ${fix}`,
  ]
    .map(escapeControls)
    .join("\n");
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
