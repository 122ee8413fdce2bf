import { expect, onTestFinished, test } from "vitest";
import { checkWorkflow, runAction } from "../../support/github-action.ts";

const file = "actions/up/action.yml";

test("the action starts `up` for the steps after it, and says where everything is", async () => {
  const { failed, outputs, printed } = await runAction(file, { options: "--networks polygon,base --port 0" });
  const pid = Number(outputs.pid);
  onTestFinished(() => {
    if (pid > 0) process.kill(pid, "SIGTERM");
  });
  expect([failed, printed]).toEqual([
    false,
    expect.stringMatching(/^The facilitator is ready after \d+ s\.\n$/),
  ]);
  expect(Object.entries(outputs).filter(([, value]) => value === "")).toEqual([]);

  const response = await fetch(`${outputs["facilitator-url"]}/supported`, {
    headers: { authorization: outputs["api-key"] ?? "" },
  });
  expect(await response.json()).toMatchObject({
    kinds: expect.arrayContaining([expect.objectContaining({ network: outputs.network })]),
  });
  const { networks, payers } = JSON.parse(outputs.description ?? "");
  expect(Object.keys(networks)).toEqual(["polygon", "base"]);
  expect(networks.polygon).toMatchObject({
    caip2: outputs.network,
    facilitatorContract: outputs["pay-to"],
    rpcUrl: outputs["rpc-url"],
  });
  expect(JSON.parse(outputs.payers ?? "")).toEqual(payers);
  expect(payers.funded.privateKey).toBe(outputs["payer-private-key"]);
});

test("with --plain, payments are made to a wallet", async () => {
  const { outputs } = await runAction(file, { options: "--plain --networks base --port 0" });
  const pid = Number(outputs.pid);
  onTestFinished(() => {
    if (pid > 0) process.kill(pid, "SIGTERM");
  });
  const { organization } = JSON.parse(outputs.description ?? "");
  expect(outputs["pay-to"]).toBe(organization.recipient);
});

test("the action fails with what `up` says when it cannot start", async () => {
  const { failed, printed } = await runAction(file, { options: "--networks nowhere" });
  expect(failed).toBe(true);
  expect(printed).toMatch(
    /^::error::x402-kit up has ended\nx402-kit up: .*\n {2}--networks: "nowhere" is not/,
  );
});

test("the action ends an `up` that is not ready in time", async () => {
  const { failed, printed } = await runAction(file, { options: "--port 0", timeout: "0" });
  expect([failed, printed]).toEqual([true, "::error::x402-kit up was not ready within 0 s\n"]);
});

test("the example workflow gives the action what it takes, and takes what it gives", async () => {
  expect(await checkWorkflow("examples/workflows/up.yml", file)).toEqual([]);
});
