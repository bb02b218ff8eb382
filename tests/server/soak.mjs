// Many clients of all sorts against one server, for a while: node soak.mjs URL PID SECONDS [no-rss]
//
// Good clients must get what they got from the idle server, to the bit; bad ones must not matter: no crash, no wedge, and
// after a warm-up no growth of memory or threads. Prints what was done and every failure; exit status 1 if there is one.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';

const [url, pid, seconds, mode] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const CLIENTS = 14;
const RSS_GROWTH_MOST = 24 << 20;
const THREADS_MOST_MORE = 2;
let deadline = Infinity;

const counts = {};
let failures = 0;
function count(what) {
    counts[what] = (counts[what] ?? 0) + 1;
}
function fail(what, detail) {
    failures++;
    if (failures < 30) {
        console.log(`FAILED ${what}: ${detail}`);
    }
}
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// A generator of our own, so that a run can be told by its seed.
let state = Number(process.env.SOAK_SEED ?? 1);
function random(n) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
}

// One request of a well-behaved client; resolves with status and body. `pace` ms between reads.
function ask(method, path, { body, headers = {}, pace = 0 } = {}) {
    return new Promise((resolve) => {
        const hash = createHash('sha256');
        let n = 0;
        const chunks = [];
        const request = http.request({ hostname, port, method, path, headers, agent: false, timeout: 120000 }, (response) => {
            response.on('data', (data) => {
                hash.update(data);
                n += data.length;
                if (response.statusCode !== 200) {
                    chunks.push(data);
                }
                if (pace > 0) {
                    response.pause();
                    setTimeout(() => response.resume(), pace);
                }
            });
            response.on('end', () => resolve({ status: response.statusCode, complete: response.complete, n,
                hash: hash.digest('hex'), text: Buffer.concat(chunks).toString() }));
            response.on('error', (e) => resolve({ status: 0, text: e.message, n }));
        });
        request.on('timeout', () => request.destroy(new Error('no answer for two minutes')));
        request.on('error', (e) => resolve({ status: 0, text: e.message, n }));
        request.end(body);
    });
}

const json = { 'Content-Type': 'application/json' };
const speeches = [];
for (const [i, input] of ['Hi.', 'Hello there, how are you?', 'One, two, three, four.'].entries()) {
    for (const format of ['pcm', 'wav', 'flac', 'mp3', 'opus']) {
        speeches.push(JSON.stringify({ input, seed: i + 1, response_format: format, max_frames: 60, stream: format !== 'wav' }));
    }
}
const known = new Map();
const speak = (body, pace) => ask('POST', '/v1/audio/speech', { body, headers: json, pace });

async function good(pace) {
    const body = speeches[random(speeches.length)];
    for (;;) {
        const answer = await speak(body, pace);
        if (answer.status === 429 || answer.status === 503) {
            count('told to come back');
            await sleep(50 + random(200));
            if (Date.now() > deadline + 20000) {
                return;
            }
            continue;
        }
        if (answer.status !== 200 || !answer.complete || answer.hash !== known.get(body)) {
            fail('good request', `${body} ${answer.status} ${answer.n} bytes ${answer.text}`);
        }
        count(pace > 0 ? 'slow reader served' : 'served');
        return;
    }
}

// A raw connection: sends `text`, then leaves after `nBytes` of the answer or `ms`.
function raw(text, { nBytes = Infinity, ms = 3000, reset = false } = {}) {
    return new Promise((resolve) => {
        let n = 0;
        let first = '';
        const socket = net.connect(Number(port), hostname, () => socket.write(text));
        const leave = () => {
            clearTimeout(timer);
            if (reset) {
                socket.resetAndDestroy();
            } else {
                socket.destroy();
            }
            resolve({ n, first });
        };
        const timer = setTimeout(leave, ms);
        socket.on('data', (data) => {
            first = first || data.toString('latin1').split('\r\n')[0];
            n += data.length;
            if (n >= nBytes) {
                leave();
            }
        });
        socket.on('error', leave);
        socket.on('close', leave);
    });
}

