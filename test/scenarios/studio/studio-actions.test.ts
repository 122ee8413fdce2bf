import { beforeEach, describe, expect, test } from "vitest";
import { postPayment, signPayment } from "../../../src/harness/control/pay.ts";
import { describeFaults } from "../../../src/harness/faults/faults.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { post, signedRequest } from "../../support/service.ts";
import { soon, useStudio, useStudioPage } from "../../support/studio.ts";

/*
 * Actions in the page of the studio, in a real Chromium: paying, mending, faults, chains and the reset.
 */

const studio = useStudio();
const shown = useStudioPage(studio);
const { rows, button, said } = shown;
const { payAs, list, detailOf } = studio;

/** Pays in the dialog, with what is changed in it before. */
async function payInDialog(change: (form: ReturnType<typeof shown.page.getByRole>) => Promise<unknown>) {
  await button("Pay…").click();
  const form = shown.page.getByRole("form", { name: "Pay as a test payer" });
  await change(form);
  await form.getByRole("button", { name: "Pay", exact: true }).click();
}

describe("paying", { timeout: 60_000 }, () => {
  test("it pays in a dialog, shows the new payment, filters and pauses", async () => {
    const { page } = shown;
    await payInDialog(async () => {});
    await said("Paid and settled.");
    await expect.poll(() => page.locator("article h2").textContent(), soon).toBe("0.01 USDC on base");
    await expect.poll(() => page.getByRole("dialog").count(), soon).toBe(0);
    await payInDialog((form) => form.getByLabel("Payer").selectOption("empty"));
    await said("Not settled: insufficient_funds.");
    const newest = (await list())[0]?.id;
    await expect.poll(() => page.url(), soon).toBe(`${studio.origin}/studio/payments/${newest}`);
    await page.waitForSelector("tr.row[aria-selected=true] >> text=empty");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: /^Refused 1$/ }).click();
    await expect.poll(() => rows().count(), soon).toBe(1);
    await page.getByRole("button", { name: /^All 2$/ }).click();
    const payers = page.getByLabel("Payer", { exact: true });
    await payers.selectOption({ label: "empty" });
    await expect.poll(() => rows().allTextContents(), soon).toEqual([expect.stringContaining("empty")]);
    await payers.selectOption("");
    await expect.poll(() => rows().count(), soon).toBe(2);
    await button("Pause").click();
    await payAs("funded");
    await page.waitForSelector("text=2 of 3");
    await button("Go on").click();
    await page.waitForSelector("text=3 of 3");
  });

  test("an amount of 0 is said to be refused before it is paid", async () => {
    await payInDialog(async (form) => {
      await form.getByLabel("USDC").fill("0.00");
      await form.getByText("An amount of 0 is refused unless the facilitator is configured for it").waitFor();
    });
    await expect.poll(() => rows().first().textContent(), soon).toContain("payment_requirements");
  });

  test("a payment is edited in its times, which are told in seconds, as dates and from the chain's time", async () => {
    const { page } = shown;
    const form = page.getByRole("form", { name: "Pay as a test payer" });
    await payInDialog(async () => {
      await form.getByText("Times").click();
      await form.getByLabel("Valid after").fill("now + 1 h");
      await form
        .getByText(/^Valid after 1\d{9} · 20\d\d-.* UTC · 3600 s \(60 min\) after the chain's time$/)
        .waitFor();
    });
    await expect.poll(() => rows().first().textContent(), soon).toMatch(/valid_after/);
    const { signed } = await detailOf((await list())[0]?.id);
    const now = Number((await studio.get<{ time: number }[]>("/harness/chains"))[0]?.time);
    expect(Math.abs(Number(signed?.validAfter) - now - 3_600)).toBeLessThan(30);

    await button("Edit…").click();
    await expect
      .poll(() => form.getByLabel("Valid after").inputValue(), soon)
      .toMatch(/^now \+ (359\d|360\d) s$/);
    await form.getByLabel("Valid after").fill("now − 60 s");
    await form.getByRole("button", { name: "Pay", exact: true }).click();
    await expect.poll(() => rows().first().textContent(), soon).toMatch(/Settled/);

    await payInDialog(async () => {
      await form.getByLabel("Valid before").fill("tomorrow");
      await form.getByText(/^Valid before: a time is now − 60 s, /).waitFor();
    });
    await said(/^A time is now − 60 s, /);
    expect(await list()).toHaveLength(2);
  });

  test("a payment is made in any token of the chain, and again in the same one", async () => {
    const form = shown.page.getByRole("form", { name: "Pay as a test payer" });
    await payInDialog(async () => {
      await form.getByLabel("By").selectOption("permit2");
      await form.getByLabel("Token").selectOption("usdt");
      await form.getByLabel("USDT", { exact: true }).fill("0.3");
    });
    await expect.poll(() => rows().first().textContent(), soon).toMatch(/Settled.*0\.3 USDT/);
    await rows().first().click();
    await button("Pay again").click();
    const paid = expect.stringMatching(/Settled.*0\.3 USDT/);
    await expect.poll(() => rows().allTextContents(), soon).toEqual([paid, paid]);
  });

  test("of a payment on a chain whose time was moved, details, form and times go by the chain's time", async () => {
    const { page } = shown;
    await studio.harness.chains.base?.advanceTime(3_600);
    await payAs("funded");
    await rows().first().click();
    await page.getByText(/^(59\d|60\d) s \(10 min\) after the chain's time at the request/).waitFor();
    await button("Repeat settle").click();
    await said("Sent the same settle again.");
    await button("Edit…").click();
    await expect
      .poll(() => page.getByLabel("Valid before").inputValue(), soon)
      .toMatch(/^now \+ (59\d|60\d) s$/);
  });
});

