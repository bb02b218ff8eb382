// How long clients wait for their first byte of sound when 1, 8 and 32 of them come at once:
//   node tests/server/first_byte.mjs URL
// Waiting in the queue is told apart from the work: the server's own histogram starts when a request's turn comes.
import http from 'node:http';

const [url] = process.argv.slice(2);
const { hostname, port } = new URL(url);
const body = JSON.stringify({ input: 'Hello there, how are you?', response_format: 'pcm', seed: 3 });

function speak() {
    return new Promise((resolve, reject) => {
        const begin = process.hrtime.bigint();
        let first = null;
        const ms = () => Number(process.hrtime.bigint() - begin) / 1e6;
        const request = http.request({ hostname, port, method: 'POST', path: '/v1/audio/speech', agent: false,
            headers: { 'Content-Type': 'application/json' } }, (response) => {
            response.on('data', () => {
                first ??= ms();
            });
            response.on('end', () => resolve({ status: response.statusCode, first, all: ms() }));
        });
        request.on('error', reject);
        request.end(body);
    });
}

async function metrics() {
    const text = await new Promise((resolve) => http.get(`${url}/metrics`, (response) => {
        let all = '';
        response.on('data', (data) => {
            all += data;
        });
        response.on('end', () => resolve(all));
    }));
    const number = (name) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)[1]);
    return { first: number('sluice_first_audio_seconds_sum'), n: number('sluice_first_audio_seconds_count'),
        busy: number('sluice_busy_seconds_total'), frames: number('sluice_frames_total') };
}

await speak();
console.log('clients  first byte: soonest   median     last   from its turn to the first sound   a frame');
for (const n of [1, 8, 32]) {
    const before = await metrics();
    const answers = await Promise.all(Array.from({ length: n }, speak));
    const after = await metrics();
    if (answers.some((a) => a.status !== 200)) {
        console.log(`not all were served: ${answers.map((a) => a.status)}`);
        process.exitCode = 1;
    }
    const firsts = answers.map((a) => a.first).sort((a, b) => a - b);
    const turn = (after.first - before.first) / (after.n - before.n) * 1000;
    const frame = (after.busy - before.busy) / (after.frames - before.frames) * 1000;
    const ms = (x) => `${x.toFixed(1)} ms`.padStart(9);
    console.log(`${String(n).padStart(7)}            ${ms(firsts[0])}${ms(firsts[n >> 1])}${ms(firsts.at(-1))}`
        + `${ms(turn).padStart(36)}${ms(frame)}`);
}
