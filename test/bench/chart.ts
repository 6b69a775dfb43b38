/** One pair of bars. */
export interface Bars {
  readonly label: string;
  readonly ours: number;
  readonly yardstick: number;
  readonly unit: string;
  /** The share of the yardstick that is the goal. */
  readonly goal: number;
}

/** Of all text. */
export const INK = "#1f2328";
const ROW_HEIGHT = 46;
const LABEL_WIDTH = 300;
const BAR_WIDTH = 360;
const WIDTH = LABEL_WIDTH + BAR_WIDTH + 150;
const TOP = 44;

/** An SVG in which each bar is a share of the yardstick's, with a mark at the goal; readable on light and dark ground. */
export function chartOf(title: string, rows: readonly Bars[]): string {
  const height = TOP + rows.length * ROW_HEIGHT + 10;
  const most = Math.max(1, ...rows.map(({ ours, yardstick }) => ours / yardstick));
  const body = rows.map((row, index) => rowOf(row, TOP + index * ROW_HEIGHT, BAR_WIDTH / most));
  return pictureOf(title, WIDTH, height, body);
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

function rowOf({ label, ours, yardstick, unit, goal }: Bars, y: number, full: number): string {
  const share = ours / yardstick;
  const color = share >= goal ? "#1a7f37" : "#bf8700";
  return [
    `<text x="16" y="${y + 20}" fill="${INK}">${escaped(label)}</text>`,
    `<rect x="${LABEL_WIDTH}" y="${y + 24}" width="${round(full)}" height="8" fill="#d0d7de"/>`,
    `<rect x="${LABEL_WIDTH}" y="${y + 6}" width="${round(full * share)}" height="16" fill="${color}"/>`,
    `<line x1="${round(LABEL_WIDTH + full * goal)}" x2="${round(LABEL_WIDTH + full * goal)}" y1="${y + 2}" y2="${y + 34}" stroke="${INK}" stroke-dasharray="2 2"/>`,
    `<text x="${round(LABEL_WIDTH + full * Math.max(share, 1) + 8)}" y="${y + 20}" fill="${INK}">${Math.round(ours).toLocaleString("en")} ${escaped(unit)}, ${share.toFixed(2)}</text>`,
  ].join("\n");
}

/** To a tenth: finer is not seen. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A text as XML has it. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
