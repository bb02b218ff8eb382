// The real program for the tests of the page: started, asked, killed.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const MODEL = ['-m', 'models/demo/demo-voice-q8_0.gguf', '-t', 'models/demo/tokenizer.json'];

export const scratch = mkdtempSync(path.join(tmpdir(), 'sluice-web-'));
const children = new Set();
process.on('exit', () => {
    children.forEach((child) => child.kill('SIGKILL'));
    rmSync(scratch, { recursive: true, force: true });
});

// {url, port, kill()} once it is ready. `key` is its API key.
export async function serve(program, { port = 0, key = '', args = [] } = {}) {
    const env = { ...process.env };
    delete env.SLUICE_API_KEY;
    if (key !== '') {
        env.SLUICE_API_KEY = key;
    }
    const child = spawn(program, ['serve', '--port', String(port), '--threads', '1',
        '--voice-dir', path.join(scratch, 'voices'), ...MODEL, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.add(child);
    const ended = new Promise((done) => ['exit', 'error'].forEach((event) => child.once(event, () => {
        children.delete(child);
        done();
    })));
    let out = '';
    let err = '';
    let timer;
    child.stdout.on('data', (data) => {
        out += data;
    });
    await new Promise((done, fail) => {
        child.stderr.on('data', (data) => {
            err += data;
            if (err.includes('ready:')) {
                done();
            }
        });
        ended.then(() => fail(new Error(`the server did not start:\n${err}`)));
        timer = setTimeout(() => fail(new Error(`the server is not ready:\n${err}`)), 60000);
    }).finally(() => clearTimeout(timer));
    const url = out.match(/listening on (\S+)/)[1];
    return {
        url,
        port: Number(new URL(url).port),
        async kill() {
            child.kill('SIGKILL');
            await ended;
        },
        ask: (at, options = {}) => fetch(url + at, { ...options,
            headers: { ...(key === '' ? {} : { Authorization: `Bearer ${key}` }), ...options.headers } }),
    };
}

export async function pcmOf(server, body) {
    const answer = await server.ask('/v1/audio/speech', { method: 'POST', headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ response_format: 'pcm', ...body }) });
    if (!answer.ok) {
        throw new Error(`${answer.status} ${await answer.text()}`);
    }
    return Buffer.from(await answer.arrayBuffer());
}
