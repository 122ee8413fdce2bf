import { computed, signal } from "@preact/signals";

/** The views of the page. Each has a URL: `/studio`, `/studio/payments/ID`, `/studio/chains` and so on. */
export const views = ["payments", "channels", "chains", "faults", "setup"] as const;

export type View = (typeof views)[number];

type Route = { view: View; id: string | null };

const base = "/studio";

const route = signal<Route>(readRoute());

export const view = computed(() => route.value.view);

/** The payment whose details are shown. */
export const selectedId = computed(() => route.value.id);

function readRoute(): Route {
  const [, name, id] = /^\/studio\/([^/]+)(?:\/(.+))?$/.exec(location.pathname) ?? [];
  const found = views.find((one) => one === name) ?? "payments";
  if (found === "payments" && id !== undefined) return { view: found, id: decode(id) };
  // The judge's reports link to a payment by hash.
  const hash = location.hash.slice(1);
  if (name === undefined && hash !== "") return { view: "payments", id: decode(hash) };
  return { view: found, id: null };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function pathOf({ view, id }: Route): string {
  if (id !== null) return `${base}/payments/${encodeURIComponent(id)}`;
  return view === "payments" ? base : `${base}/${view}`;
}

/** The URL of a view, for links; the list's filters are kept. */
export function hrefOf(view: View, id: string | null = null): string {
  return pathOf({ view, id }) + (view === "payments" ? location.search : "");
}

function goTo(next: Route, { replaces = false } = {}): void {
  const href = hrefOf(next.view, next.id);
  if (replaces) history.replaceState(null, "", href);
  else if (href !== location.pathname + location.search || location.hash !== "") {
    history.pushState(null, "", href);
  }
  route.value = next;
}

export function show(view: View): void {
  goTo({ view, id: null });
}

/** Shows a payment's details, or none. With `replaces`, Back does not return to the payment shown before. */
export function select(id: string | null, options?: { replaces?: boolean }): void {
  goTo({ view: "payments", id }, options);
}

/** Writes the filters into the URL. */
export function writeQuery(query: URLSearchParams): void {
  const search = query.size === 0 ? "" : `?${query}`;
  if (search === location.search) return;
  history.replaceState(null, "", location.pathname + search + location.hash);
}

/** Calls the listener after Back or Forward. */
export function followHistory(onMove: () => void): void {
  const moved = () => {
    route.value = readRoute();
    onMove();
  };
  addEventListener("popstate", moved);
  addEventListener("hashchange", moved);
  if (location.hash !== "") goTo(route.value, { replaces: true });
}
