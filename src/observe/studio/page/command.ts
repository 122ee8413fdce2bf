/** How the command is called where this service was started; the service writes it into the page. */
export const command =
  document.querySelector<HTMLMetaElement>('meta[name="command"]')?.content ?? "npx x402-kit";

/** Where a command finds this service, if that is not where it looks anyway. */
export const atThisPlace = location.origin === "http://127.0.0.1:4402" ? "" : ` --url ${location.origin}`;
