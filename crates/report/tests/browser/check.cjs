// Drives the pages of a folder in a browser, by mouse and by keyboard, and ends with 1 if anything is wrong.
// usage: node check.cjs MODULES CHROMIUM FOLDER [SCREENSHOTS]; the folder has run.html,
// cells.html, large.html, failed.html, load.html, index.html, trend.html.
"use strict";
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const [modules, chromium, folder, screenshots] = process.argv.slice(2);
const { chromium: driver } = require(path.join(modules, "playwright-core"));
const AXE = path.join(modules, "axe-core", "axe.min.js");
// A browser that asks nobody: no updates, no suggestions.
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
// Rules of axe that a page must keep; those of best practice are among them.
const AXE_OPTIONS = { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };

const wrong = [];
let checks = 0;

function check(holds, what) {
  checks += 1;
  if (!holds) wrong.push(what);
}

const file = (name) => pathToFileURL(path.join(folder, name)).href;

async function open(browser, name, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
  const shown = `${name} ${JSON.stringify(options)}`;
  page.on("console", (message) => wrong.push(`${shown}: console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`${shown}: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) wrong.push(`${shown}: asks for ${request.url()}`);
  });
  await page.goto(file(name));
  if (options.javaScriptEnabled !== false) await page.waitForSelector("html[data-ready]", { timeout: 20000 });
  return page;
}

