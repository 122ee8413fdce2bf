import { useSignal } from "@preact/signals";
import { unitsOf } from "../../../protocol/token-units.ts";
import { Button, CopyButton, Select } from "./controls.tsx";
import { type Framework, frameworks, setupOf } from "./shop-files.ts";
import { harness } from "./state.ts";

/** What a shop may name as payTo. */
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
      <section class="card" aria-label="Facilitator">
        <h2>Facilitator</h2>
        <Copy name="URL" text={facilitator.url} />
        <Copy name="API key" text={organization.apiKey} />
        <Copy name="recipient" text={organization.recipient} />
        <p>{whereToPay[view.payToPolicy ?? "contract"]}</p>
        <p>
          <a href="/docs">The API, to try</a>
        </p>
      </section>
      {Object.entries(networks).map(([network, { facilitatorContract, payTo, asset, rpcUrl }]) => (
        <section class="card" key={network} aria-label={network}>
          <h2>{network}</h2>
          <Copy name="payTo" text={payTo} />
          {payTo !== facilitatorContract && <Copy name="contract" text={facilitatorContract} />}
          <Copy name={unitsOf(asset).symbol} text={asset.address} />
          {rpcUrl !== undefined && <Copy name="RPC URL" text={rpcUrl} />}
        </section>
      ))}
      <Shop />
      <section class="card wide" aria-label="Test payers">
        <h2>Test payers</h2>
        <p class="soft">Their keys are published: never send anything of value to these accounts.</p>
        {Object.entries(payers).map(([payer, { address, privateKey }]) => (
          <div class="payer" key={payer}>
            <b>{payer}</b> <Copy name="address" text={address} /> <Copy name="key" text={privateKey} />
          </div>
        ))}
      </section>
    </div>
  );
}

/** How a shop is configured for this facilitator. */
function Shop() {
  const framework = useSignal<Framework>("express");
  const chosen = useSignal("");
  if (harness.value === null) return null;
  const { facilitator, organization, networks, payers } = harness.value;
  const name = chosen.value || Object.keys(networks)[0] || "";
  const network = networks[name];
  if (network === undefined) return null;
  const parts = setupOf(framework.value, {
    ...{ url: facilitator.url, apiKey: organization.apiKey, payerKey: payers.funded?.privateKey },
    network: { name, ...network },
  });
  return (
    <section class="card wide" aria-label="Shop">
      <h2>Your shop, and a buyer</h2>
      <p>
        {frameworks.map((one) => (
          <Button key={one} aria-pressed={framework.value === one} onClick={() => (framework.value = one)}>
            {one}
          </Button>
        ))}{" "}
        <Select
          label="Network of the shop"
          value={name}
          options={Object.keys(networks)}
          onChange={(one) => (chosen.value = one)}
        />
      </p>
      <p class="soft">
        <code>npx x402-facilitator-kit init my-shop --framework {framework.value}</code> writes all of this,
        with a test, for an <code>x402-kit up</code> at its usual address.
      </p>
      {parts.map((part) => (
        <section key={part.name} aria-label={part.name}>
          <h3>
            {part.name} <CopyButton {...part} />
          </h3>
          <pre>{part.text}</pre>
        </section>
      ))}
    </section>
  );
}

function Copy({ name, text }: { name: string; text: string }) {
  return (
    <span class="copied">
      <span class="soft">{name}</span> <code>{text}</code> <CopyButton name={name} text={text} />
    </span>
  );
}
