// What a person does to change entities. Nothing is sent before it was reviewed.

import assert from "node:assert/strict";

import { flow } from "../harness/flow.mjs";
import { tables } from "../harness/programs.mjs";
import { rows } from "../harness/page.mjs";

const BOTH = { azurite: true };
const entity = async (account, table, pk, rk) => JSON.parse(await tables(account, ["get", table, pk, rk, "--output", "json"]));
const merge = (account, table, object) => tables(account, ["put", table, "--merge"], JSON.stringify(object));
const stored = async (account, table, pk) => (await tables(account, ["query", table, "--partition", pk, "--output", "json"])).trim().split("\n").filter(Boolean).map((line) => JSON.parse(line));
const value = (page, name) => page.getByLabel(`Value of ${name}`, { exact: true });
const button = (page, name) => page.getByRole("button", { name, exact: true });

/** Opens an entity in the panel beside the grid, as the hand does it. */
async function opens(page, hand, explore, table, pk, rk) {
  await page.goto(`${explore.origin}/t/${table}?pk=${encodeURIComponent(pk)}`);
  const row = rows(page).filter({ has: page.getByRole("link", { name: rk, exact: true }) });
  if (hand.name === "keyboard") {
    await rows(page).first().waitFor();
    await hand.reach(page.locator("td[tabindex='0']"));
    const index = await row.evaluate((it) => it.sectionRowIndex);
    for (let step = 0; step < index; step += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
  } else {
    await row.getByRole("link").click();
  }
  await page.locator("#panel #entity").waitFor();
}

flow("a person edits two properties, stages them, reviews the request and sends it", { ...BOTH, quick: true }, async ({ page, hand, screen, explore, account }) => {
  await opens(page, hand, explore, "Employees", "Sales", "000145");
  await screen("entity-panel");
  await hand.write(value(page, "Salary"), "58500.0");
  await hand.write(value(page, "LastName"), "Kwok-Lee");
  await hand.press(button(page, "Stage merge"));
  await page.getByText("1 staged change", { exact: true }).waitFor();
  await screen("entity-staged");
  assert.notEqual((await entity(account, "Employees", "Sales", "000145")).Salary, 58500);
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await page.getByText("MERGE Employees(PartitionKey='Sales',RowKey='000145')").waitFor();
  await screen("review");
  await hand.press(button(page, "Send 1 change"));
  await page.getByText("1 of 1 stored").waitFor();
  await screen("review-sent");
  const review = page.url();
  await page.goto(`${explore.origin}/history`);
  await page.getByRole("cell", { name: "Employees: 1 merge" }).waitFor();
  await screen("history-sent");
  await page.goto(review);
  const now = await entity(account, "Employees", "Sales", "000145");
  assert.deepEqual([now.Salary, now.LastName, now.BadgeId], [58500, "Kwok-Lee", "9007199254741392"]);
});

flow("a person meets a newer version and applies the change to it", { ...BOTH, quick: true }, async ({ page, hand, screen, explore, account }) => {
  await opens(page, hand, explore, "Employees", "IT", "000106");
  await hand.write(value(page, "Salary"), "75500.0");
  await hand.press(button(page, "Stage merge"));
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await button(page, "Send 1 change").waitFor();
  await merge(account, "Employees", { PartitionKey: "IT", RowKey: "000106", "Salary@odata.type": "Edm.Double", Salary: 74000.5, LastName: "Changed" });
  await hand.press(button(page, "Send 1 change"));
  await page.locator("h2:focus", { hasText: "changed since" }).waitFor();
  await page.getByRole("cell", { name: "74000.5" }).waitFor();
  await screen("review-conflict");
  await hand.press(button(page, "Stage Salary on the stored version"));
  await page.locator("h2:focus", { hasText: "to send" }).waitFor();
  await page.getByText("Salary: 74000.5 → 75500.0").waitFor();
  assert.equal(await page.getByText(/of 1 sent/u).count(), 0);
  await screen("review-decided");
  await hand.press(button(page, "Send 1 change"));
  await page.locator("[role=status]:focus", { hasText: "1 of 1 stored" }).waitFor();
  const now = await entity(account, "Employees", "IT", "000106");
  assert.deepEqual([now.Salary, now.LastName], [75500, "Changed"]);
});

flow("a person meets a newer version and keeps it, or replaces it", { ...BOTH, hands: 1 }, async ({ page, hand, explore, account }) => {
  for (const [rk, decision, salary, name] of [["000109", "Keep the stored version", 1, "Changed"], ["000112", "Stage replace with mine", 2, undefined]]) {
    await opens(page, hand, explore, "Employees", "IT", rk);
    await hand.write(value(page, "Salary"), "2.0");
    await hand.press(button(page, "Stage merge"));
    await page.getByText("1 staged change", { exact: true }).waitFor();
    await merge(account, "Employees", { PartitionKey: "IT", RowKey: rk, "Salary@odata.type": "Edm.Double", Salary: 1, Added: "Changed" });
    await hand.press(page.getByRole("link", { name: "Review", exact: true }));
    await hand.press(button(page, "Send 1 change"));
    await hand.press(button(page, decision));
    if (salary === 2) {
      await hand.press(button(page, "Send 1 change"));
      await page.getByText("1 of 1 stored").waitFor();
    } else {
      await page.getByText("changed since").waitFor({ state: "detached" });
    }
    const now = await entity(account, "Employees", "IT", rk);
    assert.deepEqual([now.Salary, now.Added], [salary, name]);
  }
});

flow("a person inserts an entity whose keys are taken, and changes the keys", { ...BOTH, hands: 1 }, async ({ page, hand, screen, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000148`);
  await hand.press(page.getByRole("link", { name: "Clone" }));
  const row = page.getByLabel(/^RowKey/u);
  await hand.write(row, "000151");
  await hand.press(button(page, "Stage insert"));
  await page.getByText("if no entity has its keys").waitFor();
  await page.locator("h2").first().click();
  await page.keyboard.press("r");
  await page.locator("h2:focus", { hasText: "to send" }).waitFor();
  const before = await entity(account, "Employees", "Sales", "000151");
  await page.keyboard.press("Control+Enter");
  await page.locator("h2:focus", { hasText: "already exists" }).waitFor();
  await screen("review-insert-taken");
  await hand.press(page.getByRole("link", { name: "Change the keys" }));
  await hand.write(row, "900001");
  await hand.press(button(page, "Stage insert"));
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await hand.press(button(page, "Send 1 change"));
  await page.getByText("1 of 1 stored").waitFor();
  assert.deepEqual(await entity(account, "Employees", "Sales", "000151"), before);
  assert.equal((await entity(account, "Employees", "Sales", "900001")).RowKey, "900001");
});

flow("a person discards staged changes by mistake, and restores them", { ...BOTH }, async ({ page, hand, screen, explore }) => {
  for (const rk of ["000145", "000148"]) {
    await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=${rk}`);
    await hand.write(value(page, "Age"), "99");
    await hand.press(button(page, "Stage merge"));
    await page.getByText(/staged merge/u).waitFor();
  }
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await page.getByText("2 staged changes", { exact: true }).waitFor();
  const discard = button(page.locator("#bar"), "Discard");
  await hand.press(discard);
  await page.getByText("2 changes were discarded.").waitFor();
  // The page is still that of the table.
  await rows(page).first().waitFor();
  await screen("entities-discarded");
  await page.locator("#bar button:focus", { hasText: "Restore" }).waitFor();
  await hand.press(button(page, "Restore"));
  await page.getByText("2 staged changes", { exact: true }).waitFor();
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await hand.press(button(page, 'Discard the change of ("Sales", "000145")'));
  await page.getByText("1 change was discarded.").waitFor();
  await screen("review-discarded");
  await hand.press(button(page, "Restore"));
  await button(page, "Send 2 changes").waitFor();
});