async function accessible(page, what) {
  await page.addScriptTag({ path: AXE });
  const results = await page.evaluate((options) => window.axe.run(document, options), AXE_OPTIONS);
  check(results.violations.length === 0, `${what}: ${results.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`).join("\n    ")}`);
}

const visible = (page, selector) => page.locator(selector).evaluateAll((nodes) => nodes.filter((node) => node.getClientRects().length > 0).length);

// What the script draws for the reference that the page begins with is what the program drew.
async function drawsTheSame(page) {
  const shot = () => page.evaluate(() => [...document.querySelectorAll(".against svg")].filter((svg) => svg.getClientRects().length).map((svg) => ({
    marks: [...svg.querySelectorAll("g.row:not(.is-hidden) :is(circle, line, path)")].map((node) => [node.getAttribute("class"), ...["cx", "x1", "x2", "d"].map((name) => (node.getAttribute(name) ?? "").replace(/-?\d+(\.\d+)?/g, (number) => Math.round(Number(number))))].join(" ")),
    texts: [...svg.querySelectorAll("text")].map((node) => node.lastChild.textContent),
    box: svg.getAttribute("viewBox"),
    about: svg.querySelector("desc").textContent,
  })));
  const before = await shot();
  const references = await page.evaluate(() => [...document.querySelectorAll(".against svg")].filter((svg) => svg.getClientRects().length).map((svg) => svg.querySelector("path.self")?.closest("g.row").dataset.c));
  await page.selectOption("#reference", references[0]);
  const after = await shot();
  for (const [index, reference] of references.entries()) {
    if (reference !== references[0]) continue;
    for (const part of ["marks", "texts", "box", "about"]) {
      const [one, other] = [before, after].map((all) => JSON.stringify(all[index][part].toSorted?.() ?? all[index][part]));
      check(one === other, `the script draws ${part} of plot ${index} differently:\n  ${one}\n  ${other}`);
    }
  }
  await page.selectOption("#reference", "");
  check(JSON.stringify(await shot()) === JSON.stringify(before), "the first drawing comes back");
  // Hidden rows do not get lost on the way to another reference and back.
  await page.evaluate(() => document.querySelectorAll("#shown input")[1].click());
  await page.selectOption("#reference", { index: 3 });
  await page.selectOption("#reference", "");
  await page.evaluate(() => document.querySelectorAll("#shown input")[1].click());
  check(JSON.stringify(await shot()) === JSON.stringify(before), "the first drawing comes back after rows were hidden");
}

async function checkRun(browser) {
  const page = await open(browser, "run.html");
  const fold = await page.evaluate(() => ["h1", ".verdict .answer", ".grade b", ".metric svg"].map((selector) => document.querySelector(selector).getBoundingClientRect().top));
  check(fold.every((top) => top < 700), `above the fold: ${fold}`);
  await drawsTheSame(page);
  // Another reference, by keyboard.
  await page.focus("#reference");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => location.hash.includes("ref="));
  check((await page.locator(".against .caption").first().textContent()).startsWith("Times as good as "), "the caption names the reference");
  // Hide a contender, by keyboard; its rows and curves go, and come back.
  const rows = () => visible(page, "#answer .metric figure:first-child g.row");
  const [before, curves] = [await rows(), await visible(page, "g[data-c] > path.curve")];
  await page.focus("#shown summary");
  await page.keyboard.press("Enter");
  await page.locator("#shown input").first().focus();
  await page.keyboard.press("Space");
  check((await rows()) < before, "rows of a hidden contender go");
  check((await visible(page, "g[data-c] > path.curve")) < curves, "its curve goes");
  const address = page.url();
  check(address.includes("hide=0") && address.includes("ref="), `the address keeps the view: ${address}`);
  await page.keyboard.press("Escape");
  // The link shows the same view.
  const other = await open(browser, "run.html" );
  await other.goto("about:blank");
  await other.goto(address);
  await other.waitForSelector("html[data-ready]");
  check((await visible(other, "#answer .metric figure:first-child g.row")) === (await rows()), "a link shows what its sender saw");
  check((await other.inputValue("#reference")) !== "", "with its reference");
  await other.close();
  // Sort and copy a table.
  const table = page.locator("#detail-0 table").first();
  const column = () => table.evaluate((one) => [...one.tBodies[0].rows].filter((row) => row.getClientRects().length).map((row) => row.cells[2].textContent));
  const unsorted = await column();
  const head = table.locator("button.sort").nth(2);
  await head.focus();
  await page.keyboard.press("Enter");
  const down = await column();
  await page.keyboard.press("Enter");
  const up = await column();
  check(JSON.stringify(up) === JSON.stringify([...down].reverse()) || new Set(up).size < up.length, `sorted up ${up} and down ${down}`);
  check(unsorted.length === up.length, "sorting loses no row");
  check((await table.locator("th[aria-sort]").count()) === 1, "the sorted column says so");
  const copyButton = page.locator("#detail-0 .table-tools button").first();
  await copyButton.click();
  await page.waitForFunction(() => [...document.querySelectorAll(".table-tools button")].some((button) => /^Cop(ied|ying)/.test(button.textContent)));
  // Filter the pairs.
  const pairs = page.locator("#detail-0 details", { hasText: "Pairs:" }).first();
  await pairs.locator("summary").click();
  await pairs.locator("input[type=search]").fill("no such contender");
  check((await pairs.locator("tbody tr").evaluateAll((all) => all.filter((row) => row.getClientRects().length).length)) === 0, "a filter that fits nothing shows nothing");
  await pairs.locator("input[type=search]").fill("");
  // Any visit over time, with all charts, by keyboard.
  await page.locator("#explorer").scrollIntoViewIfNeeded();
  await page.waitForSelector("#charts .uplot canvas");
  const charts = await page.locator("#charts .uplot").count();
  check(charts >= 3, `charts: ${charts}`);
  await page.focus("#visit");
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction(() => location.hash.includes("visit="));
  check((await page.locator("#charts .uplot").count()) === charts, "the next visit has its charts");
  await checkCounters(page, charts);
  // One cursor for all.
  const box = await page.locator("#charts .uplot .u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 20);
  const values = await page.locator("#charts .u-legend").evaluateAll((legends) => legends.map((legend) => legend.querySelector("tr.u-series .u-value").textContent));
  // Counters are read at instants of their own: the nearest one.
  check(values.length > 2 && values.every((value) => value !== "-" && Math.abs(value - values[0]) <= 0.15), `a common cursor: ${values}`);
  await page.close();
}

async function checkCounters(page, charts) {
  // Counters beside each other, chosen by keyboard.
  await page.focus("#counters summary");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const counter = page.locator("#counters input").first(), isChosen = await counter.isChecked();
  await page.keyboard.press("Space");
  const wanted = charts + (isChosen ? -1 : 1);
  await page.waitForFunction((wanted) => document.querySelectorAll("#charts .uplot").length === wanted, wanted);
  check(await counter.evaluate((box) => box === document.activeElement), "the focus stays at the counter");
  check(await page.evaluate(() => location.hash.includes("counter=")), "the address keeps the counters");
  await page.keyboard.press("Escape");
  check(await page.evaluate(() => document.activeElement.matches("#counters summary") && !document.activeElement.parentElement.open), "Escape closes the counters");
  // The charts are read by keyboard and as a table.
  await page.focus("#charts .uplot");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowRight");
  const reading = await page.textContent("#reading");
  await page.locator("#course summary").click();
  await page.waitForSelector("#course table");
  const rows = await page.locator("#course tbody tr").count();
  const columns = await page.locator("#course thead th").count();
  check(rows > 1 && columns === 6 + (wanted - 2), `the course as a table: ${rows} rows, ${columns} columns`);
  const second = await page.locator("#course tbody tr").nth(1).locator("td").allTextContents();
  const said = [`At ${second[0]} s: ok (per second) ${second[1]}`, `p50 (ms) ${second[3]}`, `p99 (ms) ${second[4]}`, `longest (ms) ${second[5]}`];
  const heads = await page.locator("#course thead th").allTextContents();
  heads.slice(6).forEach((head, at) => said.push(`${head.trim().replace(/ per s$/, "")} (per second) ${second[6 + at]}`));
  check(said.every((part) => reading.includes(part)) && !reading.includes(" -"), `table and keyboard agree: ${reading}; ${second}`);
}

async function checkCells(browser) {
  const page = await open(browser, "cells.html");
  const cells = await page.locator("#cell option").count() - 1;
  check((await visible(page, "section.cell")) === 2, "one cell is shown: its answer and its details");
  await page.focus("#cell");
  await page.keyboard.press("Home");
  await page.waitForFunction(() => location.hash.includes("cell=all"));
  check((await visible(page, "section.cell")) === 2 * cells, "all cells are shown when asked");
  await page.selectOption("#cell", "1");
  check((await visible(page, "#cell-1")) === 1 && (await visible(page, "#cell-0")) === 0, "the chosen cell is shown");
  await page.locator('.answers a[href="#cell-2"]').click();
  check((await visible(page, "#cell-2")) === 1, "a link to a hidden cell shows it");
  check((await page.inputValue("#cell")) === "2", "and the picker follows");
  await page.emulateMedia({ media: "print" });
  check((await visible(page, "section.cell")) === 2 * cells, "every cell is on paper");
  await page.close();
  const linked = await browser.newPage();
  await linked.goto(`${file("cells.html")}#cell-2`);
  await linked.waitForSelector("html[data-ready]");
  check((await visible(linked, "#cell-2")) === 1, "an address with a cell shows it");
  await linked.close();
}

