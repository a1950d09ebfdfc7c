// What a person does with a server for tests.

import assert from "node:assert/strict";

import { flow } from "../harness/flow.mjs";
import { rows } from "../harness/page.mjs";
import { tables } from "../harness/programs.mjs";

const KIT = { words: (server) => ["--test-endpoint", server.kit.testEndpoint] };
const button = (page, name) => page.getByRole("button", { name, exact: true });

flow("a person watches requests as they come", { ...KIT, quick: true }, async ({ page, screen, explore, account }) => {
  await page.goto(`${explore.origin}/bench/requests`);
  await button(page, "live").waitFor();
  await tables(account, ["get", "Employees", "Legal", "000103"]);
  await page.getByText("Legal / 000103").waitFor();
  await page.locator("tbody td", { hasText: "Legal / 000103" }).last().click();
  if (page.url().includes("selected")) await page.goBack();
  await page.keyboard.press("Control+c");
  await page.waitForFunction(async () => (await navigator.clipboard.readText()) === "Legal / 000103");
  await screen("bench-requests");
});

flow("a person throttles the next request, and sees what the page says then", { ...KIT, quick: true }, async ({ page, hand, screen, explore, service }) => {
  await service.kit.inject({ kind: "error", code: "ServerBusy", retryAfterSeconds: 2 }, { operations: ["QueryEntities"] });
  await page.goto(`${explore.origin}/t/Employees?pk=Legal`);
  await page.getByText("throttled", { exact: true }).waitFor();
  await page.goto(`${explore.origin}/bench/faults`);
  await screen("bench-faults");
  await hand.press(page.getByRole("button", { name: /^Remove rule/u }).first());
  await page.getByRole("button", { name: /^Remove rule/u }).first().waitFor({ state: "detached" });
});

flow("a person waits until the service is no longer busy", { ...KIT, hands: 1 }, async ({ page, screen, explore, service }) => {
  const busy = (seconds) => service.kit.inject({ kind: "error", code: "ServerBusy", retryAfterSeconds: seconds }, { operations: ["QueryEntities"] });
  await busy(2);
  await page.goto(`${explore.origin}/t/Employees?pk=Legal`);
  await page.getByText("This page asks again in 2 seconds.").waitFor();
  await service.kit.clearFaults();
  await rows(page).first().waitFor();
  await busy(300);
  await page.reload();
  await page.getByText("This page asks again in 300 seconds.").waitFor();
  await screen("throttled");
});

flow("a person sees that the page waits for the service", { ...KIT, hands: 1 }, async ({ page, screen, explore, service }) => {
  await service.kit.inject({ kind: "delay", seconds: 60 }, { operations: ["QueryEntities"] });
  await page.goto(`${explore.origin}/t/Employees?pk=Legal`, { waitUntil: "commit" });
  await page.getByText("Waiting for the service…").waitFor();
  await screen("loading");
  await service.kit.clearFaults();
  await rows(page).first().waitFor();
});

flow("a person injects a fault by one press", KIT, async ({ page, hand, explore, service }) => {
  await page.goto(`${explore.origin}/bench/requests`);
  const sent = page.waitForResponse((response) => response.request().method() === "POST");
  await hand.press(button(page, "Throttle 503"));
  await sent;
  const { length } = await service.kit.call("GET", "/faults");
  assert.equal(length, 1);
});

flow("a person moves the clock", KIT, async ({ page, hand, screen, explore, account, service }) => {
  await page.goto(`${explore.origin}/bench/clock`);
  await screen("bench-clock");
  await hand.press(page.locator("main").getByRole("button", { name: "Freeze" }));
  await page.getByText(/frozen/u).first().waitFor();
  assert.equal((await service.kit.call("GET", "/clock")).isFrozen, true);
  // A signature for half an hour is taken, and is not an hour later.
  const signature = (await tables(account, ["sas", "Employees", "--permissions", "r", "--for", "30m"])).trim();
  const signed = `${account.match(/TableEndpoint=([^;]+)/u)[1]}/Employees()?$top=1&${signature.replace(/^.*\?/u, "")}`;
  const read = async () => (await fetch(signed, { headers: { accept: "application/json", "x-ms-version": "2019-02-02" } })).status;
  assert.equal(await read(), 200);
  const sent = page.waitForResponse((response) => response.request().method() === "POST");
  await hand.press(page.getByRole("button", { name: "1 hour" }));
  await sent;
  assert.equal(await read(), 403);
});

flow("a person takes a snapshot, breaks a table, and restores it", { ...KIT, quick: true }, async ({ page, hand, screen, explore, account, service }) => {
  const before = await service.kit.dump();
  await page.goto(`${explore.origin}/bench/snapshots`);
  await hand.press(button(page, "Take a snapshot"));
  const restore = page.getByRole("link", { name: /^Restore snapshot/u });
  await restore.nth(1).waitFor();
  await tables(account, ["rm", "Employees", "Legal", "000103"]);
  assert.notEqual(await service.kit.dump(), before);
  await screen("bench-snapshots");
  // That of the harness is the other one.
  await hand.press(restore.last());
  await screen("bench-restore");
  await hand.press(page.getByRole("button", { name: /^Restore snapshot/u }));
  await page.getByRole("link", { name: "Keep the tables" }).waitFor({ state: "detached" });
  assert.equal(await service.kit.dump(), before);
});

flow("a person reads the lints", { ...KIT, hands: 1 }, async ({ page, screen, explore, account }) => {
  await tables(account, ["query", "Employees", "--filter", "LastName eq 'Kwok'", "--scan"]);
  await page.goto(`${explore.origin}/bench/lints`);
  await page.locator("#main").waitFor();
  await screen("bench-lints");
});
