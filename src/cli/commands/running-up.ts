import { longestAdvanceSeconds } from "../../config/serve-config.ts";
import {
  readFacilitatorUrl,
  readNetwork,
  readOneOf,
  readPrice,
  readPriceOrZero,
  readWholeNumber,
} from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/description.ts";
import { type PaymentSpec, pay as payOnHarness } from "../../harness/control/pay.ts";
import { writeState } from "../../harness/run/state-file.ts";
import { keepsChannels, maximumScheme, schemes, transferMethods } from "../../methods/method-lists.ts";
import { methods } from "../../methods/methods.ts";
import { localTokenNames, tokenNamed } from "../../payer/local-chains.ts";
import { paymentTerms as terms } from "../../payer/terms.ts";
import { nameOfTestPayer, type TestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { settleAnswerSchema } from "../../protocol/answers.ts";
import type { Address } from "../../protocol/hex.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { inShell, self, selfWords } from "../../util/self-command.ts";
import {
  addressOption,
  atUrl,
  defineCommand,
  flag,
  networkFileOption,
  networkOptions,
  option,
  requiredAddress,
  textOption,
  urlOption,
} from "../kit/command.ts";
import { describePayers } from "../up/up-report.ts";

const payerNames = Object.keys(testPayers) as TestPayerName[];
const amountForms = "in whole tokens (0.01, 1)";

const unitsOption = { units: flag("count amounts in the token's smallest unit (10000 is 0.01 USDC)") };

const usualPrice = readPrice("0.01");

const assetOption = {
  asset: option("NAME", terms.asset.help, {
    read: readOneOf(localTokenNames),
    example: "plain",
  }),
};

/** A required account: an address, or the name of a test payer. */
function accountOption(describe: string) {
  const option = requiredAddress(`${describe}, or the name of a test payer`);
  const named: ReadonlyMap<string, { address: Address }> = new Map(Object.entries(testPayers));
  return { ...option, read: (text: string) => named.get(text)?.address ?? option.read(text) };
}

const versions = { "1": 1, "2": 2 } as const;

export const pay = defineCommand({
  options: {
    network: option("NAME", "where to pay: base, or eip155:8453", {
      read: readNetwork,
      example: "eip155:8453",
      default: "base",
    }),
    payer: option("NAME", `who pays: ${payerNames.join(", ")}`, {
      read: readOneOf(payerNames),
      example: "empty",
      default: "funded",
    }),
    amount: option("AMOUNT", `how much, ${amountForms} (default: 0.01; with --upto all of it)`, {
      read: readPriceOrZero,
      example: "0.01",
    }),
    "pay-to": addressOption(terms.payTo.help),
    ...assetOption,
    scheme: option("NAME", terms.scheme.help, { read: readOneOf(schemes), example: "upto" }),
    method: option("NAME", terms.method.help, {
      read: readOneOf(transferMethods),
      example: "permit2",
    }),
    upto: option(
      "AMOUNT",
      "pay by scheme upto, with this as the maximum; --amount is what settle takes of it",
      {
        read: readPrice,
        example: "0.02",
      },
    ),
    ...unitsOption,
    approval: flag("send an approval of Permit2 along (eip2612GasSponsoring), for a payer who has none"),
    "approval-transaction": flag("the same as a transaction of the payer's own (erc20ApprovalGasSponsoring)"),
    version: option("N", terms.x402Version.help, {
      read: (text) => versions[readOneOf(["1", "2"])(text)],
      example: "1",
      default: "2",
    }),
    ...networkFileOption,
    url: urlOption,
    json: flag("print one line of JSON: the two answers, and what became of the payment"),
  },

  async run({ network, payer, amount, method, upto, url, "pay-to": payTo, json, ...flags }, { print }) {
    const { asset, scheme, version, approval: isApproved } = flags;
    const approval = flags["approval-transaction"] ? "transaction" : isApproved;
    const harness = await findHarness(url);
    const units = unitsOf(tokenNamed(requireRunning(harness, network), asset));
    const max = upto?.(units, flags.units);
    const paid = amount?.(units, flags.units) ?? max ?? usualPrice(units, false);
    const payment: PaymentSpec = {
      network,
      payer,
      amount: paid,
      x402Version: version,
      payTo,
      asset,
      scheme: scheme ?? (max === undefined ? undefined : maximumScheme),
      max,
      approval,
      method:
        method ?? (approval === false ? undefined : methods.findLast(({ spender }) => spender)?.transfer),
    };
    const show: Parameters<typeof payOnHarness>[2] = (operation, { status, body }) =>
      print(`${operation}  ${status}  ${JSON.stringify(body, null, 2)}`);
    const made = await payOnHarness(harness, payment, json ? undefined : show).catch((error: unknown) => {
      if (!(error instanceof KitError)) throw error;
      const at = atUrl(url);
      throw new KitError(error.message, {
        cause: error.cause,
        code: error.code,
        hints: [
          ...error.hints,
          `What the facilitator saw of it: ${self} why${at}; faults that are set: ${self} fault list${at}`,
        ],
      });
    });
    const { verify, settle, tookMs } = made;
    const id = settle.headers.location?.split("/").at(-1) ?? "last";
    const outcome = settleAnswerSchema.safeParse(settle.body).data;
    const settled = outcome?.success === true;
    const isDeposit = settled && keepsChannels(payment.scheme ?? "");
    const amountText = `${formatAmount(paid, units)}${isDeposit ? `, of a deposit of ${formatAmount(outcome.amount ?? "0", units)},` : ""}`;
    return {
      json: {
        settled,
        network,
        payer,
        amount: `${paid}`,
        token: units,
        tookMs,
        verify: { status: verify.status, body: verify.body },
        settle: { status: settle.status, body: settle.body },
        command: settled ? null : [...selfWords, "why", id, "--url", url],
      },
      text: [
        `\n${settled ? "Settled" : "Not settled:"} ${amountText} on ${network} in ${Math.round(tookMs)} ms.`,
        ...(settled ? [] : [`What is wrong, and what to do: ${self} why${atUrl(url)}`]),
      ].join("\n"),
      code: settled ? 0 : 1,
    };
  },
});

export const payers = defineCommand({
  options: {},

  async run() {
    const accounts = Object.fromEntries(
      Object.entries<TestPayer>(testPayers).map(
        ([name, { address, privateKey, outcome, settleOutcome = outcome }]) => [
          name,
          { address, privateKey, verify: outcome, settle: settleOutcome },
        ],
      ),
    );
    const warning = "These keys are published for tests: never send anything of value to them.";
    return { json: accounts, text: [...describePayers(accounts), "", warning].join("\n") };
  },
});

export const fund = defineCommand({
  options: {
    ...networkOptions,
    to: accountOption("the account"),
    ...assetOption,
    amount: option("AMOUNT", `how much, ${amountForms}`, { read: readPrice, example: "1.5", required: true }),
    ...unitsOption,
    url: urlOption,
  },

  async run({ network, to, amount, asset, url, units: isUnits }) {
    const units = unitsOf(tokenNamed(requireRunning(await findHarness(url), network), asset));
    const more = amount(units, isUnits);
    await createControlClient(url).fund({ network, to, amount: `${more}`, units: true, asset });
    return {
      json: { network, to, amount: `${more}`, token: units },
      text: `${to} has ${formatAmount(more, units)} more on ${network} (${more} of its smallest unit).`,
    };
  },
});

export const approve = defineCommand({
  options: {
    ...networkOptions,
    account: accountOption("the account that pays"),
    ...assetOption,
    amount: option("AMOUNT", `how much Permit2 may take, ${amountForms} (default: all); 0: nothing`, {
      read: readPriceOrZero,
      example: "1.5",
    }),
    ...unitsOption,
    url: urlOption,
  },

  async run({ network, account, amount, asset, url, units: isUnits }) {
    const units = unitsOf(tokenNamed(requireRunning(await findHarness(url), network), asset));
    const allowed = amount?.(units, isUnits);
    const most = `${allowed ?? 2n ** 256n - 1n}`;
    await createControlClient(url).approve({ network, account, amount: most, units: true, asset });
    const shown = allowed === undefined ? `all ${units.symbol}` : formatAmount(allowed, units);
    return {
      json: { network, account, amount: most, token: units },
      text: `Permit2 may take ${shown} of ${account} on ${network}.`,
    };
  },
});

export const advanceTime = defineCommand({
  options: {
    ...networkOptions,
    seconds: option("SECONDS", "by how many seconds", {
      read: readWholeNumber(1, longestAdvanceSeconds),
      example: "3600",
      required: true,
    }),
    url: urlOption,
  },

  async run({ network, seconds, url }) {
    requireRunning(await findHarness(url), network);
    const { now } = await createControlClient(url).advanceTime({ network, seconds });
    const time = new Date(now * 1_000).toISOString().replace(".000", "");
    return { json: { network, now, time }, text: `On ${network} it is ${time}.` };
  },
});

export const stateSave = defineCommand({
  options: {
    file: textOption("FILE", "the file to write", { positional: true, required: true, example: "bug.state" }),
    url: urlOption,
    from: option("URL", "the same as --url", { read: readFacilitatorUrl, example: "http://127.0.0.1:4402" }),
  },

  async run({ file, url, from = url }, { printError }) {
    await findHarness(from);
    const session = await createControlClient(from).session();
    await writeState(file, session);
    // A shop's actions on its channels are recorded with its own address as payer, which signed nothing.
    const paid = session.rows.settlements?.filter(({ payer, recipient }) => payer !== recipient);
    const payers = new Set(paid?.map(({ payer }) => `${payer}`));
    const strangers = [...payers].filter((payer) => nameOfTestPayer(payer) === undefined);
    if (strangers.length > 0) {
      printError(
        `Warning: the file has signatures of ${strangers.join(", ")}, which are no test payers. They are valid on the real networks too: until such a payment expires, whoever has the file can submit it to the token there.`,
      );
    }
    return {
      json: { file, strangers, command: [...selfWords, "up", "--state", file] },
      text: `Wrote ${file}. Go on from it, on any machine: ${self} up --state ${inShell(file)}`,
    };
  },
});

export const reset = defineCommand({
  options: { url: urlOption },

  async run({ url }) {
    const networks = Object.keys((await findHarness(url)).networks);
    await createControlClient(url).reset();
    return {
      json: { networks },
      text: `${networks.join(", ")} and the facilitator are as they were at the start.`,
    };
  },
});
