// The hand of a person: with a mouse, or with the keyboard alone. Flows are written once, and done by both.

import assert from "node:assert/strict";

/** More steps of the Tab key than a person would take to a control. */
const MOST_TABS = 150;

class Mouse {
  constructor(page) {
    this.page = page;
  }

  name = "mouse";

  async press(control) {
    await control.click();
  }

  async write(field, text) {
    await field.click();
    await field.fill(text);
  }

  async choose(list, label) {
    await list.selectOption({ label });
  }
}

class Keyboard {
  constructor(page) {
    this.page = page;
  }

  name = "keyboard";

  /** Moves the focus to a control by the Tab key, and checks that the focus is seen on the way. */
  async reach(control) {
    await control.waitFor({ state: "visible" });
    const target = await control.elementHandle();
    const isThere = () => target.evaluate((element) => element === document.activeElement);
    for (const key of ["Tab", "Shift+Tab"]) {
      for (let steps = 0; steps < MOST_TABS; steps += 1) {
        if (await isThere()) return await this.#seen(target);
        await this.page.keyboard.press(key);
      }
    }
    assert.fail(`the Tab key does not reach ${control}`);
  }

  async #seen(target) {
    const { outline, shadow, border } = await target.evaluate((element) => {
      const style = getComputedStyle(element);
      return { outline: style.outlineStyle === "none" ? 0 : Number.parseFloat(style.outlineWidth), shadow: style.boxShadow, border: style.borderColor };
    });
    assert.ok(outline > 0 || shadow !== "none", `the focus is not seen on ${target}: ${border}`);
  }

  async press(control) {
    await this.reach(control);
    const isBox = await control.evaluate((element) => element.matches("input[type=checkbox], input[type=radio]"));
    await this.page.keyboard.press(isBox ? "Space" : "Enter");
  }

  async write(field, text) {
    await this.reach(field);
    await this.page.keyboard.press("Control+A");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.type(text);
  }

  async choose(list, label) {
    await this.reach(list);
    // A letter selects the next option that begins with it.
    await this.page.keyboard.type(label);
    assert.equal(await list.evaluate((element) => element.selectedOptions[0].label.trim()), label);
  }
}

export const HANDS = [Mouse, Keyboard];
