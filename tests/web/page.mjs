// The page as people use it, in a browser, against the real program: node page.mjs PROGRAM BROWSER PACKAGES
//
// Each test gets a page of its own. What must never happen is looked for in all of them: errors of scripts, requests to
// elsewhere, refusals by the content security policy.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pcmOf, scratch, serve } from './serve.mjs';

const [program, executablePath, packages] = process.argv.slice(2);
const load = createRequire(path.join(packages, 'package.json'));
const { chromium } = load('playwright-core');
const axe = readFileSync(load.resolve('axe-core/axe.min.js'), 'utf8');

const KEY = 'key-of-a-test';
const REFERENCE = 'tests/data/demo/ref-rms.wav';
const SHORT = 'Hello there.';
const LONG = 'The lock opens slowly, the water finds its level, and the boat moves on. '.repeat(5);
const WIDE = { viewport: { width: 1280, height: 900 } };
const PHONE = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };

// Weights that move: a simulated device, and sound decoded while it is made.
const sim = ['--device', 'sim:80M,link=400M', '--vram', '64M', '--place', 'embed=cpu'];
let server;
let locked;

const browser = await chromium.launch({ executablePath, args: [
    ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []), '--mute-audio',
    '--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream'] });

/* ---- a page ---- */

// Notes what is started when, and when the answer with the sound ended.
function watchSound() {
    window.sound = { started: [], endOfAnswer: Infinity };
    const { start } = AudioBufferSourceNode.prototype;
    AudioBufferSourceNode.prototype.start = function (time) {
        window.sound.started.push({ at: performance.now(), time, samples: this.buffer.length, rate: this.buffer.sampleRate });
        start.call(this, time);
    };
    const { read } = ReadableStreamDefaultReader.prototype;
    ReadableStreamDefaultReader.prototype.read = async function () {
        const result = await read.call(this);
        if (result.done) {
            window.sound.endOfAnswer = Math.min(window.sound.endOfAnswer, performance.now());
        }
        return result;
    };
    // Every state of the speech since it was asked for: some last less long than a look at the page takes.
    window.speechStates = [];
    document.addEventListener('DOMContentLoaded', () => {
        new MutationObserver((changes) => {
            window.speechStates.push(...changes.map((change) => change.oldValue), document.body.dataset.speech);
        }).observe(document.body, { attributeFilter: ['data-speech'], attributeOldValue: true });
    });
}

async function withPage(of, options, act) {
    const context = await browser.newContext({ ...WIDE, ...options });
    const page = await context.newPage();
    const wrong = [];
    page.on('pageerror', (error) => wrong.push(error.stack));
    page.on('console', (message) => {
        if (/Content Security Policy/i.test(message.text())) {
            wrong.push(message.text());
        }
    });
    page.on('request', (request) => {
        if (!request.url().startsWith(of.url) && !request.url().startsWith('blob:')) {
            wrong.push(`a request to ${request.url()}`);
        }
    });
    page.setDefaultTimeout(30000);
    await page.addInitScript(watchSound);
    try {
        await page.goto(of.url);
        await act(page);
        assert.deepEqual(wrong, []);
    } finally {
        await context.close();
    }
}

const isReady = (page) => page.waitForSelector('#server-state[data-state="ok"]');
const isSpeech = (page, state) => page.waitForFunction((s) => document.body.dataset.speech === s, state);
const hasEnded = (page, state, options) => page.waitForFunction((s) => document.body.dataset.speech === 'idle' &&
    window.speechStates.includes(s), state, options);
const textOf = (page, selector) => page.locator(selector).innerText();
const hasText = (page, selector, text) =>
    page.waitForFunction(([s, t]) => document.querySelector(s).textContent.includes(t), [selector, text]);

async function clickAnew(page, button) {
    await page.evaluate(() => window.speechStates = []);
    await page.click(button);
}

async function say(page, text, seed) {
    await page.fill('#input', text);
    if (seed !== undefined) {
        await page.locator('#more').evaluate((more) => more.open = true);
        await page.fill('#seed', String(seed));
    }
    await clickAnew(page, '#speak');
}

async function downloadOf(page) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#download')]);
    const file = path.join(scratch, 'download.wav');
    await download.saveAs(file);
    return { name: download.suggestedFilename(), bytes: readFileSync(file) };
}

