import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { readBytes32 } from "../../config/values.ts";
import { postPayment } from "../../harness/control/pay.ts";
import {
  claimRequests,
  findStored,
  newestOf,
  readState,
  readStoredChannel,
  refundQuestion,
  refundRequest,
  type StoredChannel,
  settleRequest,
} from "../../methods/batch-settlement/shop-actions.ts";
import { testKeys } from "../../payer/test-keys.ts";
import { isBytes32 } from "../../protocol/hex.ts";
import type { Operation } from "../../protocol/problems.ts";
import { KitError } from "../../util/errors.ts";
import { type JsonResponse, noAnswer, sendHttp } from "../../util/http-client.ts";
import { membersOf, parseJson } from "../../util/json.ts";
import { renderTable } from "../../util/text.ts";
import {
  addressOption,
  defineCommand,
  networkFileOption,
  networkOptions,
  type Outcome,
  option,
  requiredAddress,
  requireNetwork,
  textOption,
  urlOption,
  variableOption,
} from "../kit/command.ts";
import { readInputFile } from "../kit/files.ts";

/* The actions of shops on their channels, through a running service, which checks each request and sends the transaction. */

const serviceOptions = {
  url: { ...urlOption, describe: "where the facilitator is" },
  "api-key": variableOption("X402_API_KEY", { placeholder: "KEY", example: testKeys.local.apiKey }),
};

const storageText = "the folder or a file of the shop's FileChannelStorage";
const storageExample = "./channels";

type Service = { url: string; "api-key"?: string | undefined };

/** The response to one request, and its subject. `undecided` means that no response tells its outcome. */
type Result = {
  network: string;
  receiver: string;
  channels: readonly string[];
  result: "done" | "refused" | "undecided";
  answer: unknown;
};

/** Reads the response to a settle. A 4xx or 5xx decides nothing, whatever its body says. */
function readAnswer({ status, body }: JsonResponse): Pick<Result, "result" | "answer"> {
  const { success, transaction } = membersOf(body);
  const isDone = status === 200 && success === true && isBytes32(transaction);
  const isRefused = status === 200 && success === false;
  return { result: isDone ? "done" : isRefused ? "refused" : "undecided", answer: body };
}

/**
 * Requires that something answers at the URL, before a request that may wait minutes for its settlement.
 *
 * @throws {KitError} if nothing does; nothing was sent then
 */
async function requireAnswering({ url }: Service): Promise<void> {
  await sendHttp(`${url}/v1/supported`).catch((failure: unknown) => {
    throw noAnswer(url, failure);
  });
}

function ask(service: Service, operation: Operation, body: Record<string, unknown>) {
  const apiKey = service["api-key"] ?? testKeys.local.apiKey;
  const access = { facilitator: { url: `${service.url}/v1` }, organization: { apiKey } };
  return postPayment(access, operation, body);
}

/** The result of a settle request without a response. It may have been executed. */
function unanswered(error: unknown): Pick<Result, "result" | "answer"> {
  if (!(error instanceof KitError)) throw error;
  const detail = "It may have been done. Run the same command again: nothing is paid twice";
  return { result: "undecided", answer: { title: error.message, detail } };
}

/** Reports the service's responses; the exit code is 0 only if all requests succeeded. */
function report(results: readonly Result[]): Outcome {
  const rows = results.map(({ network, receiver, channels, result, answer }) => {
    const { transaction, amount, errorReason, errorMessage, title, detail } = membersOf(answer);
    const told = result === "done" ? [transaction, amount] : [errorReason ?? title, errorMessage ?? detail];
    const texts = told.filter((text) => typeof text === "string" && text !== "");
    return [network, receiver, `${channels.length}`, result, texts.join(result === "done" ? ", " : ": ")];
  });
  return {
    json: { results },
    text: renderTable(["network", "receiver", { right: "channels" }, "result", ""], rows),
    code: results.every(({ result }) => result === "done") ? 0 : 1,
  };
}

/** The files of a storage: the given file, or those in a folder and its subfolders (the public package uses `server`). */
function filesOf(path: string): string[] {
  try {
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".json"))
      .sort()
      .map((name) => join(path, name));
  } catch (cause) {
    throw new KitError(`${path} cannot be read`, { cause });
  }
}

/** A file that could not be read as a channel although it is named like one. */
type Skipped = { file: string; why: string };

/** Far more than a channel's file has, which is a few hundred bytes. */
const mostRead = 1_048_576;

