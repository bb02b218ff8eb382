// The text becomes sound: one request, played and drawn while it comes, kept for a download.
import { ask, isAbort, Problem } from './api.js';
import { find, seconds, setProblem, setText } from './page.js';
import { Player } from './player.js';
import { createSampler, wavOf } from './wav.js';
import { Wave } from './wave.js';

const RATE = 24000; /* of the API's pcm format */
const FIELDS = ['input', 'voice', 'seed', 'temperature', 'top_p', 'top_k', 'max_frames'];
const NUMBERS = [
    { id: 'seed', pattern: /^\d{1,19}$/, words: 'A seed is a whole number of at most 19 digits.' },
    { id: 'temperature', pattern: /^\d*\.?\d+$/, words: 'The temperature is a number such as 0.8.' },
    { id: 'top_p', pattern: /^\d*\.?\d+$/, words: 'Top p is a number from 0 to 1.' },
    { id: 'top_k', pattern: /^\d+$/, words: 'Top k is a whole number.' },
    { id: 'max_frames', pattern: /^\d+$/, words: 'Frames are a whole number from 1.' },
];

const FRAME = 40; /* ms; oftener would take from who makes the sound */

const calm = matchMedia('(prefers-reduced-motion: reduce)');
const player = new Player(RATE, show);
const wave = new Wave(find('wave'), RATE);
let running = null; /* the request: {abort, seed, firstMs} */
let last = null; /* the one that `download` is of */
let ticker = null;

function clearProblems() {
    FIELDS.forEach((id) => setProblem(id, ''));
    setProblem('speak', '');
}

// Near its cause: under the field that the server names, else under the button.
function tell(problem) {
    const id = FIELDS.includes(problem.param) ? problem.param : 'speak';
    setProblem(id, problem.message);
    if (id !== 'speak') {
        if (find('more').contains(find(id))) {
            find('more').open = true;
        }
        find(id).focus();
    }
}

// The body, or null after having said what is wrong. Numbers go as they were typed: a seed has more digits than a double.
function readForm() {
    const body = { model: 'sluice', input: find('input').value, response_format: 'pcm' };
    if (body.input.trim() === '') {
        tell(new Problem('Type what is to be said.', { param: 'input' }));
        return null;
    }
    if (find('voice').value !== '') {
        body.voice = find('voice').value;
    }
    let text = JSON.stringify(body);
    for (const { id, pattern, words } of NUMBERS) {
        const value = find(id).value.trim();
        if (value === '') {
            continue;
        }
        if (!pattern.test(value)) {
            tell(new Problem(words, { param: id }));
            return null;
        }
        const plain = value.replace(/^0+(?=\d)/, '').replace(/^\./, '0.');
        text = `${text.slice(0, -1)},"${id}":${plain}}`;
    }
    return text;
}

async function receive(response, request) {
    const reader = response.body.getReader();
    const toSamples = createSampler();
    for (;;) {
        let piece;
        try {
            piece = await reader.read();
        } catch (error) {
            if (isAbort(error)) {
                throw error;
            }
            throw new Problem(`The sound broke off after ${seconds(player.secondsMade)}: the server ended it. ` +
                'What has come can be played and downloaded.');
        }
        if (piece.done) {
            return;
        }
        if (running !== request) {
            await reader.cancel();
            return;
        }
        request.firstMs ??= performance.now() - request.begin;
        const samples = toSamples(piece.value);
        wave.push(samples);
        player.push(samples);
    }
}

async function speak() {
    clearProblems();
    const body = readForm();
    if (body === null || running) {
        return;
    }
    const request = { abort: new AbortController(), begin: performance.now(), firstMs: null, seed: '' };
    running = request;
    last = request;
    player.begin();
    wave.clear();
    dropDownload();
    show();
    try {
        const response = await ask('v1/audio/speech', { method: 'POST', body,
            headers: { 'Content-Type': 'application/json' }, signal: request.abort.signal });
        request.seed = response.headers.get('X-Seed') ?? '';
        await receive(response, request);
    } catch (error) {
        if (!isAbort(error)) {
            tell(error);
            request.hasFailed = true;
        }
    }
    if (running === request) {
        running = null;
        finish(request);
    }
}