async function isIdle(of) {
    for (let i = 0; i < 300; i++) {
        const picture = await (await of.ask('/residency')).json();
        if (picture.queue.running === 0 && picture.activity === 'idle') {
            return picture;
        }
        await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error('the server went on for 30 seconds');
}

async function assertAccessible(page, what, where = 'body') {
    if (!await page.evaluate(() => 'axe' in window)) {
        await page.evaluate(axe);
    }
    const { violations } = await page.evaluate((selector) => window.axe.run(selector, { resultTypes: ['violations'],
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }), where);
    const words = violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target.join(' ')).join(', ')}`);
    assert.deepEqual(words, [], what);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${what}: ${over} pixels too wide`);
}

async function picture(page, name) {
    if (process.env.SLUICE_SHOTS) {
        await page.screenshot({ path: path.join(process.env.SLUICE_SHOTS, `${name}.png`), fullPage: true });
    }
}

/* ---- speech ---- */

async function speaksWhileItIsMade() {
    const expected = await pcmOf(server, { input: SHORT, seed: 11 });
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await say(page, SHORT, 11);
        await hasEnded(page, 'making');
        const { started, endOfAnswer } = await page.evaluate(() => window.sound);
        assert.ok(started[0].at < endOfAnswer, 'sound is scheduled before the answer ends');
        assert.equal(2 * started.reduce((n, s) => n + s.samples, 0), expected.length, 'each sample once');
        started.slice(1).forEach((s, i) => {
            const end = started[i].time + started[i].samples / 24000;
            assert.ok(s.rate === 24000 && s.time > end - 1e-6, 'nothing overlaps');
        });
        const { name, bytes } = await downloadOf(page);
        assert.equal(name, 'sluice-11.wav');
        assert.equal(bytes.length, 44 + expected.length);
        assert.ok(bytes.subarray(44).equals(expected), 'the file is what other clients get');
        assert.match(await textOf(page, '#speak-figures'), /seed 11/);
        assert.equal(await textOf(page, '#speak-status'), 'Done.');
        await clickAnew(page, '#again');
        await hasEnded(page, 'playing');
    });
}

async function stopEndsTheRequest() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await say(page, LONG, 5);
        await page.waitForFunction(() => window.sound.started.length > 0);
        await page.click('#stop');
        assert.equal(await textOf(page, '#speak-status'), 'Stopped.');
        assert.equal(await page.evaluate(() => document.activeElement.id), 'speak');
        const { frames_total: frames } = await isIdle(server);
        await new Promise((done) => setTimeout(done, 300));
        assert.equal((await isIdle(server)).frames_total, frames, 'nothing more is made');
        const { bytes } = await downloadOf(page);
        assert.ok(bytes.length > 44, 'what was made is kept');
        assert.equal(await textOf(page, '#speak-problem'), '');
    });
}

async function showsWeightsAndMemory() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await hasText(page, '#model-name', 'demo-voice');
        await say(page, LONG, 3);
        await page.waitForSelector('#units-body .chip[data-state="resident"]');
        await page.waitForSelector('#units-head .now');
        await page.waitForFunction(() => /GB\/s by (plain|pread|memcpy|registered)/
            .test(document.querySelector('#units-body').textContent));
        await hasText(page, '#figure-activity', 'Speaking');
        assert.ok(await page.locator('#places .bar .weights').last().evaluate((part) => part.offsetWidth > 20));
        assert.match(await textOf(page, '#places'), /of 64\.0\sMiB \(--vram\)/);
        await isSpeech(page, 'idle');
        await hasText(page, '#figure-activity', 'Nothing');
        await page.selectOption('#level', '2');
        await page.click('#sleep');
        await hasText(page, '#figure-sleep', '2:');
        await page.click('#wake');
        await hasText(page, '#figure-sleep', 'Awake');
    });
}

/* ---- voices ---- */

async function makesUsesAndDeletesVoices() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await page.click('#voice-new');
        await page.fill('#voice-name', 'no/path');
        await page.click('#voice-save');
        assert.match(await textOf(page, '#voice-name-problem'), /letters/);
        await page.fill('#voice-name', 'reader');
        await page.click('#voice-save');
        assert.match(await textOf(page, '#file-problem'), /choose a file/);
        await page.setInputFiles('#file', REFERENCE);
        await page.waitForSelector('#preview:not([hidden])');
        await page.click('#voice-save');
        assert.match(await textOf(page, '#transcript-problem'), /Write down/);
        await page.fill('#transcript', 'What the reference says.');
        await page.click('#voice-save');
        await page.waitForFunction(() => document.querySelector('#voice').value === 'reader');
        assert.equal(await page.locator('#voice-dialog').isVisible(), false);
        await usesTheVoice(page);
        await replacesByRecording(page);
        await page.click('#voice-delete');
        await page.click('#delete-no');
        await page.click('#voice-delete');
        await page.click('#delete-yes');
        await page.waitForFunction(() => document.querySelectorAll('#voice option').length === 1);
        assert.deepEqual((await (await server.ask('/v1/audio/voices')).json()).voices, []);
    });
}