flow("a person sends five changes of which one fails, and nothing is stored", { ...BOTH }, async ({ page, hand, screen, explore, account }) => {
  const keys = ["000100", "000103", "000106", "000109", "000112"];
  for (const rk of keys) {
    await page.goto(`${explore.origin}/t/Employees/e?pk=Finance&rk=${rk}`);
    await hand.write(value(page, "Age"), "99");
    await hand.press(button(page, "Stage merge"));
    await page.getByText(/staged merge/u).waitFor();
  }
  await page.getByText("5 staged changes", { exact: true }).waitFor();
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await page.getByText("5 changes, one request").waitFor();
  await screen("review-transaction");
  await tables(account, ["rm", "Employees", "Finance", "000106"]);
  await hand.press(button(page, "Send 5 changes"));
  await page.getByText(/nothing was stored/u).first().waitFor();
  await screen("review-transaction-failed");
  const now = await stored(account, "Employees", "Finance");
  assert.ok(now.every((each) => each.Age !== 99));
  // Without the one that fails, the others are sent.
  await hand.press(button(page, "Leave it deleted"));
  await hand.press(button(page, "Send 4 changes"));
  await page.getByText("4 of 4 stored").waitFor();
  assert.equal((await stored(account, "Employees", "Finance")).filter((each) => each.Age === 99).length, 4);
});

