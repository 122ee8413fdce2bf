import { unitsOf } from "../../../protocol/token-units.ts";
import { CopyButton, withCode } from "./controls.tsx";
import { ShopSign } from "./guide-pane.tsx";
import { harness, standsFor } from "./local-service.ts";
import { ShopConfig } from "./shop-config.tsx";

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
