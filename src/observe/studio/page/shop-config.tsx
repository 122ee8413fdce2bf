import { signal } from "@preact/signals";
import { Button, CodeBlock, CodeLine, Select } from "./controls.tsx";
import { harness, networkNames } from "./local-service.ts";
import { type Framework, frameworks, installOf, shopOf } from "./shop-snippets.ts";

/** What a reader has chosen stays chosen wherever it is shown. */
const framework = signal<Framework>("express");
const chosen = signal("");

/** How a shop is configured for this facilitator, in one's framework. */
export function ShopConfig() {
  if (harness.value === null) return null;
  const { facilitator, organization, networks } = harness.value;
  const name = chosen.value || networkNames.value[0] || "";
  const network = networks[name];
  if (network === undefined) return null;
  const { caip2, payTo, asset } = network;
  const view = { url: facilitator.url, apiKey: organization.apiKey, caip2, payTo, asset };
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
      <CodeLine name="the command" text={installOf(framework.value)} />
      <CodeBlock name="the configuration" text={shopOf(framework.value, view)} />
    </div>
  );
}
