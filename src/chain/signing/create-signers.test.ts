import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseTransaction, type TransactionSerializable } from "viem";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { accountOf, keyOf } from "../../../test/support/key-accounts.ts";
import type { TransactionFields } from "../../protocol/encode-transaction.ts";
import { KitError } from "../../util/errors.ts";
import { createRemoteSigner } from "./create-signers.ts";
import { createLocalSigner } from "./local-signer.ts";

const transaction: TransactionFields = {
  chainId: 8453,
  nonce: 7,
  to: `0x${"fa".repeat(20)}`,
  data: "0x1234abcd",
  gas: 500_000n,
  maxFeePerGas: 2_000_000_000n,
  maxPriorityFeePerGas: 1_000_000n,
};
const operator = accountOf("operator");

type Answer = (
  request: { params: Record<string, string>; headers: IncomingMessage["headers"] },
  response: ServerResponse,
) => unknown;

/** A JSON-RPC server that answers as a test wants; what `answer` gives is the result, unless it is nothing. */
let answer: Answer;
let asked: number;
let origin: string;
let close: () => Promise<void>;
beforeEach(async () => {
  asked = 0;
  const server = createServer(async (request, response) => {
    asked++;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { id, method, params } = JSON.parse(Buffer.concat(chunks).toString());
    expect(method).toBe("eth_signTransaction");
    const result = await answer({ params: params[0], headers: request.headers }, response);
    if (result !== undefined) response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
});
afterEach(() => close());

const remote = (url = `http://${origin}/v2/the-secret-path`, timeoutMs = 2_000) =>
  createRemoteSigner({ url, address: operator.address, timeoutMs });

/** Signs as a well-behaved signer does. */
function sign(
  params: Record<string, string>,
  changes: object = {},
  key = keyOf("operator"),
): Promise<string> {
  const {
    to,
    data,
    nonce = "",
    gas = "",
    maxFeePerGas = "",
    maxPriorityFeePerGas = "",
    chainId = "",
  } = params;
  const request = {
    type: "eip1559",
    to,
    data,
    nonce: Number(nonce),
    gas: BigInt(gas),
    maxFeePerGas: BigInt(maxFeePerGas),
    maxPriorityFeePerGas: BigInt(maxPriorityFeePerGas),
    chainId: Number(chainId),
    value: BigInt(params.value ?? ""),
    ...changes,
  } as TransactionSerializable;
  const account = key === keyOf("operator") ? operator : accountOf("other");
  return account.signTransaction(request);
}

/** Why signing failed: everything an operator could get to see of the error. */
async function failure(signer = remote()): Promise<string> {
  const error: unknown = await signer.signTransaction(transaction).catch((thrown: unknown) => thrown);
  if (!(error instanceof KitError)) throw new Error("it did not fail");
  const cause = error.cause instanceof Error ? error.cause : undefined;
  for (const text of [error.stack, cause?.stack, String(cause?.cause ?? ""), ...error.hints]) {
    expect(text).not.toContain("secret");
    expect(text).not.toContain(origin);
  }
  return `${error.message}: ${cause?.message}`;
}

describe("a signer that behaves", () => {
  test("signs what a key in this process would sign", async () => {
    answer = ({ params }) => sign(params);
    expect(await remote().signTransaction(transaction)).toEqual(
      await createLocalSigner(keyOf("operator")).signTransaction(transaction),
    );
  });

  test("is told the account, and everything else, by its JSON-RPC name", async () => {
    let received: unknown;
    answer = ({ params }) => {
      received = params;
      return sign(params);
    };
    await remote().signTransaction(transaction);
    expect(received).toEqual({
      from: operator.address,
      to: transaction.to,
      data: "0x1234abcd",
      value: "0x0",
      nonce: "0x7",
      gas: "0x7a120",
      maxFeePerGas: "0x77359400",
      maxPriorityFeePerGas: "0xf4240",
      chainId: "0x2105",
    });
  });

  test("may answer with what the bytes decode to, as nodes do", async () => {
    answer = async ({ params }) => ({ raw: await sign(params), tx: { nonce: "0x7" } });
    expect(parseTransaction((await remote().signTransaction(transaction)).raw).nonce).toBe(7);
  });

  test("signs the first transaction of an account, and one without calldata or fee", async () => {
    answer = ({ params }) => sign(params);
    const empty = {
      ...transaction,
      nonce: 0,
      data: "0x",
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
    } as const;
    expect((await remote().signTransaction(empty)).raw).toMatch(/^0x02/);
  });

  test("gets the name and the password of its URL as basic authentication", async () => {
    let authorization: string | undefined;
    answer = ({ params, headers }) => {
      authorization = headers.authorization;
      return sign(params);
    };
    await remote(`http://kit:the-secret%21@${origin}/`).signTransaction(transaction);
    expect(Buffer.from(authorization?.replace("Basic ", "") ?? "", "base64").toString()).toBe(
      "kit:the-secret!",
    );
  });

  test("is asked again when the connection breaks once", async () => {
    answer = ({ params }, response) => {
      if (asked > 1) return sign(params);
      response.socket?.resetAndDestroy();
      return undefined;
    };
    expect((await remote().signTransaction(transaction)).raw).toMatch(/^0x02/);
  });
});

describe("what is not the transaction that was asked for is refused", () => {
  const otherwise: [string, object][] = [
    ["chain id", { chainId: 10 }],
    ["txNonce", { nonce: 8 }],
    ["recipient", { to: `0x${"fb".repeat(20)}` }],
    ["value", { value: 1n }],
    ["calldata", { data: "0x1234abce" }],
    ["gas limit", { gas: 500_001n }],
    ["fee", { maxFeePerGas: 2_000_000_001n }],
    ["tip", { maxPriorityFeePerGas: 999_999n }],
  ];
  test.each(otherwise)("another %s", async (what, changes) => {
    answer = ({ params }) => sign(params, changes);
    expect(await failure()).toBe(
      `The remote signer did not sign for ${operator.address}: it signed another ${what} than requested`,
    );
  });

  test("an access list that was not asked for", async () => {
    answer = ({ params }) => sign(params, { accessList: [{ address: transaction.to, storageKeys: [] }] });
    expect(await failure()).toContain("it added something to the transaction");
  });

  test("another key", async () => {
    answer = ({ params }) => sign(params, {}, keyOf("other"));
    expect(await failure()).toContain("it signed with another key than that of the account");
  });

  test("a signature that nodes refuse, its s in the upper half", async () => {
    answer = async ({ params }) => {
      const raw = await sign(params);
      const { s = "0x0" } = parseTransaction(raw as `0x02${string}`);
      const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
      const high = (order - BigInt(s)).toString(16).padStart(64, "0");
      return raw.replace(s.slice(2).padStart(64, "0"), high);
    };
    expect(await failure()).toContain("it signed with another key than that of the account");
  });

  test.each<[string, Answer, string]>([
    ["no signature", () => "0x02c0", "it answered with a transaction that cannot be decoded"],
    ["a legacy transaction", () => "0xf86b018504a817c800", "its answer is not a signed EIP-1559 transaction"],
    ["words", () => "certainly!", "its answer is not a signed EIP-1559 transaction"],
    [
      "bytes behind the transaction",
      async ({ params }) => `${await sign(params)}00`,
      "it answered with a transaction that cannot be decoded",
    ],
    ["nothing", () => null, "its answer is not JSON-RPC"],
    ["a number", () => 7, "its answer is not JSON-RPC"],
  ])("%s", async (_name, misbehave, message) => {
    answer = misbehave;
    expect(await failure()).toContain(message);
  });
});

describe("a signer that cannot be asked", () => {
  test.each<[string, Answer, string]>([
    [
      "says no",
      (_, response) => {
        response.end(
          JSON.stringify({
            jsonrpc: "2.0",
            id: 1,
            error: { code: -32000, message: `no key at /the-secret-path` },
          }),
        );
      },
      "it refused: JSON-RPC error -32000: no key at /…",
    ],
    [
      "answers with HTML",
      (_, response) => void response.end("<html>secret</html>"),
      "its answer is not JSON-RPC",
    ],
    [
      "answers with an error of HTTP",
      (_, response) => void response.writeHead(502).end("secret"),
      "it answered with HTTP 502",
    ],
    [
      "sends it elsewhere",
      (_, response) => void response.writeHead(307, { location: "http://secret.example" }).end(),
      "it answered with HTTP 307",
    ],
    [
      "answers without end",
      (_, response) => void response.end(" ".repeat(2_000_000)),
      "it answered with too much",
    ],
    [
      "resets every connection",
      (_, response) => void response.socket?.resetAndDestroy(),
      "the connection to it failed",
    ],
  ])("%s", async (_name, misbehave, message) => {
    answer = misbehave;
    expect(await failure()).toContain(message);
  });

  test("is slow: given up when its time is over, not asked again", async () => {
    answer = () => undefined;
    expect(await failure(remote(`http://${origin}/the-secret-path`, 100))).toContain(
      "it gave no answer within 100 ms",
    );
    expect(asked).toBe(1);
  });

  test("answers byte by byte: given up as well", async () => {
    answer = (_, response) => {
      const drip = setInterval(() => response.write(" "), 20);
      response.on("close", () => clearInterval(drip));
    };
    expect(await failure(remote(`http://${origin}/the-secret-path`, 150))).toContain(
      "it gave no answer within 150 ms",
    );
  });

  test("is not there", async () => {
    await close();
    expect(await failure()).toContain("the connection to it failed (ECONNREFUSED)");
  });
});
