import type { ComponentChildren } from "preact";

const shapes = {
  settled: <path d="m3.5 8.5 3 3 6-7" />,
  valid: <path d="M8 2.5 13 4.5v3.5c0 3-2.2 4.8-5 5.5-2.8-.7-5-2.5-5-5.5V4.5z" />,
  refused: <path d="m4 4 8 8m0-8-8 8" />,
  undecided: <path d="M8 3.5v5.5m0 3v.4" />,
  open: <path d="M8 2.5a5.5 5.5 0 1 1-5.5 5.5" />,
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </>
  ),
  to: <path d="M3 8h9.5m-3.5-3.5 3.5 3.5-3.5 3.5" />,
  down: <path d="m4.5 6.5 3.5 3.5 3.5-3.5" />,
  back: <path d="M9.5 3.5 5 8l4.5 4.5" />,
  close: <path d="m4 4 8 8m0-8-8 8" />,
  fault: <path d="M9 2 3.5 9H8l-1 5 5.5-7H8z" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4" />
      <path d="m10 10 3.5 3.5" />
    </>
  ),
} as const satisfies Readonly<Record<string, ComponentChildren>>;

/** A sign of 16 px, beside a text or a label that says the same. */
export function Icon({ name }: { name: keyof typeof shapes }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      {shapes[name]}
    </svg>
  );
}