async function checkLarge(browser) {
  const begun = Date.now();
  const page = await open(browser, "large.html");
  const opened = Date.now() - begun;
  const asked = Date.now();
  await page.selectOption("#cell", "7");
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
  const answered = Date.now() - asked;
  console.log(`large.html: open and ready after ${opened} ms, another cell after ${answered} ms`);
  await page.locator("#detail-7 .all-pairs button").click();
  check((await page.locator("#detail-7 .all-pairs tbody tr").count()) > 1000, "every pair of a cell is there when asked");
  await page.close();
}

// The list of runs: found by a word, sorted, and two of them compared by keyboard.
async function checkIndex(browser) {
  const page = await open(browser, "index.html");
  const rows = () => visible(page, "#runs tbody tr");
  const all = await rows();
  await page.locator("#runs input[type=search]").fill("2026-11-07");
  check((await rows()) === 1 && all === 12, "a search finds the run of a day");
  await page.locator("#runs input[type=search]").fill("");
  const heads = () => page.locator("#runs tbody th").allTextContents();
  await page.locator("#runs button.sort").first().click();
  check((await heads())[0].trim() === "run 12", `sorted by number, the last first: ${await heads()}`);
  await page.locator("#runs button.sort").nth(1).click();
  await page.locator("#runs button.sort").nth(1).click();
  check((await heads())[0].trim() === "run 1", `sorted by date: ${await heads()}`);
  await page.locator('input[name="base"][value="3"]').focus();
  await page.keyboard.press("Space");
  const form = await page.evaluate(() => new URLSearchParams(new FormData(document.querySelector("form"))).toString());
  check(form.split("&").sort().join("&") === "base=3&candidate=12", `two runs are chosen: ${form}`);
  await page.close();
}

async function checkLoad(browser) {
  const page = await open(browser, "load.html");
  check((await page.locator(".tiles dd").count()) === 5, "five tiles");
  await page.locator("#explorer").scrollIntoViewIfNeeded();
  await page.waitForSelector("#charts .uplot canvas");
  await page.close();
}

async function checkWithoutScripts(browser) {
  for (const name of ["run.html", "cells.html", "load.html"]) {
    const page = await open(browser, name, { javaScriptEnabled: false });
    // Pages of several cells show all of them then, and nothing that would do nothing.
    check((await visible(page, "#tools")) === 0, `${name}: tools that need a script are hidden without one`);
    check((await visible(page, "section.cell")) === (await page.locator("section.cell").count()), `${name}: every cell is shown without a script`);
    await page.close();
  }
}

async function look(browser) {
  for (const name of ["run.html", "cells.html", "load.html", "failed.html", "index.html", "trend.html"]) {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1280, 800, 400]) {
        // axe is no script of the page, whose policy would keep it out; all other parts are under the policy.
        const page = await open(browser, name, { viewport: { width, height: 800 }, colorScheme, bypassCSP: true });
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        check(wide <= 0, `${name} at ${width}: the page itself scrolls sideways by ${wide} px`);
        if (width !== 800) await accessible(page, `axe on ${name}, ${colorScheme}, ${width} px`);
        if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name.replace(".html", "")}-${width}-${colorScheme}.png`) });
        await page.close();
      }
    }
    const page = await open(browser, name);
    await page.emulateMedia({ media: "print" });
    check((await visible(page, "#tools")) === 0, `${name}: no tools on paper`);
    if (screenshots) await page.pdf({ path: path.join(screenshots, `${name.replace(".html", "")}.pdf`), format: "A4" });
    await page.close();
  }
}

(async () => {
  const browser = await driver.launch({ executablePath: chromium, args: FLAGS });
  for (const part of [checkRun, checkCells, checkLarge, checkIndex, checkLoad, checkWithoutScripts, look]) {
    try {
      await part(browser);
    } catch (error) {
      wrong.push(`${part.name}: ${error.stack}`);
    }
  }
  await browser.close();
  wrong.forEach((what) => console.error(`wrong: ${what}`));
  console.log(`${checks} checks, ${wrong.length} wrong`);
  process.exitCode = wrong.length ? 1 : 0;
})();
