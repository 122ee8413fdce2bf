const deep = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

/** JSON values that are not valid in a payment, and that break code which takes them for strings. */
export const hostileValues: readonly unknown[] = [
  ...[null, true, -1, 1.5, 1e308, 12345678901234567890n.toString(), "", "0x", "\ud800", "\udc00\u0000", "🫠"],
  ...[{ toString: "x" }, [{ toString: "x" }], { toString: null, valueOf: null }, { valueOf: {} }],
  ...[{ toJSON: "x" }, JSON.parse('{"__proto__":{"toString":null}}'), { constructor: null }, { name: {} }],
  ...["__proto__", "constructor", "toString", "$".repeat(200), "9".repeat(1_000), `1${"0".repeat(77)}`],
  ...[[], {}, [[]], [null], Array(200).fill({ toString: 1 }), deep(1_500), { length: -1 }, "{{", "%s%d%j"],
];

/** A body with each of its members in turn replaced by this value, at every depth. */
export function* replacedEverywhere(body: unknown, value: unknown): Generator<unknown> {
  yield value;
  if (typeof body !== "object" || body === null) return;
  for (const name of Object.keys(body)) {
    for (const changed of replacedEverywhere(Reflect.get(body, name), value)) {
      yield Array.isArray(body) ? body.with(Number(name), changed) : { ...body, [name]: changed };
    }
  }
}
