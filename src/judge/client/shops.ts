import { closeAtOnce, listenOnLoopback } from "../../util/loopback.ts";
import { http } from "../../util/node-http.ts";
import type { CaseShop } from "./case-shop.ts";

/** The shops of all cases, each under its own path. */
export type Shops = AsyncDisposable & {
  /** The URL of the shop with this name. */
  resourceOf(name: string): string;
  open(name: string, shop: CaseShop): void;
};

/** Listens for the clients of all cases. */
export async function openShops(): Promise<Shops> {
  const shops = new Map<string, CaseShop>();
  const server = http.createServer((request, response) => {
    const [, network = "", name = "", path = ""] = (request.url ?? "").split(/[/?]/);
    const shop = shops.get(`${network}/${name}`);
    if (shop === undefined) response.writeHead(404).end();
    else shop.handle(request, response, path).catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server);
  return {
    resourceOf: (name) => `http://127.0.0.1:${port}/${name}/report`,
    open: (name, shop) => void shops.set(name, shop),
    [Symbol.asyncDispose]: () => closeAtOnce(server),
  };
}
