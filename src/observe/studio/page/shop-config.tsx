import { signal } from "@preact/signals";
import { type Framework, frameworks } from "../../../published/shop-variables.ts";
import { Button, CodeBlock, Select } from "./controls.tsx";
import { harness, networkNames } from "./local-service.ts";
import { setupOf } from "./shop-files.ts";

/** What a reader has chosen stays chosen wherever it is shown. */
const framework = signal<Framework>("express");
const chosen = signal("");

/** A shop for this facilitator in one's framework, and a buyer: all that is to be typed and pasted. */
export function ShopConfig() {
  if (harness.value === null) return null;
  const { facilitator, organization, networks, payers } = harness.value;
  const name = chosen.value || networkNames.value[0] || "";
  const network = networks[name];
  if (network === undefined) return null;
  const parts = setupOf(framework.value, {
    ...{ url: facilitator.url, apiKey: organization.apiKey, payerKey: payers.funded?.privateKey },
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
        <code>npx x402-facilitator-kit init my-shop --framework {framework.value}</code> writes all of this,
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
