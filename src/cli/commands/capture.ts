import { writeFile } from "node:fs/promises";
import { KitError } from "../../errors.ts";
import { requestJson } from "../../harness/control/http-json.ts";
import { createPaymentReader } from "../../studio/read-payments.ts";
import { self } from "../../util/self-command.ts";
import { defineCommand, tokenOption, urlOption } from "../kit/command.ts";

export const capture = defineCommand({
  options: {
    id: {
      describe: "a payment by its settlement id, or last for the newest",
      placeholder: "ID",
      positional: true,
      example: "last",
      read: (text) => text,
      default: "last",
    },
    out: {
      describe: "the file to write",
      placeholder: "FILE",
      example: "bug.x402.json",
      read: (text) => text,
      default: "bug.x402.json",
    },
    url: urlOption,
    token: tokenOption,
  },

  async run({ id, out, url, token }, { print }) {
    const [newest] = id === "last" ? await createPaymentReader(url, token).list(1) : [];
    const wanted = newest?.id ?? id;
    const { status, body } = await requestJson(`${url}/payments/${encodeURIComponent(wanted)}/capture`, {
      method: "POST",
      body: {},
      ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    });
    if (status !== 200) {
      throw new KitError(
        String(Reflect.get(Object(body), "error") ?? `The payment cannot be captured: ${status}`),
        {
          hints: [`List the payments that were seen: ${self} logs`],
        },
      );
    }
    await writeFile(out, `${JSON.stringify(body, null, 2)}\n`);
    print(`Wrote ${out}. Judge it again, on any machine: ${self} replay ${out}`);
    return 0;
  },
});
