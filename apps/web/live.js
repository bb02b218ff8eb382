// The live picture: units and phases as a table, memory as bars with the plan as outline, figures, sleep and wake.
import { ask, askJson } from './api.js';
import { Feed } from './feed.js';
import { bytes, find, make, rate, setText } from './page.js';

const KINDS = ['weights', 'kv', 'compute', 'staging'];
const KIND_WORDS = { weights: 'weights', kv: 'KV cache', compute: 'compute', staging: 'staging' };
const STATES = { absent: 'absent', loading: 'loading', resident: 'here', evicting: 'leaving' };
const ACTIVITIES = { idle: 'Nothing', speech: 'Speaking', voice: 'Making a voice', sleep: 'Going to sleep' };
const SLEEP_LEVELS = ['Awake', '1: scratch is given back', '2: weights have left', '3: page cache is dropped'];
const ROLES = {
    needed: { sign: '●', words: 'needed' },
    ahead: { sign: '◐', words: 'loaded ahead' },
    stays: { sign: '○', words: 'stays' },
};
const SERVER_STATES = { ok: 'Ready', loading: 'Loading', failed: 'Failed', stopping: 'Stopping', busy: 'Busy',
    gone: 'Not reachable', locked: 'Locked' };

let serverState = 'connecting';
let atRest = new Map(); /* leases of units while nothing is done */
let lastNews = null;
let feed = null;
let whenBack = () => {};

/* ---- the server's state ---- */

function setServerState(state) {
    if (state === serverState) {
        return;
    }
    const wasGone = serverState === 'gone';
    const pill = find('server-state');
    serverState = state;
    pill.dataset.state = state;
    setText(pill, SERVER_STATES[state] ?? state);
    if (state === 'gone') {
        setText(find('news'), 'The server does not answer. The page keeps trying.');
    } else if (state === 'ok' || state === 'busy') {
        setText(find('news'), wasGone ? 'The server is back.' : '');
        whenBack();
    }
}

async function loadAbout() {
    const health = await askJson('health').catch(() => null);
    if (health) {
        setText(find('model-name'), health.model);
        setText(find('about'), `Sluice ${health.version} · ${health.sample_rate} Hz · ` +
            `${health.threads} thread${health.threads === 1 ? '' : 's'}`);
    }
}

function showLost(problem, wait) {
    const isLocked = problem?.status === 401;
    find('live').dataset.stale = 'true';
    find('feed-notice').hidden = false;
    setServerState(isLocked ? 'locked' : problem?.status > 0 ? 'busy' : 'gone');
    const since = lastNews ? ` What you see is of ${lastNews.toLocaleTimeString()}.` : '';
    const again = Number.isFinite(wait) ? ` Trying again in ${Math.ceil(wait / 1000)} s.` : '';
    setText(find('feed-text'), `${problem?.message ?? 'The server ended the connection.'}${since}${again}`);
}

async function showFailure() {
    const words = await ask('health').then(() => '', (problem) => problem.message);
    find('feed-notice').hidden = words === '';
    setText(find('feed-text'), words);
}

/* ---- units and phases ---- */

// The step of the plan that runs, or -1: all that it needs is in use, and nothing that it does not know. Units that are used
// where they are in the file are in use all the time; they count only if there are no others.
function findStep(picture) {
    const steps = picture.plan?.steps ?? [];
    if (picture.activity !== 'speech' || steps.length < 2) {
        return picture.activity === 'speech' ? steps.length - 1 : -1;
    }
    const moves = new Set(picture.plan.units.filter((unit) => unit.bytes > 0).map((unit) => unit.name));
    const counted = picture.units.filter((unit) => moves.size === 0 || moves.has(unit.name));
    const used = counted.filter((unit) => unit.leases > (moves.size === 0 ? atRest.get(unit.name) ?? 0 : 0));
    return steps.findIndex((step) => used.length > 0 && used.every((unit) => unit.name in step.units) &&
        counted.every((unit) => step.units[unit.name] !== 'needed' || used.includes(unit)));
}

function stateCell(unit) {
    const chip = make('span', { className: 'chip', text: STATES[unit.state] ?? unit.state });
    const cell = make('td', {}, chip);
    chip.dataset.state = unit.state;
    if (unit.state === 'loading' && unit.slices > 1) {
        const progress = make('progress');
        progress.max = unit.slices;
        progress.value = unit.arrived;
        progress.setAttribute('aria-label', `${unit.name}: slices that have arrived`);
        cell.append(progress);
    }
    if (unit.load?.bytes > 0) {
        cell.append(make('span', { className: 'where', text: `${rate(unit.load.bytes_per_second)} by ${unit.load.route}` }));
    }
    if (unit.error) {
        cell.append(make('p', { className: 'problem', text: unit.error }));
    }
    return cell;
}

