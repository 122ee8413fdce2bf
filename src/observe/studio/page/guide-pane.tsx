import { useEffect } from "preact/hooks";
import { Ago, Button, CodeLine } from "./controls.tsx";
import { Icon } from "./icons.tsx";
import {
  atThisPlace,
  command,
  harness,
  isLocal,
  loadShop,
  networkNames,
  shopConnectedAt,
} from "./local-service.ts";
import { isPayOpen, pay } from "./pay-from-page.ts";
import { total } from "./payment-stream.ts";
import { ShopConfig } from "./shop-config.tsx";

const lookEveryMs = 1_500;

/** Whether a shop has connected, and when. */
export function ShopSign() {
  useEffect(() => {
    void loadShop();
    const timer = setInterval(loadShop, lookEveryMs);
    return () => clearInterval(timer);
  }, []);
  const at = shopConnectedAt.value;
  if (at === null) return <p class="sign waiting">Waiting for a shop to connect…</p>;
  return (
    <p class="sign connected">
      <Icon name="settled" /> A shop has connected <Ago at={at} />: it asked which payments are taken here
    </p>
  );
}

/** What stands in the place of the list until the first payment, and then below: how to get one. */
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
            <Button class="primary" onClick={() => pay(paymentOf("funded", network))}>
              Pay as funded
            </Button>
            <Button onClick={() => pay(paymentOf("empty", network))}>Pay as empty, which is refused</Button>
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

/** A hundredth of a token with six decimals. */
const usualAmount = "10000";

function paymentOf(payer: string, network: string) {
  return { network, payer, amount: usualAmount };
}
