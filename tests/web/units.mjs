// The modules of the page that need no browser: node --test tests/web/units.mjs
import assert from 'node:assert/strict';
import test from 'node:test';
import { rate } from '../../apps/web/page.js';
import { Player } from '../../apps/web/player.js';
import { createParser } from '../../apps/web/sse.js';
import { createSampler, wavOf } from '../../apps/web/wav.js';

const RATE = 24000;

// Sound as the browser would play it: a clock that the test moves, and what was started when.
class FakeContext {
    constructor() {
        this.state = 'running';
        this.currentTime = 0;
        this.started = [];
        FakeContext.last = this;
    }

    async resume() {
        this.state = 'running';
    }

    async suspend() {
        this.state = 'suspended';
    }

    createBuffer(channels, n, rate) {
        const data = new Float32Array(n);
        return { length: n, duration: n / rate, getChannelData: () => data };
    }

    createBufferSource() {
        const context = this;
        return {
            connect() {},
            disconnect() {},
            start(time) {
                assert.ok(time >= context.currentTime, 'nothing starts in the past');
                context.started.push({ source: this, time, end: time + this.buffer.duration, data: this.buffer.getChannelData() });
            },
            stop() {
                this.isStopped = true;
            },
        };
    }

    // Moves the clock; buffers end on the way.
    moveTo(time) {
        for (const sound of this.started.filter((s) => !s.hasEnded && s.end <= time)) {
            sound.hasEnded = true;
            this.currentTime = sound.end;
            if (sound.source.onended) {
                sound.source.onended();
            }
        }
        this.currentTime = time;
    }
}
globalThis.AudioContext = FakeContext;

function ramp(from, n) {
    return Int16Array.from({ length: n }, (_, i) => (from + i) % 30000);
}

function createPlayer() {
    const player = new Player(RATE, () => {});
    player.begin();
    return { player, context: FakeContext.last };
}

// All of what was scheduled is `n` samples of the ramp, in order, each once.
function assertAll(context, n) {
    const all = context.started.flatMap((s) => [...s.data]);
    assert.equal(all.length, n);
    all.forEach((x, i) => assert.equal(x, (i % 30000) / 32768));
}

function countGaps(context) {
    return context.started.filter((s, i, all) => i > 0 && Math.abs(s.time - all[i - 1].end) > 0.1 / RATE).length;
}

test('pieces of odd sizes play without a gap, and all of them', () => {
    const { player, context } = createPlayer();
    let n = 0;
    for (const size of [100, 7000, 1, 1152, 1152, 30000, 3, 24000]) {
        player.push(ramp(n, size));
        n += size;
    }
    player.complete();
    for (let t = 0; t < 5; t += 0.05) {
        context.moveTo(t);
    }
    assertAll(context, n);
    assert.equal(countGaps(context), 0);
    assert.equal(player.isPlaying, false);
    assert.equal(player.secondsHeard, n / RATE);
    assert.equal(context.state, 'suspended', 'the device is let go');
});

test('playing begins before the sound is complete, but not with a click of it', () => {
    const { player, context } = createPlayer();
    player.push(ramp(0, 1000));
    assert.equal(context.started.length, 0);
    player.push(ramp(1000, 4000));
    assert.ok(context.started.length > 0);
});

test('sound shorter than the lead plays once it is complete', () => {
    const { player, context } = createPlayer();
    player.push(ramp(0, 10));
    player.complete();
    assertAll(context, 10);
});

test('sound that comes too late: it waits for more each time, and nothing is lost or doubled', () => {
    const { player, context } = createPlayer();
    let n = 0;
    let nWaits = 0;
    let wasWaiting = true;
    for (let t = 0; t < 20; t += 0.1) { /* half the speed of speech */
        context.moveTo(t);
        player.push(ramp(n, 1200));
        n += 1200;
        nWaits += player.isWaiting && !wasWaiting ? 1 : 0;
        wasWaiting = player.isWaiting;
    }
    assert.ok(nWaits >= 2 && nWaits <= 8, `${nWaits} waits`);
    player.complete();
    for (let t = 20; t < 40; t += 0.05) {
        context.moveTo(t);
    }
    assertAll(context, n);
    assert.equal(player.isPlaying, false);
    context.started.forEach((s, i, all) => assert.ok(i === 0 || s.time - all[i - 1].end > -0.1 / RATE, 'no overlap'));
});

