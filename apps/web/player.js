// Plays PCM while it arrives, without gaps as long as it arrives in time.
//
// Pieces become buffers that start on the sample where the one before ended. Scheduling is driven by what arrives and by
// buffers that end, never by timers or frames: those stand still in a hidden tab. At most AHEAD seconds are scheduled, so
// an hour of sound is kept once, as 16-bit numbers. When sound comes too late, more of it is waited for before it goes on,
// each time twice as much: a few long pauses are easier to listen to than many short ones.

const AHEAD = 12;
const BLOCK = 0.25; /* seconds of a buffer, once there is plenty */
const LEAD_FIRST = 0.15;
const LEAD_MOST = 6;
const START_DELAY = 0.03;

export class Player {
    // onChange() is called whenever a figure or a flag may have changed.
    constructor(rate, onChange) {
        this.rate = rate;
        this.onChange = onChange;
        this.context = null;
        this.clear();
    }

    clear() {
        this.parts = [];
        this.nMade = 0;
        this.isComplete = false;
        this.rewind();
    }

    rewind() {
        this.sources = new Set();
        this.iPart = 0;
        this.atPart = 0;
        this.nScheduled = 0;
        this.nHeard = 0;
        this.run = null; /* the stretch that plays: {time, sample} of its start */
        this.nextTime = 0;
        this.lead = LEAD_FIRST;
        this.isPlaying = false;
        this.isWaiting = false;
    }

    // Within a click, or browsers stay silent.
    open() {
        try {
            this.context ??= this.createContext();
            this.context.resume().catch(() => {}); /* isSilent tells */
        } catch {
            this.context = null; /* likewise */
        }
    }

    // The browser does not let us be heard, or has nothing to be heard through.
    get isSilent() {
        return this.context?.state !== 'running';
    }

    createContext() {
        try {
            return new AudioContext({ sampleRate: this.rate, latencyHint: 'interactive' });
        } catch {
            return new AudioContext(); /* a device that insists on its own rate; buffers are converted one by one */
        }
    }

    begin() {
        this.halt();
        this.clear();
        this.open();
        this.isPlaying = true;
        this.isWaiting = true;
    }

    push(samples) {
        if (samples.length > 0) {
            this.parts.push(samples);
            this.nMade += samples.length;
            this.pump();
            this.onChange();
        }
    }

    complete() {
        this.isComplete = true;
        this.pump();
        this.settle();
    }

    again() {
        this.halt();
        this.rewind();
        this.open();
        this.isPlaying = true;
        this.isWaiting = true;
        this.pump();
    }

    // Silence at once. What was made stays.
    halt() {
        const sources = this.sources;
        this.nHeard = this.countHeard();
        this.sources = new Set();
        sources.forEach((source) => {
            source.onended = null;
            source.stop();
            source.disconnect();
        });
        this.end();
    }

    end() {
        this.isPlaying = false;
        this.isWaiting = false;
        this.context?.suspend().catch(() => {}); /* lets the device go */
    }

    get secondsMade() {
        return this.nMade / this.rate;
    }

    get secondsHeard() {
        return this.countHeard() / this.rate;
    }

    countHeard() {
        if (!this.isPlaying || !this.run) {
            return this.nHeard;
        }
        const since = this.context.currentTime - this.run.time;
        return Math.max(this.run.sample, Math.min(this.nScheduled, this.run.sample + Math.round(since * this.rate)));
    }

    // Schedules what there is, in blocks once there is plenty.
    pump() {
        if (!this.isPlaying || !this.context || this.nScheduled === this.nMade) {
            return;
        }
        const now = this.context.currentTime;
        if (this.nScheduled > 0 && this.nextTime < now) {
            this.wait();
        }
        if (this.isWaiting && !this.startStretch(now)) {
            return;
        }
        while (this.nScheduled < this.nMade && this.nextTime - now < AHEAD) {
            const n = Math.min(this.nMade - this.nScheduled, Math.round(BLOCK * this.rate));
            const isPlenty = this.nextTime - now > 2 * BLOCK;
            if (isPlenty && !this.isComplete && n < BLOCK * this.rate) {
                break;
            }
            this.schedule(n);
        }
    }

    wait() {
        if (!this.isWaiting) {
            this.isWaiting = true;
            this.lead = Math.min(LEAD_MOST, 2 * this.lead);
        }
    }

    // False if it is too early for it.
    startStretch(now) {
        if (!this.isComplete && this.nMade - this.nScheduled < this.lead * this.rate) {
            return false;
        }
        this.nextTime = now + START_DELAY;
        this.run = { time: this.nextTime, sample: this.nScheduled };
        this.isWaiting = false;
        return true;
    }

    schedule(n) {
        const buffer = this.context.createBuffer(1, n, this.rate);
        this.copyTo(buffer.getChannelData(0));
        const source = this.context.createBufferSource();
        source.buffer = buffer;
        source.connect(this.context.destination);
        source.onended = () => {
            source.disconnect();
            this.sources.delete(source);
            this.pump();
            this.settle();
        };
        source.start(this.nextTime);
        this.sources.add(source);
        this.nScheduled += n;
        // Counted from the start of the stretch, so that rounding does not add up.
        this.nextTime = this.run.time + (this.nScheduled - this.run.sample) / this.rate;
    }

    copyTo(floats) {
        let at = 0;
        while (at < floats.length) {
            const part = this.parts[this.iPart];
            const n = Math.min(part.length - this.atPart, floats.length - at);
            for (let i = 0; i < n; i++) {
                floats[at + i] = part[this.atPart + i] / 32768;
            }
            at += n;
            this.atPart += n;
            if (this.atPart === part.length) {
                this.iPart++;
                this.atPart = 0;
            }
        }
    }

    // A buffer ended, or nothing more will come.
    settle() {
        if (this.isPlaying && this.sources.size === 0) {
            if (this.isComplete && (!this.context || this.nScheduled === this.nMade)) {
                this.nHeard = this.nScheduled;
                this.end();
            } else {
                this.wait();
            }
        }
        this.onChange();
    }
}
