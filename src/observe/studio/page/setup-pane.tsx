import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Framework, frameworks } from "../../../payer/shop-variables.ts";
import { unitsOf } from "../../../protocol/token-units.ts";
import { Ago, Button, CodeBlock, CodeLine, CopyButton, Icon, Select, withCode } from "./controls.tsx";
import {
  atThisPlace,
  command,
  harness,
  isLocal,
  loadShop,
  networkNames,
  shopConnectedAt,
  standsFor,
} from "./local-service.ts";
import { isPayOpen, pay } from "./pay-dialog.tsx";
import { total } from "./payment-stream.ts";
import { setupOf } from "./shop-files.ts";

/** How a shop may set payTo, by policy. */
const whereToPay = {
  contract:
    "A shop names the facilitator contract as payTo, which pays the recipient. One that names its own wallet, as with public facilitators, runs unchanged on `x402-kit up --plain`.",
  recipients: "A shop names the recipient as payTo, and is paid straight; or the facilitator contract.",
  any: "A shop names any address as payTo, such as its own wallet, and is paid straight there, as by public facilitators; or the facilitator contract.",
};

/** Keys and addresses to copy, and the configuration of a shop. */
export function SetupPane() {
  const view = harness.value;
  if (view === null) return <p class="empty">Nothing is known of this service.</p>;
  const { facilitator, organization, networks, payers } = view;
  return (
    <div class="pane">
      <header class="pane-head">
        <h2>Setup</h2>
        <p class="soft">What a shop, a client and their tests need of this facilitator.</p>
      </header>
      <section class="card" aria-label="Facilitator">
        <h3>Facilitator</h3>
        <Copy name="URL" text={facilitator.url} />
        <Copy name="API key" text={organization.apiKey} />
        <Copy name="recipient" text={organization.recipient} />
        <p>{withCode(whereToPay[view.payToPolicy ?? "contract"])}</p>
        <p>
          <a href="/docs">The API, to try</a>
        </p>
      </section>
      {Object.entries(networks).map(
        ([network, { facilitatorContract, payTo, asset, tokens = {}, rpcUrl }]) => (
          <section class="card" key={network} aria-label={network}>
            <h3>{network}</h3>
            <Copy name="payTo" text={payTo} />
            {payTo !== facilitatorContract && <Copy name="contract" text={facilitatorContract} />}
            {[asset, ...Object.values(tokens)].map((token) => (
              <Copy key={token.address} name={unitsOf(token).symbol} text={token.address} />
            ))}
            {rpcUrl !== undefined && <Copy name="RPC URL" text={rpcUrl} />}
          </section>
        ),
      )}
      <section class="card wide" aria-label="Shop">
        <h3>Your shop</h3>
        <ShopSign />
        <ShopConfig />
      </section>
      <section class="card wide" aria-label="Test payers">
        <h3>Test payers</h3>
        <p class="soft">Their keys are published: never send anything of value to these accounts.</p>
        {Object.entries(payers).map(([payer, { address, privateKey }]) => (
          <div class="payer-keys" key={payer}>
            <div>
              <b>{payer}</b> <span class="soft">{standsFor(payer)}</span>
            </div>
            <Copy name="address" text={address} /> <Copy name="key" text={privateKey} />
          </div>
        ))}
      </section>
    </div>
  );
}

function Copy({ name, text }: { name: string; text: string }) {
  return (
    <span class="copied">
      <span class="soft">{name}</span>
      <code title={text}>{text}</code>
      <CopyButton name={name} text={text} />
    </span>
  );
}

const lookEveryMs = 1_500;

/** Shows if and when a shop has connected. */
function ShopSign() {
  useEffect(() => {
    void loadShop();
    const timer = setInterval(loadShop, lookEveryMs);
    return () => clearInterval(timer);
  }, []);
  const at = shopConnectedAt.value;
  if (at === null) return <p class="sign waiting">Waiting for a shop to connect…</p>;
  return (
    <p class="sign connected">
      <Icon name="settled" /> A shop connected <Ago at={at} /> (GET /supported)
    </p>
  );
}

/** Explains how to make a payment: instead of the list until the first payment, and below the first few. */
export function GuidePane() {
  const view = harness.value;
  if (view === null) return null;
  const network = networkNames.value[0] ?? "base";
  return (
    <div class="guide">
      <h2>{total.value === 0 ? "No payments yet" : "Next: your own payments"}</h2>
      <p class="lead">
        Every verify and settle that reaches <code>{view.facilitator.url}</code> shows up here, with why it
        was refused and how to fix it.
      </p>
      {isLocal.value && (
        <section class="card" aria-label="Pay from here">
          <h3>
            <span class="number-sign">1</span> See one from here
          </h3>
          <p class="soft">
            No shop is needed: a test payer signs, and this facilitator verifies and settles it.
          </p>
          <div class="buttons">
            <Button class="primary" onClick={() => pay({ network, payer: "funded" })}>
              Pay as funded
            </Button>
            <Button onClick={() => pay({ network, payer: "empty" })}>Pay as empty, which is refused</Button>
            <Button onClick={() => (isPayOpen.value = true)}>Other terms…</Button>
          </div>
          <CodeLine name="the command" text={`${command} pay${atThisPlace}`} />
        </section>
      )}
      <section class="card" aria-label="Connect your shop">
        <h3>
          <span class="number-sign">{isLocal.value ? 2 : 1}</span> Connect your shop
        </h3>
        <ShopSign />
        <ShopConfig />
      </section>
    </div>
  );
}

/** The chosen framework, shared by all places that show it. */
const framework = signal<Framework>("express");
const chosen = signal("");

/** A shop for this facilitator in the chosen framework, and a buyer: everything to type and paste. */
function ShopConfig() {
  if (harness.value === null) return null;
  const { facilitator, organization, networks, payers } = harness.value;
  const name = chosen.value || networkNames.value[0] || "";
  const network = networks[name];
  if (network === undefined) return null;
  const parts = setupOf(framework.value, {
    url: facilitator.url,
    apiKey: organization.apiKey,
    payerKey: payers.funded?.privateKey,
    network: { name, ...network },
  });
  return (
    <div class="shop-config">
      <div class="tabs">
        {frameworks.map((one) => (
          <Button key={one} aria-pressed={framework.value === one} onClick={() => (framework.value = one)}>
            {one}
          </Button>
        ))}
        <Select
          label="Network of the shop"
          value={name}
          options={networkNames.value}
          onChange={(one) => (chosen.value = one)}
        />
      </div>
      <p class="soft">
        <code>npx --no-install x402-kit init my-shop --framework {framework.value}</code> writes all of this,
        with a test, for an <code>x402-kit up</code> at its usual address.
      </p>
      {parts.map((part) => (
        <section key={part.name} aria-label={part.name}>
          <h3>{part.name}</h3>
          <CodeBlock {...part} />
        </section>
      ))}
    </div>
  );
}