flow("a person deletes many entities", { ...BOTH }, async ({ page, hand, screen, explore, account }) => {
  await page.goto(`${explore.origin}/t/Reviews?pk=mgr_000100`);
  await rows(page).first().waitFor();
  if (hand.name === "keyboard") {
    await hand.reach(page.locator("td[tabindex='0']"));
    await page.keyboard.press("Space");
    for (let step = 0; step < 6; step += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+Space");
  } else {
    await rows(page).nth(6).getByRole("checkbox").check();
    await rows(page).nth(0).getByRole("checkbox").click({ modifiers: ["Shift"] });
  }
  await screen("entities-selected");
  await hand.press(button(page, "Stage 7 deletes"));
  await page.getByText("7 changes, one request").waitFor();
  assert.equal((await stored(account, "Reviews", "mgr_000100")).length, 12);
  await hand.press(button(page, "Send 7 changes"));
  await page.getByText("7 of 7 stored").waitFor();
  assert.equal((await stored(account, "Reviews", "mgr_000100")).length, 5);
});

flow("a person clones an entity under another key", { ...BOTH }, async ({ page, hand, screen, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000148`);
  await hand.press(page.getByRole("link", { name: "Clone" }));
  await page.getByRole("heading", { name: "New entity" }).waitFor();
  await hand.write(page.getByLabel(/^RowKey/u), "900000");
  await screen("entity-clone");
  await hand.press(button(page, "Stage insert"));
  await hand.press(page.getByRole("link", { name: "Review", exact: true }));
  await hand.press(button(page, "Send 1 change"));
  await page.getByText("1 of 1 stored").waitFor();
  const [from, to] = [await entity(account, "Employees", "Sales", "000148"), await entity(account, "Employees", "Sales", "900000")];
  for (const each of [from, to]) for (const name of ["odata.etag", "Timestamp", "RowKey"]) delete each[name];
  assert.deepEqual(to, from);
});

flow("a person mistypes a number and sees the rule", { hands: 1 }, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000148`);
  await hand.write(value(page, "Age"), "9007199254740993");
  await hand.press(button(page, "Stage merge"));
  await page.getByText("Nothing is staged.").waitFor();
  assert.equal(await value(page, "Age").inputValue(), "9007199254740993");
  await screen("entity-wrong");
});

flow("a person edits an entity as JSON without scripts", { quick: true, hands: 1, script: false }, async ({ page, explore, account }) => {
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000151`);
  await page.getByRole("link", { name: "JSON" }).click();
  const json = page.getByLabel("JSON of the entity");
  await json.fill((await json.inputValue()).replace(/"Active":\s*(?:true|false)/u, '"Active": false, "Note": "by hand"'));
  await button(page, "Stage merge").click();
  await page.getByRole("link", { name: "Review", exact: true }).click();
  await button(page, "Send 1 change").click();
  await page.getByText("1 of 1 stored").waitFor();
  assert.equal((await entity(account, "Employees", "Sales", "000151")).Note, "by hand");
});

flow("a person looks at an entity that the library keeps, and does not change it by mistake", { hands: 1 }, async ({ page, hand, screen, explore }) => {
  await page.goto(`${explore.origin}/t/EmployeesByEmail/e?pk=email&rk=ada0%40contoso.com`);
  await page.getByText("kept by the library").waitFor();
  await screen("entity-kept");
  // Without the switch, a field takes nothing.
  await assert.rejects(value(page, "Department").click({ timeout: 500 }));
  await hand.press(page.getByLabel("Write it anyway"));
  await hand.write(value(page, "Department"), "IT");
  await hand.press(button(page, "Stage merge"));
  await page.getByText("1 staged change", { exact: true }).waitFor();
});

flow("a person looks at entities that are awkward, one by one", { hands: 1 }, async ({ page, screen, explore }) => {
  const long = (letter) => letter.repeat(512);
  for (const [name, pk, rk] of [
    ["entity-64k", "long", "text"], ["entity-binary", "long", "binary"], ["entity-1k-keys", long("l"), long("m")], ["entity-no-properties", "none", "without properties"],
    ["entity-markup", "values", "markup <img src=x onerror=alert(1)>"], ["entity-bidi", "values", "bidi user\u202egnp.exe"], ["entity-numbers", "numbers", "edges"], ["entity-missing", "no", "such"],
  ]) {
    await page.goto(`${explore.origin}/t/Odd/e?pk=${encodeURIComponent(pk)}&rk=${encodeURIComponent(rk)}`);
    await page.locator("#main").waitFor();
    await screen(name);
  }
});

flow("a person reads, and cannot change anything, with --read-only", { hands: 1, quick: true, words: ["--read-only"] }, async ({ page, screen, explore }) => {
  await page.getByText("read only").first().waitFor();
  await page.goto(`${explore.origin}/t/Employees?pk=Sales`);
  await rows(page).first().waitFor();
  assert.equal(await page.getByRole("link", { name: "New entity" }).count(), 0);
  assert.equal(await page.getByRole("button", { name: /^Stage/u }).count(), 0);
  await screen("read-only");
  await page.goto(`${explore.origin}/t/Employees/e?pk=Sales&rk=000148`);
  await page.locator("#entity").waitFor();
  assert.equal(await page.getByRole("button", { name: /^Stage/u }).count(), 0);
  await screen("read-only-entity");
});

flow("a person opens another row while fields are changed, and loses none without a question", {}, async ({ page, hand, screen, explore }) => {
  await opens(page, hand, explore, "Employees", "Sales", "000145");
  const ask = page.locator("#panel .ask");
  const heading = page.locator("#panel h2");
  await hand.write(value(page, "Salary"), "1.5");
  await rows(page).nth(1).locator("td").nth(4).click();
  await ask.getByText("1 changed field is not staged").waitFor();
  await screen("entity-ask");
  assert.equal(await value(page, "Salary").inputValue(), "1.5");
  // What is typed next takes the question back.
  await hand.write(value(page, "Salary"), "2.5");
  await ask.waitFor({ state: "detached" });
  await value(page, "Salary").press("Escape");
  await ask.waitFor();
  let question;
  page.once("dialog", (dialog) => {
    question = dialog.type();
  });
  await page.reload({ timeout: 2000 }).catch(() => {});
  assert.equal(question, "beforeunload");
  assert.equal(await value(page, "Salary").inputValue(), "2.5");
  await value(page, "Salary").press("Escape");
  await page.locator("#panel").waitFor({ state: "detached" });
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TD");
  // Nothing is changed now: another row follows at once.
  await rows(page).nth(0).locator("td").nth(4).dblclick();
  await page.locator("#panel [name=value]:focus").waitFor();
  const before = await heading.innerText();
  await rows(page).nth(1).locator("td").nth(4).click();
  await page.waitForFunction((text) => document.querySelector("#panel h2").innerText !== text, before);
  // The menu closes first.
  await page.locator("#panel .menu summary").click();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#panel .menu[open]").count(), 0);
  assert.equal(await page.locator("#panel").count(), 1);
  await page.getByRole("link", { name: "Close", exact: true }).click();
  await page.locator("#panel").waitFor({ state: "detached" });
});

flow("a person finds the keys, and a row that is changed off screen", { hands: 1 }, async ({ page, hand, screen, explore }) => {
  await opens(page, hand, explore, "Employees", "Sales", "000145");
  await page.getByRole("link", { name: "Clone", exact: true }).click();
  await page.locator("#panel [name=rk]:focus").waitFor();
  assert.equal(await page.evaluate(() => getSelection().toString()), "000145");
  await page.getByRole("link", { name: "Close", exact: true }).click();
  await opens(page, hand, explore, "Employees", "Sales", "000145");
  await hand.write(value(page, "Salary"), "much");
  await hand.press(button(page, "Stage merge"));
  await page.locator("#panel [aria-invalid=true]:focus").waitFor();
  const rule = await page.evaluate(() => document.getElementById(document.activeElement.getAttribute("aria-describedby")).textContent);
  assert.match(rule, /\w/);
  await hand.write(value(page, "Salary"), "3.5");
  await hand.press(button(page, "Stage merge"));
  await page.getByText("1 staged change", { exact: true }).waitFor();
  await page.locator("#grid tr.changes").waitFor();
  await page.reload();
  await page.locator("#grid tr.changes").waitFor();
  // The keys stay while the last column is looked at.
  await page.setViewportSize({ width: 900, height: 900 });
  const places = () => page.locator("#grid tr.changes td").evaluateAll((cells) => cells.slice(0, 4).map((it) => Math.round(it.getBoundingClientRect().left)));
  const before = await places();
  await page.evaluate(() => document.querySelector("main").scrollTo(300, 0));
  await page.locator("#grid.aside").waitFor();
  const scrolled = await places();
  assert.deepEqual(scrolled.slice(0, 3), before.slice(0, 3));
  assert.equal(scrolled[3], before[3] - 300);
  await screen("entities-aside");
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.keyboard.press("?");
  await page.getByText("copy the row as JSON").waitFor();
  await screen("keys");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("#keys[open]").count(), 0);
  await page.goto(`${explore.origin}/t/Employees/new`);
  await page.locator("[name=pk]:focus").waitFor();
  // The Tab key stops once in a long grid, also when all of its rows are there.
  await page.goto(`${explore.origin}/t/Big`);
  await page.locator("#grid[data-complete]").waitFor();
  assert.equal(await page.evaluate(() => [...document.querySelectorAll("#grid tbody *")].filter((it) => it.tabIndex >= 0).length), 1);
});
