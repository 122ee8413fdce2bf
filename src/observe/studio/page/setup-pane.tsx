import { useSignal } from "@preact/signals";
import { unitsOf } from "../../../protocol/token-units.ts";
import { Button, CopyButton, Select } from "./controls.tsx";
import { copyText, harness } from "./page-state.ts";
import { type Framework, shopOf } from "./snippets.ts";

const frameworks: readonly Framework[] = ["express", "hono", "next"];

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
        <p>
          <a href="/docs">The API, to try</a>
        </p>
      </section>
      {Object.entries(networks).map(([network, { facilitatorContract, asset, rpcUrl }]) => (
        <section class="card" key={network} aria-label={network}>
          <h2>{network}</h2>
          <Copy name="payTo" text={facilitatorContract} />
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
  const { facilitator, organization, networks } = harness.value;
  const name = chosen.value || Object.keys(networks)[0] || "";
  const network = networks[name];
  if (network === undefined) return null;
  const { caip2, facilitatorContract: payTo, asset } = network;
  const { apiKey } = organization;
  const shop = shopOf(framework.value, { url: facilitator.url, apiKey, caip2, payTo, asset });
  return (
    <section class="card wide" aria-label="Shop">
      <h2>Your shop</h2>
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
        />{" "}
        <Button onClick={() => copyText(shop, "the configuration")}>Copy</Button>
      </p>
      <pre>{shop}</pre>
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