function placeWords(unit, planned) {
    const size = unit.bytes || planned?.bytes || 0;
    const where = unit.actual && unit.actual !== unit.wanted ? `${unit.actual}, not ${unit.wanted}` : unit.wanted;
    return `${where} · ${size > 0 ? bytes(size) : 'in the file'}`;
}

function roleCell(role, isNow) {
    const cell = make('td', { className: `phase${isNow ? ' now' : ''}` });
    const sign = make('span', { className: 'role', text: ROLES[role]?.sign ?? '' });
    sign.setAttribute('aria-hidden', 'true');
    cell.append(sign, make('span', { className: 'unseen', text: ROLES[role]?.words ?? 'not needed' }));
    return cell;
}

function unitRow(unit, plan, iStep) {
    const planned = plan?.units.find((other) => other.name === unit.name);
    const words = unit.name.split('.').flatMap((word, i) => (i > 0 ? ['.', make('wbr'), word] : [word]));
    const name = make('th', {}, make('span', { className: 'unit' }, ...words),
        make('span', { className: 'where', text: placeWords(unit, planned) }));
    name.scope = 'row';
    return make('tr', {}, name, stateCell(unit),
        ...(plan?.steps ?? []).map((step, i) => roleCell(step.units[unit.name], i === iStep)));
}

function headCell(text, isPhase, isNow) {
    const cell = make('th', { className: `${isPhase ? 'phase' : ''}${isNow ? ' now' : ''}`, text });
    cell.scope = 'col';
    if (isNow) {
        cell.append(make('span', { className: 'unseen', text: ', now' }));
    }
    return cell;
}

// Puts `rows` into `body`, but leaves those alone that are as they were: who reads there keeps the place.
function setRows(body, rows) {
    rows.forEach((row, i) => {
        const old = body.children[i];
        if (!old) {
            body.append(row);
        } else if (!old.isEqualNode(row)) {
            old.replaceWith(row);
        }
    });
    while (body.children.length > rows.length) {
        body.lastChild.remove();
    }
}

function showUnits(picture, iStep) {
    const { plan } = picture;
    const heads = (plan?.steps ?? []).map((step, i) => headCell(step.phase, true, i === iStep));
    setRows(find('units-head'), [headCell('Unit'), headCell('Now'), ...heads]);
    setRows(find('units-body'), picture.units.map((unit) => unitRow(unit, plan, iStep)));
    setText(find('plan-words'), plan
        ? `Plan: policy ${plan.policy}${plan.feasible ? '' : ', does not fit'}. ● needed, ◐ loaded ahead, ○ stays.`
        : 'There is no plan until the model is open.');
}

/* ---- memory ---- */

const percent = (n, whole) => `${whole > 0 ? Math.min(100, (100 * n) / whole) : 0}%`;

// What is used, kind after kind, as a share of `whole`. Widths are set, not elements replaced, so that they move.
function setParts(track, used, whole) {
    let from = 0;
    for (const kind of KINDS) {
        const part = track.querySelector(`.${kind}`) ?? track.appendChild(make('span', { className: `part ${kind}` }));
        part.style.left = percent(from, whole);
        part.style.width = percent(used[kind], whole);
        from += used[kind];
    }
}

function kindWords(used) {
    const parts = KINDS.filter((kind) => used[kind] > 0).map((kind) => `${KIND_WORDS[kind]} ${bytes(used[kind])}`);
    return parts.length > 0 ? parts.join(', ') : 'nothing';
}

function createPlace(name, steps) {
    const figure = make('div', { className: 'place' },
        make('p', { className: 'place-head' }, make('strong', { text: name }), make('span', { className: 'sum' })),
        make('div', { className: 'bar' }, make('span', { className: 'outline' })),
        make('p', { className: 'hint' }), make('p', { className: 'problem' }));
    if (steps.length > 1) {
        const phases = make('ol', { className: 'steps' }, ...steps.map((step) => make('li', {},
            make('span', { className: 'name', text: step.phase }),
            make('span', {}, make('span', { className: 'box' })),
            make('span', { className: 'size' }))));
        phases.setAttribute('aria-label', `Plan of ${name} by phase`);
        figure.append(phases);
    }
    return figure;
}