describe("a payment once more", { timeout: 60_000 }, () => {
  const copies = async () => {
    await shown.page.getByRole("button", { name: "Copy", exact: true }).last().click();
    const names = await shown.page.getByRole("menuitem").allTextContents();
    await shown.page.keyboard.press("Escape");
    return names;
  };

  test("it is done again: the same, a fresh one, and one with edited terms", async () => {
    const { page } = shown;
    await payAs("funded");
    await rows().first().click();
    await button("Repeat settle").click();
    await expect.poll(() => rows().first().textContent(), soon).toContain("×2");
    await button("Pay again").click();
    await page.waitForSelector("text=2 of 2");
    await button("Edit…").click();
    await page.getByLabel("USDC").fill("0.02");
    // Open of itself where the times are not the usual ones.
    await page.locator("dialog details").evaluate((times) => times.setAttribute("open", ""));
    await expect.poll(() => page.getByLabel("Valid after").inputValue(), soon).toBe("0");
    await expect
      .poll(() => page.getByLabel("Valid before").inputValue(), soon)
      .toMatch(/^now \+ (59\d|60\d) s$/);
    await page.getByLabel("Valid before").fill("now − 5 s");
    await page.getByRole("button", { name: "Pay", exact: true }).click();
    await page.waitForSelector("text=3 of 3");
    await expect.poll(() => rows().first().textContent(), soon).toMatch(/0\.02.*valid_before/s);
  });

  test("a payment whose signature was wrong is not offered as a test, which would sign rightly", async () => {
    const { request } = await signPayment(studio.harness.description, { network: "base" });
    const damaged = JSON.stringify(request).replace(/"signature":"0x..../, '"signature":"0x1111');
    await postPayment(studio.harness.description, "verify", JSON.parse(damaged));
    await rows().first().click();
    await shown.page.waitForSelector("article");
    const offered = await copies();
    expect(offered).toContain("Copy as curl");
    expect(offered).not.toContain("Copy as test");
    await payAs("empty");
    await rows().nth(1).waitFor();
    await rows().first().click();
    await expect.poll(copies, soon).toContain("Copy as test");
  });

  test("a payer without money is funded and pays again by one button, or funded by a command", async () => {
    const { page } = shown;
    await payAs("empty", { amount: 1_450_000n });
    await rows().first().click();
    const { address } = testPayers.empty;
    const command = `npx --no-install x402-kit fund --network base --to ${address} --amount 1.45 --url ${studio.origin}`;
    await page.locator(".explanation .code-line").getByText(command).waitFor();
    await button("Fund 1.45 USDC and pay again").click();
    await said("empty has 1.45 USDC more. Paid and settled.");
    await expect.poll(() => page.locator("article .badge").textContent(), soon).toBe("Settled");
    expect(await list()).toMatchObject([
      { payerName: "empty", settle: { outcome: "settled" } },
      { payerName: "empty", settle: { reason: "insufficient_funds" } },
    ]);
  });

  test("of what the payer has already only the rest is funded", async () => {
    await studio.harness.chains.base?.fund(testPayers.empty.address, 450_000n);
    await payAs("empty", { amount: 1_450_000n });
    await rows().first().click();
    await button("Fund 1 USDC and pay again").waitFor();
  });

  test("a price that was counted with 18 decimals is not offered to be funded", async () => {
    await payAs("empty", { amount: 10_000_000_000_000_000n });
    await rows().first().click();
    await shown.page.waitForSelector(".explanation");
    await expect.poll(() => shown.page.getByRole("button", { name: /^Fund/ }).count(), soon).toBe(0);
  });

  test.each([
    ["that expired", "Sign it anew and pay", { authorization: { validBefore: 1_000n } }, "funded"],
    ["without approval", "Approve Permit2 and pay again", { method: "permit2" }, "unapproved"],
    ["of another token without approval", "Approve Permit2 and pay again", { asset: "permit" }, "unapproved"],
    ["of a token that the payer lacks", "Fund 0.01 PLAIN and pay again", { asset: "plain" }, "empty"],
  ] as const)("a payment %s is mended by “%s”", async (_, label, spec, payer) => {
    await payAs(payer, spec);
    const asset = (await list())[0]?.asset;
    await rows().first().click();
    await button(label).click();
    await said(/Paid and settled\.$/);
    expect((await list())[0]?.asset).toBe(asset);
    await expect.poll(() => rows().first().locator(".badge").textContent(), soon).toBe("Settled");
  });

  test("a payment that a fault left without a verdict is sent again without the fault", async () => {
    await studio.harness.faults.add({ network: "base", kind: "reset" });
    const { request } = await signPayment(studio.harness.description, { network: "base" });
    await postPayment(studio.harness.description, "verify", request);
    await expect.poll(() => rows().first().locator(".badge").textContent(), soon).toBe("Undecided");
    await rows().first().click();
    await button("End the faults and send it again").waitFor();
    // It may still settle: a new one would pay twice.
    await expect.poll(() => button("Pay again").count(), soon).toBe(0);
    await button("End the faults and send it again").click();
    await expect.poll(() => rows().first().locator(".badge").textContent(), soon).toBe("Verified");
    expect(await studio.harness.faults.list()).toEqual([]);
  });

  test("a shop without a key, or at a wrong path, is given what it lacks to copy", async () => {
    const { page } = shown;
    await fetch(`${studio.origin}/v1/verify`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    await fetch(`${studio.origin}/v2/verify`, { method: "POST" });
    await rows().nth(1).waitFor();
    const line = page.locator(".explanation .code-line code").last();
    await rows().nth(0).click();
    await expect.poll(() => line.textContent(), soon).toBe(studio.harness.description.facilitator.url);
    await rows().nth(1).click();
    const { apiKey } = studio.harness.description.organization;
    await expect.poll(() => line.textContent(), soon).toBe(`Authorization: ${apiKey}`);
  });

  test("what is said of a click stands near it", async () => {
    await payAs("funded");
    await rows().first().click();
    await button("Repeat settle").click();
    const clicked = await button("Repeat settle").boundingBox();
    const toast = await shown.page.locator(".toast").boundingBox();
    expect(Math.abs((toast?.x ?? 9_999) - (clicked?.x ?? 0))).toBeLessThan(200);
    expect(Math.abs((toast?.y ?? 9_999) - (clicked?.y ?? 0))).toBeLessThan(120);
  });
});

describe("the chains", { timeout: 60_000 }, () => {
  beforeEach(() => shown.open("Chains"));

  test("they can be mined, moved in time and funded; their balances follow", async () => {
    const { page } = shown;
    const card = page.getByLabel("base", { exact: true });
    const balance = () => card.locator("tr", { hasText: "empty" }).locator("td").textContent();
    await expect.poll(balance, soon).toBe("0");
    await card.getByLabel("USDC for the payer on base").fill("1002.5");
    await card.getByRole("button", { name: "Fund USDC" }).click();
    await expect.poll(balance, soon).toBe("1,002.5");
    await expect.poll(() => card.textContent(), soon).toMatch(/operator 10,000 ETH for gas/);
    const time = async () => Number((await studio.get<{ time: number }[]>("/harness/chains"))[0]?.time);
    const before = await time();
    await card.getByRole("button", { name: "+1 hour" }).click();
    await said("base is an hour later.");
    expect(await time()).toBeGreaterThanOrEqual(before + 3_600);
  });

  test("a reset is asked for, with what will be lost, and is not beside Pay", async () => {
    const { page } = shown;
    await payAs("funded");
    await studio.harness.faults.add({ network: "base", kind: "delay", ms: 1 });
    await page.locator(".alarm").waitFor();
    await button("Reset…").click();
    const dialog = page.getByRole("dialog", { name: "Reset everything?" });
    await expect
      .poll(() => dialog.locator("li").allTextContents(), soon)
      .toEqual([
        "1 payment in this list, with what happened to it",
        "blocks, balances, approvals and moved time of base",
        "1 fault that is set here or by a test",
      ]);
    await dialog.getByRole("button", { name: "Keep it" }).click();
    expect(await list()).toHaveLength(1);
    await button("Reset…").click();
    await button("Reset everything").click();
    await said("Everything is as it was at the start.");
    expect(await list()).toHaveLength(0);
    expect(await studio.harness.faults.list()).toEqual([]);
    await shown.open("Payments");
    await expect.poll(() => page.getByRole("button", { name: /Reset/ }).count(), soon).toBe(0);
  });
});

describe("faults", { timeout: 60_000 }, () => {
  beforeEach(() => shown.open("Faults"));

  test("one that is active shows in the navigation, above each view, and on the payments it hit", async () => {
    const { page } = shown;
    await payAs("smartWallet");
    await page.getByRole("switch", { name: "Base is slow" }).click();
    await expect.poll(() => page.locator("nav .alarm").textContent(), soon).toBe("1");
    await shown.open("Payments");
    const banner = page.getByLabel("Active faults");
    await banner.getByText("A fault is active").waitFor();
    await post(studio.harness, "verify", await signedRequest(studio.harness));
    await expect
      .poll(() => banner.textContent(), soon)
      .toMatch(/delay on base ms 2000 · hit [1-9]\d* times?/);
    await expect
      .poll(() => rows().locator(".hit").allTextContents(), soon)
      .toEqual(["hit by the fault delay"]);
    await rows().first().click();
    await page.locator("article .hit").getByText("hit by delay").waitFor();
    await banner.getByRole("button", { name: "End it" }).click();
    await expect.poll(() => banner.count(), soon).toBe(0);
    await expect.poll(() => page.locator("nav .alarm").count(), soon).toBe(0);
    expect(await studio.harness.faults.list()).toEqual([]);
  });

  test("presets set the usual trouble: the next answer is lost, and a chain is down", async () => {
    const { page } = shown;
    const lost = page.getByRole("switch", { name: "Answer lost once" });
    await lost.click();
    await expect.poll(() => lost.getAttribute("aria-checked"), soon).toBe("true");
    const body = await signedRequest(studio.harness);
    await expect(post(studio.harness, "settle", body)).rejects.toThrow();
    await expect.poll(() => lost.getAttribute("aria-checked"), soon).toBe("false");
    const down = page.getByRole("switch", { name: "Base is down" });
    await down.click();
    await expect.poll(() => down.getAttribute("aria-checked"), soon).toBe("true");
    const { status } = await post(studio.harness, "verify", await signedRequest(studio.harness));
    expect(status).toBe(503);
    await down.click();
    await expect.poll(() => studio.harness.faults.list(), soon).toMatchObject([{ kind: "answer-lost" }]);
  });

  test("one that has hit as often as it was to is off and used up, and can be set again", async () => {
    const { page } = shown;
    await studio.harness.faults.add({ network: "facilitator", kind: "delay", ms: 5, times: 1 });
    const fault = page.getByRole("switch", { name: "delay (facilitator)" });
    await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("true");
    await post(studio.harness, "verify", await signedRequest(studio.harness));
    await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("false");
    await expect.poll(() => page.getByText("used up, hit 1 time").count(), soon).toBe(2);
    await fault.click();
    await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("true");
    await button("Clear all faults").click();
    await page.getByText("No fault is set.", { exact: true }).waitFor();
  });

  test("the first hit is one time, the next ones are times", async () => {
    const { page } = shown;
    const fault = page.getByRole("switch", { name: "delay (facilitator)" });
    await fault.click();
    await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("true");
    const body = await signedRequest(studio.harness);
    await post(studio.harness, "verify", body);
    await page.waitForSelector("text=/hit 1 time$/");
    await post(studio.harness, "verify", body);
    await page.waitForSelector("text=/hit 2 times$/");
  });

  test.each(["delay (base)", "delay (facilitator)"])(
    "%s is a switch that counts what it hits",
    async (name) => {
      const { page } = shown;
      const fault = page.getByRole("switch", { name });
      await fault.click();
      await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("true");
      await payAs("funded");
      await page.waitForSelector("text=/hit [1-9]\\d* times/");
      await fault.click();
      await expect.poll(() => fault.getAttribute("aria-checked"), soon).toBe("false");
    },
  );

  test("every fault that there is can be set with its parameters, and what lasts is cleared by one button", async () => {
    const { page } = shown;
    // More than the reorganization of the form replaces.
    await studio.harness.chains.base?.mine(5);
    await payAs("funded");
    const set = page.getByLabel("Faults that are set");
    await set.getByText("No fault is set.").waitFor();
    for (const { kind, places, lasts } of describeFaults().kinds) {
      for (const place of places) {
        const name = `${kind} (${place === "facilitator" ? place : "base"})`;
        const control = page.getByRole(lasts ? "switch" : "button", { name, exact: true });
        await control.click();
        if (lasts) await expect.poll(() => control.getAttribute("aria-checked"), soon).toBe("true");
        else await said(`${name} has happened.`);
      }
    }
    const lasting = (await studio.harness.faults.list()).length;
    await expect.poll(() => set.getByRole("button", { name: /^Remove/ }).count(), soon).toBe(lasting);
    await set.getByRole("button", { name: "Clear all faults" }).click();
    await set.getByText("No fault is set.").waitFor();
    expect(await studio.harness.faults.list()).toEqual([]);
  });

  test("a fault is set with the parameters that are typed, for the calls that are named", async () => {
    const { page } = shown;
    const rowOf = (name: string) => page.getByRole("form", { name, exact: true });
    const late = rowOf("delay (facilitator)");
    await late.getByLabel("milliseconds").fill("7");
    await late.getByText("only some requests").click();
    await late.getByLabel(/^which calls/).selectOption("settle");
    await late.getByLabel(/^how many matches/).fill("2");
    await late.getByRole("switch").click();
    await expect
      .poll(() => studio.harness.faults.list(), soon)
      .toMatchObject([
        { kind: "delay", network: "facilitator", ms: 7, method: "settle", times: 2, fired: 0 },
      ]);
    await payAs("funded");
    await late.getByText("hit 1 time", { exact: true }).waitFor();
    const receipts = rowOf("receipt-of-another (base)");
    await receipts.getByLabel("give that receipt the requested hash").check();
    await receipts.getByRole("switch").click();
    await rowOf("base-fee (base)").getByLabel("wei per gas").fill("2000000000");
    await rowOf("base-fee (base)").getByRole("switch").click();
    await expect
      .poll(() => studio.harness.faults.list(), soon)
      .toMatchObject([
        {},
        { kind: "receipt-of-another", disguised: true },
        { kind: "base-fee", wei: "2000000000", fired: 1 },
      ]);
  });

  test("a fault that is refused says why, and stays off", async () => {
    const { page, troubles } = shown;
    const drop = page.getByRole("form", { name: "drop (base)", exact: true });
    await drop.getByLabel(/^which transaction/).fill("0x12");
    await drop.getByRole("button").click();
    await said(/is not the hash of a transaction/);
    expect(troubles.splice(0)).toEqual([expect.stringContaining("400")]);
    const late = page.getByRole("form", { name: "delay (base)", exact: true });
    await late.getByLabel("milliseconds").fill("0");
    await late.getByRole("switch").click();
    expect(await studio.harness.faults.list()).toEqual([]);
  });
});