async function usesTheVoice(page) {
    await say(page, SHORT, 4);
    await hasEnded(page, 'making');
    const { bytes } = await downloadOf(page);
    assert.ok(bytes.subarray(44).equals(await pcmOf(server, { input: SHORT, seed: 4, voice: 'reader' })));
}

// A name that is taken, and the microphone (a beep of the browser's).
async function replacesByRecording(page) {
    await page.click('#voice-new');
    await page.click('#record');
    await hasText(page, '#record-time', '1.');
    await page.click('#record');
    await page.waitForSelector('#preview:not([hidden])');
    assert.match(await textOf(page, '#preview-words'), /short/);
    await page.click('#suggest');
    await page.fill('#voice-name', 'reader');
    await page.click('#voice-save');
    await page.waitForSelector('#replace-line:not([hidden])');
    await page.check('#replace');
    await page.click('#voice-save');
    await page.waitForSelector('#voice-dialog', { state: 'hidden' });
}

/* ---- what goes wrong ---- */

async function saysWhatIsWrongWhereItIs() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await say(page, '  ');
        assert.match(await textOf(page, '#input-problem'), /Type/);
        assert.equal(await page.getAttribute('#input', 'aria-invalid'), 'true');
        await say(page, SHORT, 'abc');
        assert.match(await textOf(page, '#seed-problem'), /whole number/);
        await page.fill('#seed', '');
        await page.fill('#top_p', '7');
        await page.click('#speak');
        await hasText(page, '#top_p-problem', 'from 0 to 1'); /* the server's words */
        assert.equal(await page.evaluate(() => document.activeElement.id), 'top_p');
        await picture(page, 'problem');
    });
}

async function asksForTheKey() {
    await withPage(locked, {}, async (page) => {
        await page.waitForSelector('#key-section:not([hidden])');
        await assertAccessible(page, 'a key is wanted');
        await page.fill('#key', 'not-the-key');
        await page.keyboard.press('Enter');
        await hasText(page, '#key-problem', 'refused');
        await page.fill('#key', KEY);
        await page.keyboard.press('Enter');
        await isReady(page);
        assert.equal(await page.locator('#key-section').isVisible(), false);
        assert.ok(!(await page.content()).includes(KEY));
        await saysThatTheQueueIsFull(page);
    });
}

async function saysThatTheQueueIsFull(page) {
    const abort = new AbortController();
    const other = () => locked.ask('/v1/audio/speech', { method: 'POST', signal: abort.signal,
        headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ input: LONG.repeat(20), response_format: 'pcm' }) })
        .catch(() => {});
    const others = [other()];
    await hasText(page, '#figure-activity', 'Speaking'); /* the place in the queue is free again */
    others.push(other());
    await hasText(page, '#figure-queue', '1 of 1');
    await say(page, SHORT);
    await hasText(page, '#speak-problem', 'Try again in');
    assert.match(await textOf(page, '#speak-problem'), /busy/);
    assert.equal(await page.locator('#speak').isVisible(), true);
    abort.abort();
    await Promise.all(others);
}

async function survivesTheServer() {
    const { port } = server;
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await say(page, LONG, 5);
        await page.waitForFunction(() => window.sound.started.length > 0);
        await server.kill();
        await hasText(page, '#speak-problem', 'broke off');
        await page.waitForSelector('#server-state[data-state="gone"]');
        assert.equal(await page.locator('#feed-notice').isVisible(), true);
        assert.ok((await downloadOf(page)).bytes.length > 44, 'what came is kept');
        await assertAccessible(page, 'the server is gone');
        await picture(page, 'gone');
        await page.evaluate(() => document.querySelector('#stop').click());
        await page.click('#speak');
        await hasText(page, '#speak-problem', 'does not answer');
        server = await serve(program, { port, args: sim });
        await isReady(page);
        assert.equal(await page.locator('#feed-notice').isVisible(), false);
        await say(page, SHORT, 11);
        await hasEnded(page, 'making');
        assert.equal(await textOf(page, '#speak-problem'), '');
    });
}