const post = (path, body, type = 'application/json') => `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n`
    + `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const long = JSON.stringify({ input: 'A long text that nobody hears. '.repeat(20), response_format: 'pcm', max_frames: 500 });

async function leaver() {
    const whole = post('/v1/audio/speech', long);
    const phases = [
        ['', { ms: random(50) }],
        [whole.slice(0, 20), { ms: random(50) }],
        [whole.slice(0, whole.length - 10), { ms: random(100) }],
        [whole, { ms: random(20) }],
        [whole, { ms: random(400) }],
        [whole, { nBytes: 1 }],
        [whole, { nBytes: 1 + random(100000) }],
    ];
    const [text, how] = phases[random(phases.length)];
    await raw(text, { ...how, reset: random(2) === 0 });
    count('left');
}

const bad = [
    () => Buffer.from(Array.from({ length: 300 }, () => random(256))),
    () => 'GET / HTTP/9.9\r\n\r\n',
    () => 'BREW /coffee HTTP/1.1\r\nHost: localhost\r\n\r\n',
    () => `GET /${'a'.repeat(100000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    () => `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'b'.repeat(200000)}\r\n\r\n`,
    () => 'GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n',
    () => 'POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10737418240\r\n\r\n',
    () => `POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    () => `POST /generate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n${'c'.repeat(0x100000)}\r\n0\r\n\r\n`,
    () => post('/v1/audio/speech', '{"input":'),
    () => post('/v1/audio/speech', '['.repeat(60000)),
    () => Buffer.concat([Buffer.from('POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n{"input":"'),
        Buffer.from([0xff, 0xfe]), Buffer.from('"')]),
    () => post('/v1/audio/speech', JSON.stringify({ input: 'x', voice: '../../../etc/passwd' })),
    () => post('/v1/audio/speech', JSON.stringify({ input: 'x'.repeat(70000) })),
    () => 'DELETE /v1/audio/voices/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n',
    () => 'DELETE /v1/audio/voices/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n',
    () => post('/generate', '--B\r\nContent-Disposition: form-data; name="text"\r\n\r\nhi', 'multipart/form-data; boundary=B'),
    () => post('/v1/audio/voices', '--B--', 'multipart/form-data; boundary=B'),
    () => post('/v1/audio/voices', JSON.stringify({ name: 'bad', transcript: 'x', file: 'UklGRg==' })),
];
async function malformed() {
    const answer = await raw(bad[random(bad.length)](), { ms: 1500, nBytes: 1 });
    if (/^HTTP\/1.1 [25]/.test(answer.first) && !/ 50[35]/.test(answer.first)) {
        fail('malformed', answer.first);
    }
    count('malformed');
}

async function slowloris() {
    await new Promise((resolve) => {
        const text = post('/v1/audio/speech', long);
        let i = 0;
        const socket = net.connect(Number(port), hostname);
        const timer = setInterval(() => {
            if (i < 30 && Date.now() < deadline) {
                socket.write(text[i++]);
            } else {
                socket.destroy();
            }
        }, 100);
        socket.on('error', () => {});
        socket.on('close', () => {
            clearInterval(timer);
            resolve();
        });
    });
    count('slowloris');
}

const recording = readFileSync('tests/data/tiny/ref.wav').toString('base64');
async function voices() {
    const name = `soak-${random(4)}`;
    const made = await ask('POST', '/v1/audio/voices', { headers: json,
        body: JSON.stringify({ name, transcript: 'abc', file: recording, overwrite: true }) });
    if (![201, 429, 503].includes(made.status)) {
        fail('voice', `${made.status} ${made.text}`);
    }
    const gone = await ask('DELETE', `/v1/audio/voices/${name}`);
    if (![200, 404].includes(gone.status)) {
        fail('voice removed', `${gone.status} ${gone.text}`);
    }
    count('voice made and removed');
}

async function watcher() {
    await raw('GET /residency HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n', { ms: random(2000), reset: random(2) === 0 });
    for (const path of ['/health', '/metrics', '/residency', '/v1/audio/voices', '/']) {
        const answer = await ask('GET', path);
        if (answer.status !== 200) {
            fail('status', `${path} ${answer.status} ${answer.text}`);
        }
    }
    count('watched');
}

async function sleeper() {
    const answer = await ask('POST', random(4) === 0 ? '/wake' : `/sleep?level=${1 + random(3)}`);
    if (![200, 429, 503].includes(answer.status)) {
        fail('sleep', `${answer.status} ${answer.text}`);
    }
    count('sleep');
}

const kinds = [[30, () => good(0)], [8, () => good(15)], [20, leaver], [20, malformed], [3, slowloris], [5, voices], [5, watcher], [3, sleeper]];
const total = kinds.reduce((n, [weight]) => n + weight, 0);
async function client() {
    while (Date.now() < deadline) {
        let at = random(total);
        const [, run] = kinds.find(([weight]) => (at -= weight) < 0);
        await run();
    }
}

function look() {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const number = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)[1]);
    return { rss: number('RssAnon') * 1024, threads: number('Threads') };
}

for (const body of speeches) {
    const answer = await speak(body, 0);
    if (answer.status !== 200) {
        fail('first answers', `${answer.status} ${answer.text}`);
    }
    known.set(body, answer.hash);
}
const quiet = look();
deadline = Date.now() + Number(seconds) * 1000;
let warm = null;
const watch = setInterval(() => {
    if (!warm && Date.now() > deadline - Number(seconds) * 700) {
        warm = look();
    }
}, 500);
await Promise.all(Array.from({ length: CLIENTS }, client));
clearInterval(watch);
await sleep(1500);

// Afterwards all is as before: it answers, nothing is left over.
for (const body of speeches) {
    const answer = await speak(body, 0);
    if (answer.hash !== known.get(body)) {
        fail('last answers', `${body} ${answer.status} ${answer.text}`);
    }
}
const end = look();
const health = await ask('GET', '/health');
if (health.status !== 200) {
    fail('health', `${health.status} ${health.text}`);
}
if (end.threads > quiet.threads + THREADS_MOST_MORE) {
    fail('threads', `${quiet.threads} before, ${end.threads} after`);
}
if (mode !== 'no-rss' && warm && end.rss > warm.rss + RSS_GROWTH_MOST) {
    fail('memory', `${warm.rss} bytes when warm, ${end.rss} at the end`);
}
const mib = (n) => (n / 2 ** 20).toFixed(1);
console.log(JSON.stringify(counts));
console.log(`private memory: ${mib(quiet.rss)} MiB at first, ${mib(warm?.rss ?? 0)} warm, ${mib(end.rss)} at the end; `
    + `threads: ${quiet.threads}, then ${end.threads}`);
console.log(`soak: ${Object.values(counts).reduce((a, b) => a + b, 0)} passed, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
