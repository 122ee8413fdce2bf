import { InvalidValue, readNetwork, readOneOf } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/description.ts";
import {
  examples,
  type FaultKind,
  type FaultSpec,
  facilitatorPlace,
  faultKinds,
  lasts,
  readFaultSpec,
} from "../../harness/faults/fault-spec.ts";
import { describeField, type FaultReport } from "../../harness/faults/faults.ts";
import { ConfigurationError, KitError } from "../../util/errors.ts";
import { self, selfWords } from "../../util/self-command.ts";
import { asText, renderTable } from "../../util/text.ts";
import {
  atUrl,
  defineCommand,
  flag,
  networkFileOption,
  option,
  textOption,
  urlOption,
} from "../kit/command.ts";

export const fault = defineCommand({
  options: {
    network: option(
      "NETWORK",
      "on which network; or `facilitator`, for requests to it, whose --method is verify, settle or supported",
      {
        read: (text, known) => (text === facilitatorPlace ? text : readNetwork(text, known)),
        example: "base",
        positional: true,
        required: true,
      },
    ),
    kind: option("KIND", `what goes wrong: ${faultKinds.join(", ")}`, {
      read: readKind,
      example: "answer-lost",
      positional: true,
      required: true,
    }),
    method: text("method", "NAME"),
    nth: number("nth", "N"),
    times: number("times", "N"),
    ms: number("ms", "MS"),
    "retry-after-seconds": number("retryAfterSeconds", "S"),
    code: number("code", "N"),
    message: text("message", "TEXT"),
    form: text("form", "FORM"),
    blocks: number("blocks", "N"),
    status: number("status", "STATUS"),
    disguised: flag(describeField("disguised")),
    hash: text("hash", "HASH"),
    depth: number("depth", "N"),
    wei: text("wei", "WEI"),
    ...networkFileOption,
    url: urlOption,
    json: flag("print JSON"),
  },

  async run(values, { networks }) {
    const { url, disguised, "network-file": _, json: __, ...given } = values;
    const { network, "retry-after-seconds": retryAfterSeconds, ...fields } = given;
    const order = readOrder(networks.names, {
      ...fields,
      network,
      retryAfterSeconds,
      // A flag that is not given is left out; as a field, even `false` would be refused for most kinds.
      ...(disguised && { disguised }),
    });
    const running = await findHarness(url);
    if (network !== facilitatorPlace) requireRunning(running, network);
    const set = await createControlClient(url).addFault(order);
    const isLasting = lasts(set.kind);
    return {
      json: {
        ...set,
        command: isLasting ? [...selfWords, "fault", "clear", "--id", set.id, "--url", url] : null,
      },
      text: [
        `${network}: ${describeFault(set)}`,
        ...(isLasting ? [`To end it: ${self} fault clear --id ${set.id}${atUrl(url)}`] : []),
      ].join("\n"),
    };
  },
});

/** Users often type `clear` or `list` here, so the error names the right command. */
function readKind(text: string): FaultKind {
  if (text === "clear" || text === "list")
    throw new InvalidValue(`is no kind; it is ${self} fault ${text}, without a network`);
  return readOneOf<FaultKind>(faultKinds)(text);
}

/** @throws ConfigurationError that names the options instead of the fields */
function readOrder(names: readonly string[], fields: Record<string, unknown>): FaultSpec {
  try {
    return readFaultSpec(
      Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
      names,
    );
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    throw new ConfigurationError(
      error.problems.map(({ name, ...problem }) => ({
        name: ["network", "kind"].includes(name)
          ? name.toUpperCase()
          : `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
        ...problem,
      })),
    );
  }
}

/** Leaves text that is not a number unchanged, so that the schema reports it together with all other problems. */
function number(field: string, placeholder: string) {
  const read = (text: string) => (/^-?\d{1,15}$/.test(text) ? Number(text) : text);
  return option(placeholder, describeField(field), { read, example: examples[field] ?? "" });
}

function text(field: string, placeholder: string) {
  return textOption(placeholder, describeField(field), { example: examples[field] ?? "" });
}

export const faultList = defineCommand({
  options: { url: urlOption },

  async run({ url }) {
    await findHarness(url);
    const { faults } = await createControlClient(url).listFaults();
    const columns = [{ right: "id" }, "network", "fault", { right: "hits" }];
    const rows = faults.map((each) => [
      each.id,
      each.network,
      describeFault(each),
      `${each.fired}${each.usedUp ? " (used up)" : ""}`,
    ]);
    return { json: faults, text: rows.length === 0 ? "No fault is set." : renderTable(columns, rows) };
  },
});

function describeFault({
  id: _,
  network: __,
  kind,
  fired: ___,
  usedUp: ____,
  ...details
}: FaultReport): string {
  const facts = Object.entries(details).map(([name, value]) => `${name} ${asText(value)}`);
  return [kind, ...facts].join(", ");
}

export const faultClear = defineCommand({
  options: {
    id: textOption("ID", "only this one, by its id in `fault list`", { example: "1" }),
    url: urlOption,
  },

  async run({ id, url }) {
    await findHarness(url);
    const control = createControlClient(url);
    if (id === undefined) {
      await control.clearFaults();
      return { json: { cleared: "all" }, text: "No fault is set any more." };
    }
    if ((await control.removeFault({ id })).removed) {
      return { json: { cleared: id }, text: `The fault ${id} has ended.` };
    }
    throw new KitError(`No fault ${id} is set`, {
      code: "not-found",
      hints: [`Those that are set: ${self} fault list${atUrl(url)}`],
    });
  },
});
