import { statSync } from "node:fs";
import { z } from "zod";
import { parsePaymentRequest } from "../../methods/methods.ts";
import { type Capture, captureSchema, readCapture, replayCapture } from "../../observe/capture/capture.ts";
import { nameOfTestPayer } from "../../payer/test-payers.ts";
import { KitError } from "../../util/errors.ts";
import { requestJson } from "../../util/http-client.ts";
import { self } from "../../util/self-command.ts";
import { escapeControls } from "../../util/text.ts";
import { atUrl, defineCommand, flag, textOption, tokenOption, urlOption } from "../kit/command.ts";
import { readInputFile, requireWritable, writePrivateFile } from "../kit/files.ts";
import { createPaymentReader } from "../kit/read-payments.ts";
import { findLastAsked } from "./look-up.ts";

/* A payment as a file, written from a running harness and judged again anywhere. */

const problemSchema = z
  .object({ error: z.string().optional(), hints: z.array(z.string()).catch([]) })
  .catch({ error: undefined, hints: [] });

/** A timeline has 300 lines, and a body 32 KiB: some 20 KB are usual. */
const mostBytes = 8 * 1_048_576;

export const capture = defineCommand({
  options: {
    id: textOption("ID", "a payment by its settlement id, or last for the one that was asked for last", {
      positional: true,
      default: "last",
    }),
    out: textOption("FILE", "the file to write", { default: "bug.x402.json" }),
    "keep-signature": flag(
      "keep the signature of a payer who is no test payer: whoever has the file can then have that payment made on the real network",
    ),
    url: urlOption,
    token: tokenOption,
  },

  async run({ id, out, "keep-signature": keepSignature, url, token }, { print, printError }) {
    requireWritable({ out });
    const last = id === "last" ? await findLastAsked(createPaymentReader(url, token)) : undefined;
    const wanted = last?.id ?? id;
    const { status, body } = await requestJson(`${url}/payments/${encodeURIComponent(wanted)}/capture`, {
      method: "POST",
      body: keepSignature ? { keepSignature } : {},
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    });
    if (status !== 200) {
      const { error, hints } = problemSchema.parse(body);
      throw new KitError(error ?? `The payment cannot be captured: ${status}`, {
        hints: [...hints, `List the payments that were seen: ${self} logs${atUrl(url)}`],
      });
    }
    const captured = captureSchema.safeParse(body);
    if (!captured.success) {
      throw new KitError(`${url} answers, and not with a capture`, {
        hints: ["Another version of the kit may run there, or something else."],
      });
    }
    const isReplaced = statSync(out, { throwIfNoEntry: false })?.isFile() === true;
    await writePrivateFile(out, `${JSON.stringify(body, null, 2)}\n`);
    for (const line of describeSignature(captured.data, keepSignature)) printError(line);
    const replaced = isReplaced ? " in the place of an earlier one" : "";
    print(`Wrote ${out}${replaced}. Judge it again, on any machine: ${self} replay ${out}`);
    return 0;
  },
});

/** Notes about the signature; none for a test payer, whose key is public. */
function describeSignature({ signature, request, chain }: Capture, wasAskedFor: boolean): readonly string[] {
  if (signature === "cut") {
    return [
      "Without the signature: until the payment expires, whoever has it can submit the payment to the token. A replay relies on what was found of it.",
      wasAskedFor
        ? "serve gives no signature to anybody."
        : "To keep that of an account without anything of value: --keep-signature.",
    ];
  }
  const parsed = parsePaymentRequest(request);
  if (parsed.ok && nameOfTestPayer(parsed.request.payment.payer) !== undefined) return [];
  return [
    `Warning: the file has the payer's signature. It is valid on the real ${chain.network} too: until the payment expires, whoever has the file can submit the payment to the token there.`,
  ];
}

export const replay = defineCommand({
  options: {
    file: textOption("FILE", "what `x402-kit capture` wrote", {
      positional: true,
      example: "bug.x402.json",
      required: true,
    }),
    json: flag("print one line of JSON"),
  },

  async run({ file }) {
    const captured = readCapture(await readInputFile(file, { most: mostBytes, what: "any capture" }));
    const result = await replayCapture(captured);
    const { checks, verdict, recorded, same } = result;
    const { operation, chain, outcome, reason } = captured;
    return {
      json: result,
      text: [
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
            : "They differ: either the cause of the refusal is not in the file, such as another settlement in the ledger, or this version of the kit decides differently.",
      ]
        // The file may be somebody else's.
        .map(escapeControls)
        .join("\n"),
      code: same ? 0 : 1,
    };
  },
});