// A hidden tab: no frames are drawn and timers stand still, but sound goes on; the feed is given back meanwhile.
async function goesOnWhileHidden() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        await page.evaluate(() => {
            window.realFrame = window.requestAnimationFrame;
        });
        const setVisibility = (state) => page.evaluate((s) => {
            Object.defineProperty(document, 'visibilityState', { value: s, configurable: true });
            Object.defineProperty(document, 'hidden', { value: s === 'hidden', configurable: true });
            window.requestAnimationFrame = s === 'hidden' ? () => 0 : window.realFrame;
            document.dispatchEvent(new Event('visibilitychange'));
        }, state);
        await setVisibility('hidden');
        await say(page, SHORT, 11);
        await hasEnded(page, 'making', { polling: 20 });
        assert.equal(await textOf(page, '#figure-activity'), 'Nothing', 'no news while hidden');
        const before = await textOf(page, '#figure-frames');
        await setVisibility('visible');
        await page.waitForFunction((old) => document.querySelector('#figure-frames').textContent !== old, before);
    });
}

/* ---- for everyone ---- */

async function isCleanInEveryColourAndSize() {
    for (const [name, size] of Object.entries({ desktop: WIDE, phone: PHONE })) {
        await withPage(server, { ...size, reducedMotion: 'reduce' }, async (page) => {
            await isReady(page);
            await page.locator('#more').evaluate((more) => more.open = true);
            await say(page, LONG, 11);
            await page.waitForSelector('#units-head .now');
            await inBothColours(page, `${name}-speaking`, 'body');
            await page.click('#stop');
            await page.click('#voice-new');
            await page.click('#voice-save');
            await inBothColours(page, `${name}-voice`, '#voice-dialog');
        });
    }
}

async function inBothColours(page, what, where) {
    for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await picture(page, `${what}-${colorScheme}`);
        await assertAccessible(page, `${what}, ${colorScheme}`, where);
    }
}

async function worksByKeyboard() {
    await withPage(server, {}, async (page) => {
        await isReady(page);
        const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className ||
            document.activeElement.getAttribute('href') || document.activeElement.tagName);
        const order = [];
        for (let i = 0; i < 30 && order.at(-1) !== 'residency'; i++) {
            await page.keyboard.press('Tab');
            order.push(await focused());
        }
        assert.deepEqual(order, ['skip', 'input', 'voice', 'voice-new', 'SUMMARY', 'speak', 'level', 'sleep', 'wake', 'scroll',
            'health', 'metrics', 'residency']);
        await page.focus('.skip');
        assert.ok(await page.locator('.skip').evaluate((link) => link.getBoundingClientRect().left >= 0), 'the skip link is seen');
        await page.keyboard.press('Enter');
        await page.keyboard.press('Control+A');
        await page.keyboard.type(LONG);
        await page.keyboard.press('Control+Enter');
        await isSpeech(page, 'making');
        await page.keyboard.press('Tab'); /* voice */
        for (let i = 0; i < 5 && await focused() !== 'stop'; i++) {
            await page.keyboard.press('Tab');
        }
        await page.keyboard.press('Enter');
        assert.equal(await textOf(page, '#speak-status'), 'Stopped.');
        assert.equal(await focused(), 'speak');
        await page.focus('#voice-new');
        await page.keyboard.press('Enter');
        assert.equal(await focused(), 'voice-name');
        await page.keyboard.press('Escape');
        assert.equal(await focused(), 'voice-new', 'the focus is where it was');
    });
}

/* ---- all of them ---- */

const tests = [speaksWhileItIsMade, stopEndsTheRequest, showsWeightsAndMemory, makesUsesAndDeletesVoices,
    saysWhatIsWrongWhereItIs, asksForTheKey, goesOnWhileHidden, survivesTheServer, worksByKeyboard, isCleanInEveryColourAndSize];
const wanted = process.env.SLUICE_WEB_TESTS?.split(',');
let failures = 0;
server = await serve(program, { args: sim });
locked = await serve(program, { key: KEY, args: ['--queue', '1'] });
for (const one of tests.filter((t) => !wanted || wanted.includes(t.name))) {
    const begin = performance.now();
    try {
        await one();
        console.log(`ok ${one.name}, ${((performance.now() - begin) / 1000).toFixed(1)} s`);
    } catch (error) {
        failures++;
        console.log(`FAILED ${one.name}: ${error.stack}`);
    }
}
await browser.close();
await Promise.all([server.kill(), locked.kill()]);
process.exit(failures > 0 ? 1 : 0);