test('an hour is not scheduled at once', () => {
    const { player, context } = createPlayer();
    for (let i = 0; i < 60; i++) {
        player.push(ramp(i * RATE, RATE));
    }
    const most = Math.max(...context.started.map((s) => s.end));
    assert.ok(most > 5 && most < 15, `${most} s`);
    for (let t = 0; t < 30; t += 0.25) {
        context.moveTo(t);
    }
    assert.ok(Math.max(...context.started.map((s) => s.end)) > 30);
});

test('halt is silence at once; again begins at the start', () => {
    const { player, context } = createPlayer();
    player.push(ramp(0, 48000));
    context.moveTo(0.53);
    player.halt();
    assert.ok(context.started.every((s) => s.hasEnded || s.source.isStopped));
    assert.equal(player.isPlaying, false);
    assert.ok(Math.abs(player.secondsHeard - 0.5) < 0.01, `${player.secondsHeard}`);
    player.isComplete = true;
    context.started = [];
    player.again();
    for (let t = 0.6; t < 5; t += 0.05) {
        context.moveTo(t);
    }
    assertAll(context, 48000);
    assert.equal(countGaps(context), 0);
});

test('without a way to be heard the sound is kept', () => {
    globalThis.AudioContext = class {
        constructor() {
            throw new Error('no device');
        }
    };
    const player = new Player(RATE, () => {});
    player.begin();
    player.push(ramp(0, 48000));
    player.complete();
    globalThis.AudioContext = FakeContext;
    assert.equal(player.isSilent, true);
    assert.equal(player.isPlaying, false);
    assert.equal(player.secondsMade, 2);
});

test('events come out of a stream however it is cut', () => {
    const text = ': sign of life\n\nevent: residency\r\ndata: {"é":1,\r\ndata: "b":2}\r\n\r\ndata:plain\nid: 4\n\nevent: none\n\ndata: not yet';
    const all = new TextEncoder().encode(text);
    for (let size = 1; size < all.length; size++) {
        const got = [];
        const parse = createParser((name, data) => got.push([name, data]));
        for (let at = 0; at < all.length; at += size) {
            parse(all.subarray(at, at + size));
        }
        assert.deepEqual(got, [['residency', '{"é":1,\n"b":2}'], ['message', 'plain']]);
    }
});

test('samples come out of a stream however it is cut', () => {
    const all = Int16Array.of(1, -2, 300, -32768, 32767, 0, 77);
    const stream = new Uint8Array(all.buffer);
    for (let size = 1; size <= stream.length; size++) {
        const toSamples = createSampler();
        const got = [...toSamples(new Uint8Array(0))];
        for (let at = 0; at < stream.length; at += size) {
            got.push(...toSamples(stream.subarray(at, at + size)));
        }
        assert.deepEqual(got, [...all], `pieces of ${size}`);
    }
});

test('a WAV file has a head of 44 bytes and the samples as they are', async () => {
    const file = Buffer.from(await wavOf([Int16Array.of(1, -2), Int16Array.of(300)], RATE).arrayBuffer());
    assert.equal(file.length, 50);
    assert.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16), 'RIFFWAVEfmt ');
    assert.equal(file.readUInt32LE(4), 42);
    assert.deepEqual([file.readUInt16LE(20), file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt32LE(28),
        file.readUInt16LE(32), file.readUInt16LE(34), file.readUInt32LE(40)], [1, 1, RATE, 2 * RATE, 2, 16, 6]);
    assert.deepEqual([file.readInt16LE(44), file.readInt16LE(46), file.readInt16LE(48)], [1, -2, 300]);
});

test('speeds have three digits', () => {
    assert.deepEqual([46.34e9, 5.208e9, 0.02471e9].map(rate), ['46.3\u00a0GB/s', '5.21\u00a0GB/s', '0.0247\u00a0GB/s']);
});