function finish(request) {
    if (player.nMade > 0) {
        offerDownload(request);
        player.complete();
    } else {
        player.halt();
    }
    show();
}

function stop() {
    const request = running;
    running = null;
    request?.abort.abort();
    player.halt();
    if (last) {
        last.wasStopped = true;
    }
    if (request && player.nMade > 0) {
        offerDownload(request);
    }
    player.isComplete = true;
    show();
}

/* ---- the file ---- */

function dropDownload() {
    const link = find('download');
    URL.revokeObjectURL(link.href);
    link.removeAttribute('href');
    link.setAttribute('aria-disabled', 'true');
}

function offerDownload(request) {
    const link = find('download');
    link.href = URL.createObjectURL(wavOf(player.parts, RATE));
    link.download = `sluice${request.seed === '' ? '' : `-${request.seed}`}.wav`;
    link.removeAttribute('aria-disabled');
}

/* ---- what is shown ---- */

function status() {
    if (running && player.nMade === 0) {
        return 'Waiting for the first sound…';
    }
    if (player.isPlaying && player.isWaiting && player.secondsHeard > 0) {
        return 'It is made slower than it is spoken; waiting for more…';
    }
    if (player.isPlaying) {
        return player.isSilent ? 'The browser does not play sound here. It can be downloaded when it is done.'
            : running ? 'Speaking…' : 'All of it is made; still speaking…';
    }
    if (!last || player.nMade === 0) {
        return last?.wasStopped ? 'Stopped.' : '';
    }
    return last.wasStopped ? 'Stopped.' : last.hasFailed ? 'Not complete.' : 'Done.';
}

function figures() {
    if (player.nMade === 0) {
        return '';
    }
    const parts = [`${seconds(player.secondsHeard)} of ${seconds(player.secondsMade)}${running ? ' made so far' : ''}`];
    if (last?.firstMs) {
        parts.push(`first sound after ${Math.round(last.firstMs)} ms`);
    }
    if (last?.seed) {
        parts.push(`seed ${last.seed}`);
    }
    return parts.join(' · ');
}

function show() {
    const isActive = running !== null || player.isPlaying;
    const speakButton = find('speak');
    const stopButton = find('stop');
    if (stopButton.hidden === isActive) {
        const hadFocus = [speakButton, stopButton].includes(document.activeElement);
        speakButton.hidden = isActive;
        stopButton.hidden = !isActive;
        if (hadFocus) {
            (isActive ? stopButton : speakButton).focus();
        }
    }
    find('again').disabled = isActive || player.nMade === 0;
    document.body.dataset.speech = running ? 'making' : player.isPlaying ? 'playing' : 'idle';
    setText(find('speak-status'), status());
    if (!isActive) {
        draw();
    }
    tick();
}

function draw() {
    setText(find('speak-figures'), figures());
    wave.setHeard(player.secondsHeard);
}

// Draws while something moves; less often for those who want calm, and not at all while nobody sees it.
function tick() {
    if (ticker === null && (running || player.isPlaying)) {
        ticker = setTimeout(() => requestAnimationFrame(() => {
            ticker = null;
            draw();
            tick();
        }), calm.matches ? 500 : FRAME);
    }
}

export function startSpeech() {
    find('speak-form').addEventListener('submit', (event) => {
        event.preventDefault();
        speak();
    });
    find('stop').addEventListener('click', stop);
    find('again').addEventListener('click', () => {
        player.again();
        show();
    });
    find('input').addEventListener('keydown', (event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !running) {
            event.preventDefault();
            speak();
        }
    });
    FIELDS.forEach((id) => find(id).addEventListener('input', () => setProblem(id, '')));
    show();
}