/** @throws {KitError} if it contains no channel */
async function readStorage(path: string, networks: Parameters<typeof readStoredChannel>[1]) {
  const channels: StoredChannel[] = [];
  const skipped: Skipped[] = [];
  // One at a time: a shop may have more channels than a process may have open files.
  for (const file of filesOf(path)) {
    const text = await readInputFile(file, { most: mostRead, what: "a channel" }).catch((error: unknown) => {
      if (error instanceof KitError) skipped.push({ file, why: error.message });
      else throw error;
    });
    if (text === undefined) continue;
    const value = parseJson(text);
    const channel = readStoredChannel(value, networks);
    if (channel !== undefined) channels.push(channel);
    else skipped.push({ file, why: value === undefined ? "no JSON" : "no channel of a known network" });
  }
  if (channels.length > 0) return { channels: newestOf(channels), skipped };
  throw new KitError(`${path} has no channel of a known network`, {
    code: "not-found",
    hints: [
      "It is read as the public package's FileChannelStorage writes it: one JSON file for each channel.",
      ...skipped.slice(0, 3).map(({ file, why }) => `${file}: ${why}`),
    ],
  });
}

export const channelsClaim = defineCommand({
  options: {
    storage: textOption("PATH", storageText, { positional: true, required: true, example: storageExample }),
    ...networkFileOption,
    ...serviceOptions,
  },

  async run({ storage, ...service }, { networks }) {
    const { channels, skipped } = await readStorage(storage, networks.all);
    const charged = channels.filter(
      ({ chargedCumulativeAmount, totalClaimed }) => chargedCumulativeAmount > totalClaimed,
    );
    const results: Result[] = [];
    if (charged.length > 0) await requireAnswering(service);
    for (const { network, channels, body } of claimRequests(charged)) {
      const about = {
        network: network.name,
        receiver: body.paymentRequirements.payTo,
        channels: channels.map((one) => one.channelId),
      };
      try {
        results.push({ ...about, ...readAnswer(await ask(service, "settle", body)) });
      } catch (error) {
        results.push({ ...about, ...unanswered(error) });
        break;
      }
    }
    const told =
      results.length === 0
        ? { json: { results }, text: "All that was charged is claimed already.", code: 0 }
        : report(results);
    if (skipped.length === 0) return told;
    // A skipped file may be a channel, which then stays unclaimed.
    const named = skipped.map(({ file, why }) => `${file} was passed over: ${why}`);
    return { json: { results, skipped }, text: [told.text, ...named].join("\n"), code: 1 };
  },
});

export const channelsSettle = defineCommand({
  options: {
    receiver: {
      ...requiredAddress("the receiver of the channels, which is paid what was claimed"),
      positional: true,
    },
    ...networkOptions,
    token: addressOption("the token of the channels (default: the network's USDC)"),
    ...serviceOptions,
  },

  async run({ receiver, network: name, token, ...service }, { networks }) {
    const network = requireNetwork(networks, name);
    const body = settleRequest(network, { receiver, token: token ?? network.usdc.address });
    await requireAnswering(service);
    const answer = await ask(service, "settle", body).then(readAnswer, unanswered);
    return report([{ network: name, receiver, channels: [], ...answer }]);
  },
});

export const channelsRefund = defineCommand({
  options: {
    channel: option("ID", "the channel, whose payer gets back what was not charged", {
      read: readBytes32,
      example: `0x${"0123456789abcdef".repeat(4)}`,
      positional: true,
      required: true,
    }),
    storage: textOption("PATH", storageText, { required: true, example: storageExample }),
    ...networkFileOption,
    ...serviceOptions,
  },

  async run({ channel: id, storage, ...service }, { networks }) {
    const { channels, skipped } = await readStorage(storage, networks.all);
    const [unread] = skipped;
    if (unread !== undefined) {
      throw new KitError(`${unread.file} cannot be taken for a channel: ${unread.why}`, {
        hints: [
          "It may be a newer copy of this one: what was charged since would be given back.",
          "If it is not, name the file of the channel itself as --storage.",
        ],
      });
    }
    const stored = findStored(channels, id);
    if (stored === undefined) {
      throw new KitError(`${storage} has no channel ${id}`, { code: "not-found" });
    }
    const { network, channelConfig, pendingRequest } = stored;
    if (pendingRequest !== undefined && pendingRequest.expiresAt > Date.now()) {
      throw new KitError("The shop is serving a purchase from this channel, which is not charged yet", {
        hints: ["Refund it when that is over: what is not charged by then is given back."],
      });
    }
    const about = { network: network.name, receiver: channelConfig.receiver, channels: [id] };
    await requireAnswering(service);
    const { status, body: verified } = await ask(service, "verify", refundQuestion(stored));
    const { isValid, invalidReason, invalidMessage, extra, ...problem } = membersOf(verified);
    if (isValid !== true) {
      const answer = { ...problem, success: false, errorReason: invalidReason, errorMessage: invalidMessage };
      const result = status === 200 && isValid === false ? "refused" : "undecided";
      return report([{ ...about, result, answer }]);
    }
    const state = readState(extra);
    if (state === undefined) {
      throw new KitError("The facilitator does not say what is in the channel", {
        hints: [`It answers that the voucher is valid. Is ${service.url} an x402-facilitator-kit?`],
      });
    }
    const body = refundRequest(stored, state);
    if (body === undefined) {
      return { json: { results: [] }, text: "Nothing is left in the channel that was not charged." };
    }
    return report([{ ...about, ...(await ask(service, "settle", body).then(readAnswer, unanswered)) }]);
  },
});
