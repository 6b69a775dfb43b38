/** One bar beside the yardstick's. */
export interface Bar {
  readonly label: string;
  /** What was measured, with its unit. */
  readonly amount: string;
  /** The length of the bar, in lengths of the yardstick's. */
  readonly ratio: number;
  /** The least that `ratio` should be. */
  readonly goal: number;
}

/** Of all text. */
export const INK = "#1f2328";
const ROW_HEIGHT = 50;
const MARGIN = 16;
const WIDTH = 810;
const BAR_WIDTH = WIDTH - 2 * MARGIN;
/** The longest bar, in lengths of the yardstick's: beside a longer one the others could not be told apart. */
const MAX_RATIO = 2.5;
const TOP = 64;

/**
 * An SVG with a bar for each ratio above the yardstick's, and a mark at the goal; readable on light and dark ground. A
 * bar that is too long is cut, and ends in a tip.
 */
export function chartOf(title: string, note: string, bars: readonly Bar[]): string {
  const height = TOP + bars.length * ROW_HEIGHT + 6;
  const most = Math.min(MAX_RATIO, Math.max(1, ...bars.map(({ ratio }) => ratio)));
  const rows = bars.map((bar, index) => rowOf(bar, TOP + index * ROW_HEIGHT, BAR_WIDTH / most));
  return pictureOf(title, WIDTH, height, [`<text x="${MARGIN}" y="46" fill="${INK}">${escaped(note)}</text>`, ...rows]);
}

/** An SVG of so many pixels with a title, on a white ground of its own. */
export function pictureOf(title: string, width: number, height: number, body: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="13" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff" rx="6"/>`,
    `<text x="16" y="26" font-size="15" font-weight="600" fill="${INK}">${escaped(title)}</text>`,
    ...body,
    "</svg>",
    "",
  ].join("\n");
}

function rowOf({ label, amount, ratio, goal }: Bar, y: number, full: number): string {
  const color = ratio >= goal ? "#1a7f37" : "#bf8700";
  const goalX = round(MARGIN + full * goal);
  return [
    `<text x="${MARGIN}" y="${y + 14}" fill="${INK}">${escaped(label)}</text>`,
    `<text x="${WIDTH - MARGIN}" y="${y + 14}" text-anchor="end" fill="${INK}">${escaped(amount)}, ratio ${ratio.toFixed(2)}</text>`,
    `<rect x="${MARGIN}" y="${y + 34}" width="${round(full)}" height="6" fill="#d0d7de"/>`,
    barOf(y + 20, full, ratio, color),
    `<line x1="${goalX}" x2="${goalX}" y1="${y + 18}" y2="${y + 42}" stroke="${INK}" stroke-dasharray="2 2"/>`,
  ].join("\n");
}

function barOf(y: number, full: number, ratio: number, color: string): string {
  if (ratio <= MAX_RATIO) return `<rect x="${MARGIN}" y="${y}" width="${round(full * ratio)}" height="14" fill="${color}"/>`;
  const end = round(MARGIN + full * MAX_RATIO);
  return `<path d="M${MARGIN} ${y}H${end - 10}L${end} ${y + 7}L${end - 10} ${y + 14}H${MARGIN}Z" fill="${color}"/>`;
}

/** To a tenth: finer is not seen. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A text as XML has it. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
