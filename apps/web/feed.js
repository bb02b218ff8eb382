// What the server tells about itself, as long as the page is seen: events of /residency, again and again.
import { ask, isAbort } from './api.js';
import { createParser } from './sse.js';

const SILENCE_MOST = 40000; /* the server gives a sign of life every 15 s */
const WAIT_FIRST = 500;
const WAIT_MOST = 10000;

export class Feed {
    // onPicture(picture); onLost(problem, ms until the next try), problem is null when nothing is wrong but the end came.
    constructor({ onPicture, onLost }) {
        this.onPicture = onPicture;
        this.onLost = onLost;
        this.abort = null;
        this.wait = WAIT_FIRST;
        document.addEventListener('visibilitychange', () => (document.hidden ? this.stop() : this.start()));
        addEventListener('online', () => this.start());
    }

    // A hidden page gives its connection back: a browser has only six of them for a server.
    stop() {
        clearTimeout(this.timer);
        this.abort?.abort();
        this.abort = null;
    }

    start() {
        this.stop();
        if (!document.hidden) {
            this.run();
        }
    }

    async run() {
        const abort = new AbortController();
        let problem = null;
        this.abort = abort;
        try {
            const response = await ask('residency', { headers: { Accept: 'text/event-stream' }, signal: abort.signal });
            await this.read(response.body.getReader(), abort);
        } catch (error) {
            problem = isAbort(error) ? null : error;
        }
        if (this.abort !== abort) {
            return; /* stopped or begun anew */
        }
        this.abort = null;
        const isForMe = problem?.status === 401;
        const wait = isForMe ? Infinity : Math.max(this.wait, 1000 * (problem?.retryAfter ?? 0));
        this.wait = Math.min(WAIT_MOST, 2 * this.wait);
        this.onLost(problem, wait);
        if (!isForMe) {
            this.timer = setTimeout(() => this.start(), wait);
        }
    }

    async read(reader, abort) {
        let watch = 0;
        const parse = createParser((name, data) => {
            if (name === 'residency') {
                this.wait = WAIT_FIRST;
                this.onPicture(JSON.parse(data));
            }
        });
        try {
            for (;;) {
                watch = setTimeout(() => abort.abort(), SILENCE_MOST);
                const { done, value } = await reader.read();
                clearTimeout(watch);
                if (done) {
                    return;
                }
                parse(value);
            }
        } finally {
            clearTimeout(watch);
        }
    }
}
