// Requests to the server, and what is wrong with them in words for the person at the page.

const KEY = 'sluice-api-key';
let key = '';
try {
    key = sessionStorage.getItem(KEY) ?? '';
} catch {
    // No storage: the key lasts as long as the page.
}

// `param` is the field of the request that is at fault, if one is; `status` 0 is a server that does not answer.
export class Problem extends Error {
    constructor(message, { status = 0, param = null, code = null, retryAfter = 0 } = {}) {
        super(message);
        Object.assign(this, { status, param, code, retryAfter });
    }
}

export const isAbort = (error) => error?.name === 'AbortError';

export const hasKey = () => key !== '';

export function setKey(value) {
    key = value;
    try {
        sessionStorage.setItem(KEY, value);
    } catch {
        // As above.
    }
}

const keyListeners = [];
export const onKeyWanted = (listener) => keyListeners.push(listener);

export function sentence(text) {
    const trimmed = text.trim();
    if (trimmed === '') {
        return '';
    }
    const isName = /^\w*_/.test(trimmed); /* of a field of the API */
    return (isName ? trimmed[0] : trimmed[0].toUpperCase()) + trimmed.slice(1) + (/[.!?]$/.test(trimmed) ? '' : '.');
}

const inSeconds = (n) => `in ${n} second${n === 1 ? '' : 's'}`;

function words(status, message, retryAfter) {
    const said = sentence(message.replace(/; try later$/, ''));
    switch (status) {
    case 401:
        return hasKey() ? 'The server refused this key.' : 'The server wants an API key.';
    case 429:
        return `The server is busy: ${said || 'its queue is full.'} Try again ${inSeconds(retryAfter)}.`;
    case 503:
        return `The server cannot do it now: ${said || 'it is starting or stopping.'} Try again ${inSeconds(retryAfter)}.`;
    case 507:
        return `The server has no room for it: ${said}`;
    default:
        return said || `The server answered ${status} without saying why.`;
    }
}

async function problemOf(response) {
    const text = await response.text().catch(() => '');
    let error = {};
    try {
        const body = JSON.parse(text);
        error = typeof body.error === 'object' && body.error !== null ? body.error : { message: String(body.error ?? '') };
    } catch {
        // Something between us and the server answered; its page is not for reading.
        error = { message: text.startsWith('<') ? '' : text.slice(0, 300) };
    }
    const retryAfter = Number(response.headers.get('Retry-After')) || 1;
    return new Problem(words(response.status, error.message ?? '', retryAfter),
        { status: response.status, param: error.param ?? null, code: error.code ?? null, retryAfter });
}

// A fetch that throws a Problem unless the answer is 2xx, or an AbortError. Paths are relative, so that the page also works
// under a folder of a proxy.
export async function ask(path, { method = 'GET', headers = {}, body, signal } = {}) {
    const all = key === '' ? headers : { ...headers, Authorization: `Bearer ${key}` };
    let response;
    try {
        response = await fetch(path, { method, headers: all, body, signal, cache: 'no-store', credentials: 'same-origin' });
    } catch (error) {
        if (isAbort(error)) {
            throw error;
        }
        throw new Problem('The server does not answer. Is it still running?');
    }
    if (response.ok) {
        return response;
    }
    const problem = await problemOf(response);
    if (problem.status === 401) {
        keyListeners.forEach((listener) => listener(problem));
    }
    throw problem;
}

export const askJson = async (path, options) => (await ask(path, options)).json();