// Memory of the plan's phases: outlines below each other, the one that runs filled with what is used.
function setPhase(item, place, step, isNow, whole) {
    const peak = step.places.find((other) => other.name === place.name)?.peak.total ?? 0;
    const box = item.querySelector('.box');
    const nothing = { weights: 0, kv: 0, compute: 0, staging: 0 };
    item.classList.toggle('now', isNow);
    box.hidden = peak === 0;
    box.style.width = percent(peak, whole);
    setParts(box, isNow ? place.used : nothing, peak);
    setText(item.querySelector('.size'), peak === 0 ? 'nothing' : bytes(peak));
}

function setPlace(figure, place, picture, iStep) {
    const planned = picture.plan?.places.find((other) => other.name === place.name)?.peak;
    const { used, peak } = place;
    const highest = Math.max(used.total, peak.total, planned?.total ?? 0);
    const whole = place.budget_bytes ?? Math.max(1.25 * highest, 1);
    const outline = figure.querySelector('.outline');
    const lost = place.lost_bytes > 0 ? `${bytes(place.lost_bytes)} were lost when the device failed.` : '';
    setText(figure.querySelector('.sum'), place.budget_bytes === null ? `${bytes(used.total)}, no budget`
        : `${bytes(used.total)} of ${bytes(place.budget_bytes)} (${place.budget_source})`);
    figure.querySelector('.bar').classList.toggle('open', place.budget_bytes === null);
    outline.hidden = !planned || planned.total === 0;
    outline.style.width = percent(planned?.total ?? 0, whole);
    setParts(figure.querySelector('.bar'), used, whole);
    setText(figure.querySelector('.hint'), `In use: ${kindWords(used)}. Highest: ${bytes(peak.total)}` +
        `${planned ? `; planned: at most ${bytes(planned.total)}` : ''}.`);
    setText(figure.querySelector('.problem'), lost);
    (picture.plan?.steps ?? []).forEach((step, i) => {
        const item = figure.querySelectorAll('.steps > li')[i];
        if (item) {
            setPhase(item, place, step, i === iStep, whole);
        }
    });
}

function showPlaces(picture, iStep) {
    const list = find('places');
    const steps = picture.plan?.steps ?? [];
    const places = picture.places.filter((place) => place.used);
    const shape = JSON.stringify([places.map((place) => place.name), steps.map((step) => step.phase)]);
    if (list.dataset.shape !== shape) {
        list.dataset.shape = shape;
        list.replaceChildren(...places.map((place) => createPlace(place.name, steps)));
    }
    places.forEach((place, i) => setPlace(list.children[i], place, picture, iStep));
}

/* ---- all of it ---- */

function showPicture(picture) {
    lastNews = new Date();
    find('feed-notice').hidden = true;
    find('live').dataset.stale = 'false';
    setServerState(picture.status);
    const { running, waiting, limit } = picture.queue;
    setText(find('figure-activity'), ACTIVITIES[picture.activity] ?? (running > 0 ? 'Working' : 'Nothing'));
    setText(find('figure-queue'), `${waiting} of ${limit}`);
    setText(find('figure-frames'), (picture.frames_total ?? 0).toLocaleString());
    setText(find('figure-sleep'), SLEEP_LEVELS[picture.sleep_level] ?? String(picture.sleep_level));
    if (picture.status === 'failed') {
        showFailure();
    }
    if (!picture.units) {
        return;
    }
    if (picture.activity === 'idle') {
        atRest = new Map(picture.units.map((unit) => [unit.name, unit.leases]));
    }
    const iStep = findStep(picture);
    showUnits(picture, iStep);
    showPlaces(picture, iStep);
}

async function setSleep(path, doing, done) {
    setText(find('sleep-problem'), '');
    setText(find('sleep-status'), doing);
    try {
        await ask(path, { method: 'POST' });
        setText(find('news'), done);
    } catch (error) {
        setText(find('sleep-problem'), error.message);
    }
    setText(find('sleep-status'), '');
}

// onBack() is called whenever the server has become ready.
export function startLive(onBack) {
    whenBack = () => {
        loadAbout();
        onBack();
    };
    feed = new Feed({ onPicture: showPicture, onLost: showLost });
    find('feed-retry').addEventListener('click', () => feed.start());
    find('sleep-form').addEventListener('submit', (event) => {
        event.preventDefault();
        setSleep(`sleep?level=${find('level').value}`, 'Going to sleep when what waits is done…', 'Asleep.');
    });
    find('wake').addEventListener('click', () => setSleep('wake', 'Waking…', 'Awake.'));
    feed.start();
    loadAbout();
}

export function restartLive() {
    feed.start();
}
