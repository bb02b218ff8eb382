// A recording from the microphone, as WAV; its level while it runs.
import { wavOfSound } from './wav.js';

const SECONDS_MOST = 60;

// What the browser says about a microphone, in words.
export function microphoneWords(error) {
    switch (error?.name) {
    case 'NotAllowedError':
    case 'SecurityError':
        return 'The browser may not use the microphone. Allow it in the settings of this site, or choose a file.';
    case 'NotFoundError':
        return 'There is no microphone. Plug one in, or choose a file.';
    case 'NotReadableError':
        return 'The microphone is in use by another program. Close that, or choose a file.';
    default:
        return `The microphone does not work: ${error?.message ?? error}. Choose a file instead.`;
    }
}

export class Recorder {
    // onProgress(seconds, level of 0 to 1); onEnd({wav, seconds}) or onEnd(null, what is wrong, if anything).
    constructor({ onProgress, onEnd }) {
        this.onProgress = onProgress;
        this.onEnd = onEnd;
        this.recorder = null;
        this.isWanted = false;
    }

    async start() {
        if (!navigator.mediaDevices?.getUserMedia || typeof MediaRecorder === 'undefined') {
            this.onEnd(null, 'Browsers record only on pages of this machine or over https. Choose a file instead.');
            return;
        }
        this.isWanted = true;
        try {
            // As it is: what phones do to speech is not part of a voice.
            this.stream = await navigator.mediaDevices.getUserMedia({ audio: {
                echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 } });
        } catch (error) {
            this.isWanted = false;
            this.onEnd(null, microphoneWords(error));
            return;
        }
        if (this.isWanted) {
            this.record();
        } else {
            this.release(); /* stopped before it was allowed */
            this.onEnd(null, '');
        }
    }

    record() {
        const pieces = [];
        this.recorder = new MediaRecorder(this.stream, { audioBitsPerSecond: 256000 });
        this.recorder.ondataavailable = (event) => pieces.push(event.data);
        this.recorder.onstop = () => this.end(new Blob(pieces, { type: this.recorder.mimeType }));
        this.recorder.onerror = (event) => this.fail(microphoneWords(event.error));
        this.recorder.start();
        this.begin = performance.now();
        this.context = new AudioContext();
        this.meter = this.context.createAnalyser();
        this.context.createMediaStreamSource(this.stream).connect(this.meter);
        this.timer = setInterval(() => this.tick(), 100);
    }

    tick() {
        const samples = new Float32Array(this.meter.fftSize);
        const passed = (performance.now() - this.begin) / 1000;
        this.meter.getFloatTimeDomainData(samples);
        this.onProgress(passed, Math.min(1, Math.max(...samples.map(Math.abs))));
        if (passed >= SECONDS_MOST) {
            this.stop();
        }
    }

    stop() {
        this.isWanted = false;
        if (this.recorder?.state === 'recording') {
            this.recorder.stop();
        }
    }

    // Without a result.
    discard() {
        this.isWanted = false;
        if (this.recorder) {
            this.recorder.onstop = null;
            this.stop();
            this.release();
        }
    }

    fail(words) {
        this.discard();
        this.onEnd(null, words);
    }

    release() {
        clearInterval(this.timer);
        this.stream?.getTracks().forEach((track) => track.stop());
        this.context?.close();
        this.context = null;
        this.stream = null;
        this.recorder = null;
    }

    async end(blob) {
        this.release();
        try {
            this.onEnd(await wavOfSound(blob));
        } catch {
            this.onEnd(null, 'The recording could not be read back. Choose a file instead.');
        }
    }
}
