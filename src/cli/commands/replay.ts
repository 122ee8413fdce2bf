import { readFile } from "node:fs/promises";
import { readCapture } from "../../capture/capture.ts";
import { replayCapture } from "../../capture/replay.ts";
import { KitError } from "../../errors.ts";
import { defineCommand, flag } from "../kit/command.ts";

export const replay = defineCommand({
  options: {
    file: {
      describe: "what `x402-kit capture` wrote",
      placeholder: "FILE",
      positional: true,
      example: "bug.x402.json",
      read: (text) => text,
      required: true,
    },
    json: flag("print one line of JSON"),
  },

  async run({ file, json }, { print }) {
    const captured = readCapture(await readText(file));
    const result = await replayCapture(captured);
    const { checks, verdict, recorded, same } = result;
    if (json) {
      print(JSON.stringify(result));
      return same ? 0 : 1;
    }
    const { operation, chain, outcome, reason } = captured;
    print(
      [
        `${operation} on ${chain.network}, at block ${chain.blockNumber} (${new Date(chain.time * 1_000).toISOString()})`,
        "",
        ...checks.map(({ check, refusal }) =>
          refusal === undefined ? `  ok       ${check}` : `  refused  ${check}: ${refusal.message}`,
        ),
        "",
        `Then: ${outcome}${reason === null ? "" : `, ${reason}`}`,
        `Now:  ${verdict}`,
        recorded === undefined
          ? "There was no verdict then: the node, the ledger or the caller decided, which no file can replay."
          : same
            ? "The same."
            : "They differ: what refused it then is not in the file, such as another settlement of the ledger, or this version judges otherwise.",
      ].join("\n"),
    );
    return same ? 0 : 1;
  },
});

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new KitError(`${file} cannot be read`, { cause });
  }
}
