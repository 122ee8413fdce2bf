import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { KitError } from "../../errors.ts";
import { explain } from "../../explain/explain.ts";
import { formatExplanation } from "../../explain/format-explanation.ts";
import { resolveFacilitatorContracts } from "../../harness/stage/addresses.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  flag,
  networkFileOption,
  textOption,
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
    json: flag("print one line of JSON"),
  },

  async run({ what, ...contracts }, { networks }) {
    const explanation = explain(await readWhat(what), {
      networks,
      contracts: resolveFacilitatorContracts(contractsOf(contracts)),
      now: BigInt(Math.floor(Date.now() / 1000)),
    });
    return {
      json: explanation,
      text: formatExplanation(explanation),
      code: explanation.findings.length === 0 ? 0 : 1,
    };
  },
});

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
