import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createHarness } from "../../../src/harness/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { createLogger } from "../../../src/observe/log/logger.ts";
import type { PaymentDetail, PaymentSummary } from "../../../src/observe/timeline/payment-view.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { decodeHeader, encodeHeader } from "../../../src/protocol/payment-headers.ts";
import { sendHttp } from "../../../src/util/http-client.ts";
import { membersOf } from "../../../src/util/json.ts";
import { closeAtOnce, listenOnLoopback } from "../../../src/util/node-http.ts";
import { type BuyerAccount, createBuyer, payAgain } from "../../support/buyer.ts";
import { startCli } from "../../support/cli.ts";
import { createMerchant, goods } from "../../support/merchant.ts";
import { runHere } from "../../support/run-here.ts";
import { startTestHarness } from "../../support/service.ts";

/* `up --shop`: what passes through the proxy in front of a shop, and what it shows of payments. */

type Serve = (incoming: IncomingMessage, outgoing: ServerResponse) => unknown;

let serve: Serve;
const shop = createServer((incoming, outgoing) => void serve(incoming, outgoing));
const warnings: string[] = [];
let target: string;
let harness: RunningHarness;
let proxy: string;
let origin: string;

beforeAll(async () => {
  target = `http://127.0.0.1:${await listenOnLoopback(shop)}`;
  harness = await startTestHarness({
    networks: ["base"],
    studio: true,
    shop: { target, port: 0 },
    logger: createLogger("warn", { write: (line) => warnings.push(line) }),
  });
  proxy = harness.description.shop?.url ?? "";
  origin = new URL(harness.description.facilitator.url).origin;
});
beforeEach(() => harness.reset());
afterAll(async () => {
  await harness?.close();
  await closeAtOnce(shop);
});

const funded = privateKeyToAccount(testPayers.funded.privateKey);

/** Has the shop sell /report by the public middleware. */
function sell(): void {
  const { facilitator, organization, networks } = harness.description;
  const { caip2 = "eip155:8453", payTo = "0x" } = networks.base ?? {};
  serve = createMerchant(
    { url: facilitator.url, apiKey: organization.apiKey },
    { "/report": { network: caip2, payTo, price: "$0.01", maxTimeoutSeconds: 300 } },
  );
}

async function list(): Promise<PaymentSummary[]> {
  const { text: body } = await sendHttp(`${origin}/payments`);
  return JSON.parse(body).payments;
}

async function why(...args: string[]): Promise<PaymentDetail> {
  const { stdout, stderr } = await runHere(["why", ...args, "--json", "--url", origin]);
  if (stdout === "") throw new Error(stderr);
  return JSON.parse(stdout);
}

test("a purchase by the public client is one story, from the 402 to the receipt", async () => {
  sell();
  const bought = await createBuyer(funded).buy(`${proxy}/report?token=hidden`);
  expect(bought).toMatchObject({ status: 200, body: goods, receipt: { success: true } });
  expect(await list()).toHaveLength(1);
  const story = await why();
  expect(story).toMatchObject({
    verify: { outcome: "valid" },
    settle: { outcome: "settled" },
    shop: { method: "GET", path: "/report", outcome: "answered", status: 200 },
    explanations: [],
  });
  expect(story.exchanges).toMatchObject([
    { status: 402, header: null, challenges: [{ resource: { url: `${proxy}/report?token=hidden` } }] },
    { status: 200, header: "PAYMENT-SIGNATURE", accepted: { amount: "10000" }, receipt: { success: true } },
  ]);
  expect(story.timeline.filter(({ kind }) => kind === "shop").map(({ title }) => title)).toEqual([
    "GET /report: 402",
    "GET /report with PAYMENT-SIGNATURE",
    "GET /report: 200",
  ]);
  // Without the query of the request, and without the signature.
  const { signature } = membersOf(membersOf(decodeHeader(bought.payment.value)).payload);
  expect(signature).toMatch(/^0x/);
  expect(JSON.stringify({ ...story, exchanges: story.exchanges.slice(1) })).not.toContain(`${signature}`);
});

