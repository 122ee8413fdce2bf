import { longestAdvanceSeconds } from "../../config/serve-config.ts";
import { readNetwork, readOneOf, readPrice, readPriceOrZero, readWholeNumber } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/description.ts";
import { type PaymentSpec, pay as payOnHarness } from "../../harness/control/pay.ts";
import { writeState } from "../../harness/run/state-file.ts";
import { maximumScheme, methods, schemes, transferMethods } from "../../methods/methods.ts";
import { localTokenNames, tokenNamed } from "../../payer/local-chains.ts";
import { paymentTerms as terms } from "../../payer/terms.ts";
import { nameOfTestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { settleAnswerSchema } from "../../protocol/answers.ts";
import type { Address } from "../../protocol/hex.ts";
import { formatAmount, unitsOf } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { inShell, self } from "../../util/self-command.ts";
import {
  addressOption,
  atUrl,
  defineCommand,
  flag,
  jsonFlag,
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

/** The amount that `pay` pays by default. */
const usualPrice = readPrice("0.01");

const assetOption = {
  asset: option("NAME", terms.asset.help, {
    read: readOneOf(localTokenNames),
    example: "plain",
  }),
};

/** An account that must be given: an address, or a test payer as `pay --payer` names it. */
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
  },

  async run({ network, payer, amount, method, upto, url, "pay-to": payTo, ...flags }, { print }) {
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
    const { settle, tookMs } = await payOnHarness(harness, payment, (operation, { status, body }) =>
      print(`${operation}  ${status}  ${JSON.stringify(body, null, 2)}`),
    ).catch((error: unknown) => {
      if (!(error instanceof KitError)) throw error;
      const at = atUrl(url);
      throw new KitError(error.message, {
        cause: error.cause,
        hints: [
          ...error.hints,
          `What the facilitator saw of it: ${self} why${at}; faults that are set: ${self} fault list${at}`,
        ],
      });
    });
    const settled = settleAnswerSchema.safeParse(settle.body).data?.success === true;
    const told = formatAmount(paid, units);
    print(`\n${settled ? "Settled" : "Not settled:"} ${told} on ${network} in ${Math.round(tookMs)} ms.`);
    if (!settled) print(`What is wrong, and what to do: ${self} why${atUrl(url)}`);
    return settled ? 0 : 1;
  },
});

export const payers = defineCommand({
  options: { json: jsonFlag },

  async run() {
    const accounts = Object.fromEntries(
      Object.entries(testPayers).map(([name, { address, privateKey }]) => [name, { address, privateKey }]),
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

  async run({ network, to, amount, asset, url, units: isUnits }, { print }) {
    const units = unitsOf(tokenNamed(requireRunning(await findHarness(url), network), asset));
    const given = amount(units, isUnits);
    await createControlClient(url).fund({ network, to, amount: `${given}`, units: true, asset });
    print(`${to} has ${formatAmount(given, units)} more on ${network} (${given} of its smallest unit).`);
    return 0;
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

  async run({ network, account, amount, asset, url, units: isUnits }, { print }) {
    const units = unitsOf(tokenNamed(requireRunning(await findHarness(url), network), asset));
    const allowed = amount?.(units, isUnits);
    const most = `${allowed ?? 2n ** 256n - 1n}`;
    await createControlClient(url).approve({ network, account, amount: most, units: true, asset });
    const shown = allowed === undefined ? `all ${units.symbol}` : formatAmount(allowed, units);
    print(`Permit2 may take ${shown} of ${account} on ${network}.`);
    return 0;
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

  async run({ network, seconds, url }, { print }) {
    requireRunning(await findHarness(url), network);
    const { now } = await createControlClient(url).advanceTime({ network, seconds });
    print(`On ${network} it is ${new Date(now * 1_000).toISOString().replace(".000", "")}.`);
    return 0;
  },
});

export const stateSave = defineCommand({
  options: {
    file: textOption("FILE", "the file to write", { positional: true, required: true, example: "bug.state" }),
    from: urlOption,
  },

  async run({ file, from }, { print, printError }) {
    await findHarness(from);
    const session = await createControlClient(from).session();
    await writeState(file, session);
    const payers = new Set(session.rows.settlements?.map(({ payer }) => `${payer}`));
    const strangers = [...payers].filter((payer) => nameOfTestPayer(payer) === undefined);
    if (strangers.length > 0) {
      printError(
        `Warning: the file has signatures of ${strangers.join(", ")}, which are no test payers. They are valid on the real networks too: until such a payment expires, whoever has the file can submit it to the token there.`,
      );
    }
    print(`Wrote ${file}. Go on from it, on any machine: ${self} up --state ${inShell(file)}`);
    return 0;
  },
});

export const reset = defineCommand({
  options: { url: urlOption },

  async run({ url }, { print }) {
    const { networks } = await findHarness(url);
    await createControlClient(url).reset();
    print(`${Object.keys(networks).join(", ")} and the facilitator are as they were at the start.`);
    return 0;
  },
});
