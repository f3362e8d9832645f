// Walks through the site of `joust serve --reports` in a browser, as a reader does, and ends with 1 if anything is wrong.
// usage: node site.cjs MODULES CHROMIUM URL
"use strict";
const path = require("node:path");
const [modules, chromium, url] = process.argv.slice(2);
const { chromium: driver } = require(path.join(modules, "playwright-core"));
const AXE = path.join(modules, "axe-core", "axe.min.js");
const wrong = [];
const check = (holds, what) => { if (!holds) wrong.push(what); };

async function walk(browser) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.on("console", (message) => wrong.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => { if (!request.url().startsWith(url)) wrong.push(`asks for ${request.url()}`); });
  const ready = () => page.waitForSelector("html[data-ready]");
  await page.goto(url);
  await ready();
  check((await page.locator("#runs tbody tr").count()) === 3, "three runs are listed");
  // A run, by its link, and back.
  await page.locator('a[href="/run/2"]').first().click();
  await ready();
  check((await page.textContent("body")).includes("How far to trust it"), "a run is shown");
  // The view is in the address, which another reader opens.
  await page.locator("#shown summary").click();
  await page.locator("#shown input").first().uncheck();
  const link = page.url();
  check(link.includes("#view:"), `the address has the view: ${link}`);
  const other = await context.newPage();
  await other.goto(link);
  await other.waitForSelector("html[data-ready]");
  check(!(await other.locator("#shown input").first().isChecked()), "another reader sees the same view");
  await other.close();
  await page.goto(url);
  await ready();
  // Two runs are compared by the form, with the keyboard.
  await page.locator('input[name="base"][value="1"]').focus();
  await page.keyboard.press("Space");
  await page.locator('input[name="candidate"][value="3"]').focus();
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await page.waitForURL(/compare\?/);
  await ready();
  check((await page.textContent("body")).includes("regression"), "the comparison names the regression");
  // A trend, by a link of the list.
  await page.goto(url);
  await ready();
  await page.locator('a[href^="/trend"]').first().click();
  await ready();
  check((await page.locator("svg").count()) > 0, "the trend is drawn");
  await page.goto(`${url}run/99`);
  check((await page.textContent("body")).includes("99"), "a run that is not there is named");
  // The browser itself says on its console that a page was not found.
  wrong.splice(0, wrong.length, ...wrong.filter((one) => !one.includes("404")));
  await context.close();
}

async function accessible(browser) {
  // axe is no script of the site, whose policy would keep it out.
  const page = await browser.newPage({ bypassCSP: true });
  for (const at of ["", "run/1", "compare?base=1&candidate=3", "trend?study=quick&contender=joust%20one", "run/99"]) {
    await page.goto(url + at);
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    check(violations.length === 0, `axe on /${at}: ${violations.map((one) => one.id).join(", ")}`);
  }
  await page.close();
}

(async () => {
  const flags = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  const browser = await driver.launch({ executablePath: chromium, args: flags });
  await walk(browser);
  await accessible(browser);
  await browser.close();
  wrong.forEach((one) => console.log(`wrong: ${one}`));
  console.log(`${wrong.length} wrong`);
  process.exit(wrong.length ? 1 : 0);
})();
