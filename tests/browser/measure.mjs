// What the page costs: the time until a page of 1,000 entities with 20 properties is there, the wait while a filter is typed, the memory of
// the program after many pages, and the bytes of the page. `tests/browser/run.sh --measure` runs it, with the release build.

import { shows } from "./harness/page.mjs";
import { Explore, Server } from "./harness/programs.mjs";
import { shared, windowOf } from "./harness/flow.mjs";

const RUNS = 15;
const PAGES = 200;
/** The rows that a window of 900 pixels shows. */
const ROWS_SHOWN = 26;
const median = (numbers) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const range = (numbers) => `${Math.round(Math.min(...numbers))} to ${Math.round(Math.max(...numbers))}, median ${Math.round(median(numbers))}`;

const server = await Server.start();
const explore = await Explore.start(await server.fresh());
const { context, page } = await windowOf(explore.origin);
await page.goto(explore.opening);
await page.waitForURL(`${explore.origin}/`);
const memory = [await explore.memory()];

// The page measures itself: a driver that asks it from another process would add its own time. The screen is complete when the browser has
// shown the last row that fits, which Element Timing tells; the row is marked as soon as the browser has read it.
await page.addInitScript((row) => {
  globalThis.times = {};
  const { times } = globalThis;
  new PerformanceObserver((list) => (times.first ??= list.getEntries()[0].renderTime)).observe({ type: "element" });
  new MutationObserver((_, observer) => {
    const grid = document.getElementById("grid");
    grid?.tBodies[0]?.rows[row]?.cells[2]?.setAttribute("elementtiming", "row");
    if (grid?.dataset.complete === undefined) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => (times.all = performance.now())));
  }).observe(document, { subtree: true, childList: true, attributeFilter: ["data-complete"] });
  addEventListener("load", () => (times.ready = performance.now()));
}, ROWS_SHOWN - 1);
const shown = async () => {
  await page.waitForFunction(() => globalThis.times.first && globalThis.times.all);
  return page.evaluate(() => {
    const { responseStart, responseEnd, decodedBodySize } = performance.getEntriesByType("navigation")[0];
    // The foot says how long the service took.
    const service = Number(/, (\d+) ms/u.exec(document.querySelector(".foot").textContent)[1]);
    const since = (name) => globalThis.times[name] - responseStart - service;
    return { first: since("first"), ready: since("ready"), all: since("all"), response: responseEnd - responseStart, service, bytes: decodedBodySize };
  });
};
const times = [];
for (let run = 0; run < RUNS; run += 1) {
  await page.goto(`${explore.origin}/t/Big`, { waitUntil: "load" });
  times.push(await shown());
}
const of = (name) => times.map((time) => time[name]);
console.log(`${RUNS} pages of 1,000 entities with 20 properties, ${times[0].bytes} bytes of HTML; milliseconds:`);
console.log(`  the service answers the program in ${range(of("service"))}`);
console.log(`  the browser has the whole response after ${range(of("response"))}`);
console.log(`  the screen is complete ${range(of("first"))} after the answer of the service`);
console.log(`  the scripts are ready ${range(of("ready"))} after it`);
console.log(`  all rows are in the table ${range(of("all"))} after it`);

// How long the page does not answer while a filter is typed, and from a key to the next frame.
await page.goto(`${explore.origin}/t/Big`);
await shows(page, "Big");
await shown();
await page.evaluate(() => {
  globalThis.tasks = [];
  globalThis.keys = [];
  new PerformanceObserver((list) => globalThis.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  document.getElementById("filter").addEventListener("keydown", () => {
    const start = performance.now();
    requestAnimationFrame(() => setTimeout(() => globalThis.keys.push(performance.now() - start)));
  });
});
await page.locator("#filter").focus();
await page.keyboard.type("Prop1 ge 100 and Prop3 lt 2000 or not (Prop5 eq 7)", { delay: 40 });
const { tasks, keys } = await page.evaluate(() => ({ tasks: globalThis.tasks, keys: globalThis.keys }));
console.log(`${keys.length} keys typed in the filter, from a key to the next frame: ${range(keys)} ms; tasks beyond 50 ms: ${tasks.length}`);

for (let count = 0; count < PAGES; count += 1) {
  const response = await context.request.get(`${explore.origin}/t/Big`);
  await response.text();
  if (count === PAGES / 2 || count === PAGES - 1) memory.push(await explore.memory());
}
console.log(`memory of the program at its start, after ${PAGES / 2} and after ${PAGES} pages: ${memory.map((bytes) => (bytes / 2 ** 20).toFixed(1)).join(", ")} MiB`);

const files = await page.locator("link[href], script[src]").evaluateAll((all) => all.map((it) => it.href || it.src));
let bytes = 0;
for (const file of files) bytes += (await (await context.request.get(file)).body()).length;
console.log(`bytes of the stylesheet, the icon and ${files.length - 2} scripts: ${bytes}`);

await context.close();
await (await shared()).close();
await explore.stop();
server.stop();
