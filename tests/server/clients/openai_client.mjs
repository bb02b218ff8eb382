// The official client against a running server: node openai_client.mjs URL NPM_FOLDER OUT_FOLDER RECORDING
// Prints one line for each check that fails, and the count at the end.
import { createRequire } from 'node:module';
import { createHash } from 'node:crypto';
import { writeFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [url, packages, out, recording] = process.argv.slice(2);
const OpenAI = createRequire(join(packages, 'index.js'))('openai');
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: process.env.SLUICE_TEST_KEY ?? 'unused', maxRetries: 0 });

let passed = 0;
let failed = 0;
function check(name, condition, detail = '') {
    if (condition) {
        passed++;
    } else {
        failed++;
        console.log(`FAILED ${name} ${detail}`);
    }
}
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex');
const speech = (more) => ({ model: 'tts-1', voice: 'alloy', input: 'Hello there.', seed: 11, ...more });

const types = {
    mp3: ['audio/mpeg', (b) => b[0] === 0xff && (b[1] & 0xe0) === 0xe0],
    opus: ['audio/ogg', (b) => b.subarray(0, 4).toString() === 'OggS'],
    flac: ['audio/flac', (b) => b.subarray(0, 4).toString() === 'fLaC'],
    wav: ['audio/wav', (b) => b.subarray(0, 4).toString() === 'RIFF'],
    pcm: ['audio/pcm', (b) => b.length % 2 === 0 && b.length > 1000],
};

for (const [format, [type, looksRight]] of Object.entries(types)) {
    const response = await client.audio.speech.create(speech({ response_format: format }));
    const bytes = Buffer.from(await response.arrayBuffer());
    check(`type_${format}`, response.headers.get('content-type') === type, response.headers.get('content-type'));
    check(`bytes_${format}`, looksRight(bytes), `${bytes.length} bytes`);
    writeFileSync(join(out, `speech.${format}`), bytes);
}

{
    const response = await client.audio.speech.create(speech({}));
    check('default_is_mp3', response.headers.get('content-type') === 'audio/mpeg');
    await response.arrayBuffer();
}
{
    // As a stream, piece by piece, and the same to the bit as the whole.
    const whole = readFileSync(join(out, 'speech.pcm'));
    const response = await client.audio.speech.create(speech({ response_format: 'pcm' }));
    const pieces = [];
    for await (const piece of response.body) {
        pieces.push(Buffer.from(piece));
    }
    check('stream_comes_in_pieces', pieces.length > 1, `${pieces.length}`);
    check('stream_is_the_same', hash(Buffer.concat(pieces)) === hash(whole));
}
{
    const whole = readFileSync(join(out, 'speech.pcm'));
    const response = await client.audio.speech.create(speech({ response_format: 'pcm', stream_format: 'sse' }));
    const text = await response.text();
    const events = text.split('\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)));
    const sound = Buffer.concat(events.filter((e) => e.type === 'speech.audio.delta')
        .map((e) => Buffer.from(e.audio, 'base64')));
    check('events_are_the_same', hash(sound) === hash(whole));
    check('events_end', events.at(-1).type === 'speech.audio.done' && events.at(-1).usage.output_tokens > 0);
}
{
    const models = await client.models.list();
    check('models', models.data.length === 1 && models.data[0].object === 'model');
    const one = await client.models.retrieve(models.data[0].id);
    check('model', one.id === models.data[0].id);
}

async function refuses(name, what, status, param) {
    try {
        await what();
        check(name, false, 'was not refused');
    } catch (e) {
        check(name, e instanceof OpenAI.APIError && e.status === status && (param === undefined || e.param === param),
            `${e.constructor.name} ${e.status} ${e.param} ${e.message}`);
    }
}
await refuses('aac', () => client.audio.speech.create(speech({ response_format: 'aac' })), 400, 'response_format');
await refuses('no_voice', () => client.audio.speech.create(speech({ voice: 'nobody' })), 404, 'voice');
await refuses('speed', () => client.audio.speech.create(speech({ speed: 2 })), 400, 'speed');
await refuses('empty', () => client.audio.speech.create(speech({ input: '' })), 400, 'input');
await refuses('no_model', () => client.models.retrieve('other'), 404, 'model');

{
    // A voice from a recording, through the client's own upload.
    const form = new FormData();
    form.set('name', 'recorded');
    form.set('transcript', 'hello');
    form.set('file', new Blob([readFileSync(recording)]), 'recording.wav');
    const made = await client.post('/audio/voices', { body: form });
    check('voice_made', made.id === 'recorded' && made.object === 'voice');
    const response = await client.audio.speech.create(speech({ voice: 'recorded', response_format: 'pcm' }));
    check('voice_speaks', (await response.arrayBuffer()).byteLength > 1000);
    const listed = await client.get('/audio/voices');
    check('voice_listed', listed.data.some((v) => v.id === 'recorded'));
    const gone = await client.delete('/audio/voices/recorded');
    check('voice_removed', gone.deleted === true);
}
{
    // A client that changes its mind.
    const controller = new AbortController();
    const response = await client.audio.speech.create(
        speech({ input: 'A long text that nobody wants to hear to its end. '.repeat(20), response_format: 'pcm' }),
        { signal: controller.signal });
    let aborted = false;
    try {
        for await (const piece of response.body) {
            if (piece.length > 0) {
                controller.abort();
            }
        }
    } catch (e) {
        aborted = e.name === 'AbortError' || e instanceof OpenAI.APIUserAbortError;
    }
    check('abort', aborted);
    const again = await client.audio.speech.create(speech({ response_format: 'pcm' }));
    check('after_abort_the_same', hash(Buffer.from(await again.arrayBuffer())) === hash(readFileSync(join(out, 'speech.pcm'))));
}

console.log(`openai: ${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
