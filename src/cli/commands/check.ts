import { readFacilitatorUrl, readHttpUrl, readWholeNumber } from "../../config/values.ts";
import { resolveFacilitatorContracts } from "../../harness/setup/addresses.ts";
import { askFacilitator, checkShop, readNode, reportShops } from "../../judge/shop/check-shop.ts";
import { isLoopbackUrl } from "../../util/loopback.ts";
import { shopMethodOption } from "../kit/ask-shop.ts";
import {
  contractOptions,
  contractsOf,
  defineCommand,
  flag,
  networkFileOption,
  option,
  payToOption,
} from "../kit/command.ts";
import { reportOptions, requireReportFiles, writeReport } from "../kit/report.ts";

export const check = defineCommand({
  exitCodes:
    "0 if nothing is wrong, even if something is worth a change; 1 if something is wrong; 2 if the command line is; 3 if nothing answers, or a rule could not be judged",
  failureCodes: { usage: 2, failed: 3 },
  options: {
    urls: {
      ...option("URL…", "what the shops sell, one URL or several", {
        read: (text) => text.split("\0").map(readHttpUrl),
        example: "http://127.0.0.1:3000/report",
        positional: true,
        required: true,
      }),
      isList: true,
    },
    facilitator: option(
      "URL",
      "the facilitator of the shops: every offer is compared with its /supported; of an `up` also the chains are known",
      { read: readFacilitatorUrl, example: "http://127.0.0.1:4402" },
    ),
    "rpc-url": option("URL", "a node of one network: it shows the tokens, their domains, and code at payTo", {
      read: readHttpUrl,
      example: "https://mainnet.base.org",
    }),
    method: shopMethodOption,
    timeout: option("SECONDS", "how long an answer may take, in seconds", {
      read: readWholeNumber(1, 600),
      default: "10",
    }),
    strict: flag("exit with 1 for what is only worth a change, too"),
    ...reportOptions,
    ...contractOptions,
    ...payToOption,
    ...networkFileOption,
  },

  async run({ urls, facilitator: at, method, timeout, strict, ...values }, { print, networks }) {
    requireReportFiles(values);
    const rpcUrl = values["rpc-url"];
    const found = at === undefined ? undefined : await askFacilitator(at);
    const options = {
      networks,
      context: {
        contracts: found?.deployment.contracts ?? resolveFacilitatorContracts(contractsOf(values)),
        tokens: found?.deployment.tokens,
        payTo: values["pay-to"] ?? found?.deployment.payTo ?? "any",
      },
      facilitator: found?.facilitator,
      nodes: [...(rpcUrl === undefined ? [] : [await readNode(rpcUrl)]), ...(found?.nodes ?? [])],
      method,
      timeoutMs: timeout * 1_000,
      isLocal: isLoopbackUrl,
    };
    const findings = [];
    for (const url of urls) findings.push(...(await checkShop(url, options)));
    return writeReport(reportShops(urls, findings, strict), values, print);
  },
});
