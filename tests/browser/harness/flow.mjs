// A flow: what a person does with the page, in a browser that is shared, with a program, a profile and tables of its own. A page that does
// what it must not in the meantime (an error in the console, a request to another host) fails the flow.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, test } from "node:test";

import { HANDS } from "./hand.mjs";
import { Azurite, Explore, Server } from "./programs.mjs";
import { WIDE, screen } from "./screen.mjs";

const { chromium } = createRequire(import.meta.url)("playwright-core");
const isAll = process.env.TABLESDK_FLOWS === "all";
/** More than any step takes that a person waits for. */
const TIMEOUT = 10_000;

let browser;
let server;
let azurite;
/** Azurite has an account for each flow. */
const MOST_ACCOUNTS = 60;

/** The browser, which the first flow starts. */
export async function shared() {
  browser ??= await chromium.launch({ executablePath: process.env.TABLESDK_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
  return browser;
}

export async function ourServer() {
  server ??= await Server.start();
  return server;
}

async function ourAzurite() {
  azurite ??= await Azurite.start(process.env.TABLESDK_AZURITE, MOST_ACCOUNTS);
  return azurite;
}

after(async () => {
  await browser?.close();
  server?.stop();
  azurite?.stop();
});

/** A window with a profile of its own, and what the page does wrong in it. */
export async function windowOf(origin, { script = true } = {}) {
  const context = await (await shared()).newContext({ viewport: WIDE, javaScriptEnabled: script, reducedMotion: "reduce", timezoneId: "Asia/Kolkata", locale: "en-US" });
  context.setDefaultTimeout(TIMEOUT);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
  const wrong = [];
  const watch = (page) => {
    page.on("console", (message) => {
      // The browser reports a response that is an error by itself.
      const isResponse = message.text().startsWith("Failed to load resource");
      if (["error", "warning"].includes(message.type()) && !isResponse) wrong.push(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => {
      // The question before changed fields are left is the page's own.
      if (dialog.type() !== "beforeunload") wrong.push(`dialog: ${dialog.message()}`);
      dialog.dismiss().catch(() => {});
    });
  };
  context.on("page", watch);
  context.on("request", (request) => {
    const isOwn = new URL(request.url()).origin === origin || request.url().startsWith("data:");
    if (!isOwn) wrong.push(`a request to ${request.url()}`);
  });
  context.on("response", (response) => {
    if (response.status() === 500) wrong.push(`500 for ${response.url()}`);
  });
  return { context, page: await context.newPage(), wrong };
}

/**
 * flow("a person does this", options, async ({ page, hand, … }) => { … })
 *
 * Options: `quick`, the flow is one of the daily ones. `azurite`, it is done on Azurite, too. `hands: 1`, it is done by mouse alone, since
 * its steps are those of other flows. `timeout`, milliseconds of one that compiles. `words`, arguments of the program. `script: false`, without scripts.
 */
export function flow(name, options, body) {
  if (!isAll && !options.quick) return;
  const targets = [ourServer];
  if (isAll && options.azurite && process.env.TABLESDK_AZURITE) targets.push(ourAzurite);
  for (const target of targets) {
    for (const Hand of HANDS.slice(0, options.hands ?? HANDS.length)) {
      const where = [Hand.name === "Keyboard" ? "by keyboard" : "", target === ourAzurite ? "on Azurite" : ""].filter(Boolean).join(", ");
      test(where === "" ? name : `${name} (${where})`, { timeout: options.timeout ?? 12 * TIMEOUT }, () => run(target, Hand, options, body));
    }
  }
}

async function run(target, Hand, options, body) {
  const service = await target();
  const account = await service.fresh();
  const words = typeof options.words === "function" ? options.words(service) : (options.words ?? []);
  const explore = await Explore.start(account, words);
  const { context, page, wrong } = await windowOf(explore.origin, options);
  const hand = new Hand(page);
  try {
    await page.goto(explore.opening);
    // It goes on by itself.
    await page.waitForURL(`${explore.origin}/`);
    await body({
      page, hand, explore, service, account, context,
      isAzurite: target === ourAzurite,
      // Pictures and checks once: the other hand sees the same.
      screen: async (name) => {
        if (Hand === HANDS[0] && target === ourServer && options.script !== false) await screen(page, name);
      },
    });
    assert.deepEqual(wrong, []);
  } catch (error) {
    if (process.env.TABLESDK_PICTURES !== undefined) await page.screenshot({ path: `${process.env.TABLESDK_PICTURES}/failed.png` }).catch(() => {});
    error.message += `\nat ${page.url()}${wrong.length === 0 ? "" : `\n${wrong.join("\n")}`}${explore.errors === "" ? "" : `\n${explore.errors}`}`;
    throw error;
  } finally {
    // The browser does not always close a page that is on its way to another one.
    await page.goto("about:blank").catch(() => {});
    await context.close();
    await explore.stop();
  }
}