test("a payment that the shop refuses itself is named with the member that differs", async () => {
  sell();
  const { headers } = await sendHttp(`${proxy}/report`);
  const { accepts } = membersOf(decodeHeader(headers["payment-required"] ?? ""));
  const offer = { ...membersOf(Array.isArray(accepts) ? accepts[0] : undefined), maxTimeoutSeconds: 60 };
  const header = encodeHeader({ ...(await signedPayment()), accepted: offer });
  const secret = { authorization: "Bearer sk_live_0123456789", cookie: "session=0123456789" };
  const refused = await sendHttp(`${proxy}/report`, {
    headers: { "payment-signature": header, ...secret },
  });
  expect(refused.status).toBe(402);
  const story = await why();
  expect(story).toMatchObject({
    verify: null,
    settle: null,
    payerName: "funded",
    amount: "10000",
    shop: { outcome: "answered", status: 402 },
    explanations: [{ mistake: "accepted-differs", at: "maxTimeoutSeconds", got: "60", expected: "300" }],
  });
  expect(story.explanations[0]?.title).toContain("maxTimeoutSeconds: you sent 60, the shop offers 300");
  expect(JSON.stringify(story)).not.toMatch(/sk_live|session=/);
  const { stdout } = await runHere(["logs", "--json", "--url", origin]);
  const lines = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(lines).toMatchObject([{ operation: "shop", status: 402, message: story.explanations[0]?.title }]);
});

/** A payment as the public client makes it, for the shop as it is. */
async function signedPayment(): Promise<Record<string, unknown>> {
  const before = serve;
  let seen: string | undefined;
  serve = (incoming, outgoing) => {
    const { "payment-signature": value } = incoming.headers;
    if (value === undefined) return before(incoming, outgoing);
    seen = `${value}`;
    return outgoing.end("{}");
  };
  await createBuyer(funded).buy(`${target}/report`);
  serve = before;
  return { ...membersOf(decodeHeader(seen ?? "")) };
}

test("a shop with a wrong API key was not silent: what the facilitator answered is in the story", async () => {
  sell();
  const header = encodeHeader(await signedPayment());
  // The public middleware asks for /supported first, and goes no further with a wrong key.
  const { url } = harness.description.facilitator;
  serve = async (_, outgoing) => {
    const headers = { authorization: "Bearer wrong", "content-type": "application/json" };
    const { status } = await sendHttp(`${url}/verify`, { method: "POST", headers, body: "{}" });
    outgoing.writeHead(500).end(`the facilitator answers ${status}`);
  };
  await sendHttp(`${proxy}/report`, { headers: { "payment-signature": header } });
  const { explanations, exchanges, verify } = await why();
  expect(verify).toMatchObject({ status: 401 });
  expect(explanations.map(({ mistake }) => mistake)).toEqual(["unauthorized"]);
  expect(exchanges).toMatchObject([{ status: 500, body: "the facilitator answers 401" }]);
  expect(await list()).toHaveLength(1);
});

test("a 402 that nobody pays is listed, and says that no payment came", async () => {
  sell();
  await sendHttp(`${proxy}/report`);
  const story = await why();
  expect(story).toMatchObject({ shop: { outcome: "unpaid", status: 402 }, explanations: [] });
  expect(story.id).toMatch(/^request-/);
});

test.each([
  ["goods without a receipt and without a question", 200, "never-asked"],
  ["an error without a question", 500, "never-asked"],
])("%s: %i is %s", async (_, status, mistake) => {
  sell();
  const payment = encodeHeader(await signedPayment());
  serve = (__, outgoing) => outgoing.writeHead(status).end("{}");
  await sendHttp(`${proxy}/report`, { headers: { "payment-signature": payment } });
  expect((await why()).explanations.map((one) => one.mistake)).toContain(mistake);
});

