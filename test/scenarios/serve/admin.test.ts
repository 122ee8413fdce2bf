import { afterAll, beforeAll, expect, test } from "vitest";
import { transactionViewSchema } from "../../../src/observe/timeline/payment-view.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { runHere } from "../../support/run-here.ts";
import { type RunningCommand, startCommand } from "../../support/serve/command.ts";
import type { DeployedChains } from "../../support/serve/deployed-chains.ts";
import { signPayment, startDeployedShop } from "../../support/serve/shop.ts";

/*
 * The payments of `serve` for its operators, on a listener of its own.
 */

const token = "9b1c5e0d7f3a2468ace013579bdf8642";

let deployed: DeployedChains<"base">;
let key: string;
let command: RunningCommand;
let api: string;
let admin: string;
/** Starts an instance with an admin listener. */
const startInstance = () =>
  startCommand(
    ["serve"],
    {
      ...deployed.variables,
      CONFIRMATIONS: "base=1",
      ADMIN_PORT: "0",
      ADMIN_TOKEN: token,
      LOG_LEVEL: "debug",
    },
    "/",
  );
beforeAll(async () => {
  ({ deployed, key } = await startDeployedShop());
  command = startInstance();
  admin = urlIn(await command.logged(/showing payments to operators/));
  api = urlIn(await command.logged(/"serving"/));
});
afterAll(async () => {
  await command?.[Symbol.asyncDispose]();
  await deployed?.stop();
});

function urlIn(line: string): string {
  const { url }: { url: string } = JSON.parse(line);
  return url;
}

test("a payment is seen and followed there with the token, and its signature nowhere", async () => {
  const follower = new AbortController();
  const events = await fetch(`${admin}/events`, {
    headers: { authorization: `Bearer ${token}` },
    signal: follower.signal,
  });
  const body = await signPayment(deployed);
  const headers = { authorization: key };
  const verified = await requestJson(`${api}/verify`, { method: "POST", headers, body });
  expect(verified.body).toMatchObject({ isValid: true });
  const settled = await requestJson(`${api}/settle`, { method: "POST", headers, body });
  expect(settled.body).toMatchObject({ success: true });
  const signature: string = body.paymentPayload.payload.signature;

  let streamed = "";
  for await (const chunk of events.body ?? []) {
    streamed += Buffer.from(chunk).toString();
    if (streamed.includes('"outcome":"settled"')) break;
  }
  follower.abort();

  const seen = await requestJson(`${admin}/payments`, { headers: { authorization: `Bearer ${token}` } });
  expect(seen.body).toMatchObject({
    payments: [
      { network: "base", verify: { outcome: "valid" }, settle: { outcome: "settled" }, ledger: "settled" },
    ],
  });
  const why = await runHere(["why", "--url", admin, "--token", token]);
  expect(why.stdout).toContain("Nothing is wrong with it: it is settled.");

  const [{ id }] = (seen.body as { payments: [{ id: string }] }).payments;
  const carried = await requestJson(`${admin}/payments/${id}/transaction`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(transactionViewSchema.parse(carried.body)).toMatchObject({
    call: { name: "settle", payments: [{ payer: body.paymentPayload.payload.authorization.from }] },
    mined: { succeeded: true },
  });

  for (const output of [streamed, JSON.stringify([seen.body, carried.body]), why.stdout]) {
    expect(output).not.toContain(signature.slice(2));
    expect(output).not.toContain(token);
    expect(output).not.toContain(key);
  }
});

test("another instance explains a payment by the ledger, without its signature", async () => {
  const body = await signPayment(deployed);
  const headers = { authorization: key };
  const settled = await requestJson(`${api}/settle`, { method: "POST", headers, body });
  const id = settled.headers.location?.split("/").at(-1) ?? "";
  await using other = startInstance();
  const otherAdmin = urlIn(await other.logged(/showing payments to operators/));
  await other.logged(/"serving"/);
  const why = (...args: string[]) =>
    runHere(["why", ...args, "--url", otherAdmin, "--token", token, "--json"]);
  const { code, stdout } = await why(id);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({
    settlement: { id, state: "settled", transaction: (settled.body as { transaction: string }).transaction },
  });
  expect(stdout).not.toContain(body.paymentPayload.payload.signature.slice(2));
  expect((await why(`0x${"00".repeat(32)}`)).code).toBe(4);
});

test("without the token nothing is said, and the command says which one is needed", async () => {
  expect((await requestJson(`${admin}/payments`)).status).toBe(401);
  expect((await requestJson(`${api.replace(/\/v1$/, "")}/payments`)).status).toBe(404);
  const { stderr, code } = await runHere(["why", "--url", admin]);
  expect(stderr).toContain("ADMIN_TOKEN");
  expect(code).not.toBe(0);
});

test("its log holds neither the token nor a signature", async () => {
  const body = await signPayment(deployed);
  await requestJson(`${api}/verify`, { method: "POST", headers: { authorization: key }, body });
  await requestJson(`${admin}/payments`, { headers: { authorization: `Bearer ${token}` } });
  command.kill("SIGTERM");
  const { code, stdout, stderr } = await command.ended;
  expect(code).toBe(0);
  for (const secret of [token, key, body.paymentPayload.payload.signature.slice(2)]) {
    expect(`${stdout}${stderr}`).not.toContain(secret);
  }
});
