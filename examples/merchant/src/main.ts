import { createShop } from "./shop.ts";

const { PORT, X402_FACILITATOR_URL, X402_API_KEY, X402_PAY_TO } = process.env;

createShop({
  facilitatorUrl: X402_FACILITATOR_URL ?? "http://127.0.0.1:4402/v1",
  apiKey: X402_API_KEY ?? "",
  payTo: X402_PAY_TO ?? "",
}).listen(Number(PORT ?? 3000), "127.0.0.1");