test("a shop that has settled and then fails has charged for nothing", async () => {
  sell();
  const sells = serve;
  serve = (incoming, outgoing) => {
    if (incoming.headers["payment-signature"] === undefined) return sells(incoming, outgoing);
    const { writeHead } = outgoing;
    outgoing.writeHead = (...args: unknown[]) => Reflect.apply(writeHead, outgoing, [500, ...args.slice(1)]);
    return sells(incoming, outgoing);
  };
  await createBuyer(funded).buy(`${proxy}/report`);
  const story = await why();
  expect(story).toMatchObject({ settle: { outcome: "settled" }, shop: { status: 500 } });
  expect(story.explanations.map(({ mistake }) => mistake)).toEqual(["paid-not-served"]);
});

test("two purchases at once are not mixed up", async () => {
  sell();
  const sells = serve;
  serve = async (incoming, outgoing) => {
    await sleep(30);
    return sells(incoming, outgoing);
  };
  const accounts: BuyerAccount[] = [funded, privateKeyToAccount(testPayers.empty.privateKey)];
  const [good, bad] = await Promise.all(
    accounts.map((account) => createBuyer(account).buy(`${proxy}/report`)),
  );
  expect([good?.status, bad?.status]).toEqual([200, 402]);
  const rows = await list();
  expect(rows.map(({ payerName, shop: at }) => [payerName, at?.status]).sort()).toEqual([
    ["empty", 402],
    ["funded", 200],
  ]);
  for (const { id, payerName } of rows) {
    const { exchanges, explanations } = await why(id);
    expect(exchanges.map(({ status }) => status)).toEqual([402, payerName === "funded" ? 200 : 402]);
    expect(explanations.map(({ mistake }) => mistake)).toEqual(
      payerName === "funded" ? [] : ["insufficient_funds"],
    );
  }
});

test("the same payment twice is one payment with two exchanges", async () => {
  sell();
  const { payment } = await createBuyer(funded).buy(`${proxy}/report`);
  await payAgain(`${proxy}/report`, payment);
  expect(await list()).toHaveLength(1);
  expect((await why()).exchanges).toHaveLength(3);
});

test("a shop that is down gets a page in browsers, JSON elsewhere, and a row", async () => {
  const closed = createServer();
  const free = await listenOnLoopback(closed);
  await closeAtOnce(closed);
  const down = `http://127.0.0.1:${free}`;
  await using other = await createHarness({ networks: ["base"], studio: true, shop: down });
  const at = other.shop?.url ?? "";
  const answer = await sendHttp(`${at}/report`);
  expect(answer).toMatchObject({ status: 502 });
  expect(JSON.parse(answer.text)).toMatchObject({
    code: "unreachable",
    error: expect.stringContaining(`${free}`),
  });
  const page = await sendHttp(`${at}/`, { headers: { accept: "text/html,*/*" } });
  expect(page.headers["content-type"]).toContain("text/html");
  const { stdout } = await runHere(["why", "--json", "--url", new URL(other.facilitator.url).origin]);
  expect(JSON.parse(stdout)).toMatchObject({
    shop: { outcome: "down" },
    explanations: [{ mistake: "shop-down", got: "ECONNREFUSED" }],
  });
});

test("up prints the address of the proxy, and a line for each exchange", async () => {
  sell();
  const args = ["up", "--port", "0", "--networks", "base", "--no-demo", "--shop", target];
  await using up = await startCli(args);
  const [, url = ""] = await up.printed(/^Shop +(http:\S+) .*\n/m);
  await sendHttp(`${url}/report`);
  await up.printed(/^\S+ shop .* GET \/report: unpaid \(402\)/m);
});

test("events pass as they are written, the head before the first of them", async () => {
  serve = async (_, outgoing) => {
    outgoing.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    for await (const __ of proceed) outgoing.write("data: one\n\n");
    outgoing.end();
  };
  const proceed = new Readable({ objectMode: true, read() {} });
  const sent = request(`${proxy}/events`).end();
  const [events] = (await once(sent, "response")) as [IncomingMessage];
  proceed.push(1);
  expect(`${(await once(events, "data"))[0]}`).toBe("data: one\n\n");
  proceed.push(null);
  await once(events, "end");
});

test("a WebSocket passes both ways", async () => {
  shop.once("upgrade", (incoming, socket) => {
    socket.once("end", () => socket.end());
    const key = `${incoming.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    const accept = createHash("sha1").update(key).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
    );
    // A short text frame, unmasked by the four bytes of its key.
    socket.on("data", (frame: Buffer) => {
      const mask = frame.subarray(2, 6);
      const said = frame.subarray(6).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
      socket.write(Buffer.concat([Buffer.from([0x81, said.length]), said]));
    });
  });
  const socket = new WebSocket(`${proxy.replace("http", "ws")}/live`);
  await once(socket, "open");
  socket.send("hello");
  const [event] = (await once(socket, "message")) as [MessageEvent];
  expect(event.data).toBe("hello");
  socket.close();
});

test("a request that offers HTTP/2 beside HTTP passes as HTTP", async () => {
  serve = async (incoming, outgoing) => outgoing.end(`${await text(incoming)} ${incoming.headers.upgrade}`);
  const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABk" };
  const answer = await sendHttp(`${proxy}/x`, { method: "POST", headers, body: "a body", agent: false });
  expect(answer).toMatchObject({ status: 200, text: "a body undefined" });
});

const large = 100_000_000;

test("100 MB pass with a bounded part of them in memory, both ways", async () => {
  let accepted = 0;
  const go = Promise.withResolvers<void>();
  serve = async (incoming, outgoing) => {
    await go.promise;
    for await (const chunk of incoming) accepted += chunk.length;
    outgoing.writeHead(200, { "content-length": large });
    Readable.from(chunks()).pipe(outgoing);
  };
  function* chunks() {
    const chunk = Buffer.alloc(100_000);
    for (let left = large; left > 0; left -= chunk.length) yield chunk;
  }
  let given = 0;
  const body = Readable.from(
    (function* () {
      for (const chunk of chunks()) {
        given += chunk.length;
        yield chunk;
      }
    })(),
  );
  const sent = request(`${proxy}/upload`, { method: "POST" });
  body.pipe(sent);
  // While the shop does not read, what is under way is what sockets hold.
  await sleep(300);
  expect(given).toBeLessThan(large / 4);
  go.resolve();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  expect(accepted).toBe(large);
  expect((await buffer(answer)).length).toBe(large);
});

test("a client that leaves ends its request at the shop, and the payment says so", async () => {
  sell();
  const payment = encodeHeader(await signedPayment());
  const arrived = Promise.withResolvers<IncomingMessage>();
  serve = (incoming) => arrived.resolve(incoming);
  const sent = request(`${proxy}/report`, { headers: { "payment-signature": payment } }).end();
  sent.on("error", () => {});
  const { socket } = await arrived.promise;
  sent.destroy();
  await once(socket, "close");
  await expect.poll(async () => (await list())[0]?.shop?.outcome).toBe("left");
  expect((await why()).explanations.map(({ mistake }) => mistake)).toEqual(["answer-lost"]);
});

test("redirects of the shop lead through the proxy", async () => {
  serve = ({ url = "" }, outgoing) =>
    outgoing.writeHead(302, { location: url === "/absolute" ? `${target}/a?b` : "next" }).end();
  const locations = await Promise.all(
    ["/absolute", "/folder/relative"].map(
      async (path) => (await sendHttp(`${proxy}${path}`)).headers.location,
    ),
  );
  expect(locations).toEqual([`${proxy}/a?b`, "next"]);
});

test("a foreign host name is refused, and a page of another origin is the shop's own matter", async () => {
  serve = (_, outgoing) => outgoing.end("shop");
  const statusWith = async (headers: Record<string, string>) => (await sendHttp(proxy, { headers })).status;
  expect(await statusWith({ host: "evil.example" })).toBe(403);
  expect(await statusWith({ origin: "https://page.example" })).toBe(200);
});

test("https to the http ports of proxy and facilitator is one line of the log for each", async () => {
  const hello = Buffer.from("16030100050100000100", "hex");
  for (const url of [proxy, proxy, origin, origin]) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.end(hello);
    await buffer(socket).catch(() => {});
  }
  const said = warnings.filter((line) => line.includes("https was asked"));
  expect(said).toEqual([expect.stringContaining(proxy), expect.stringContaining("http://")]);
});
