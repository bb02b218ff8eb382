// The wave of what was made: drawn from peaks of 20 ms, what was heard in the stronger colour.

const PEAKS_A_SECOND = 50;
const SECONDS_LEAST = 4;
const BAR = 3;
const GAP = 2;

export class Wave {
    constructor(canvas, rate) {
        this.canvas = canvas;
        this.perPeak = rate / PEAKS_A_SECOND;
        this.clear();
        this.isDirty = false;
        new ResizeObserver(() => this.draw()).observe(canvas);
        matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
    }

    clear() {
        this.peaks = [];
        this.peak = 0;
        this.nInPeak = 0;
        this.heard = 0;
    }

    push(samples) {
        for (const sample of samples) {
            this.peak = Math.max(this.peak, Math.abs(sample));
            this.nInPeak++;
            if (this.nInPeak === this.perPeak) {
                this.peaks.push(this.peak / 32768);
                this.peak = 0;
                this.nInPeak = 0;
            }
        }
    }

    // Seconds that were heard.
    setHeard(seconds) {
        this.heard = seconds;
        this.draw();
    }

    draw() {
        const { clientWidth: width, clientHeight: height } = this.canvas;
        const scale = devicePixelRatio || 1;
        if (width === 0) {
            return;
        }
        if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
            this.canvas.width = Math.round(width * scale);
            this.canvas.height = Math.round(height * scale);
        }
        const style = getComputedStyle(this.canvas);
        const paint = this.canvas.getContext('2d');
        paint.setTransform(scale, 0, 0, scale, 0, 0);
        paint.clearRect(0, 0, width, height);
        const nBars = Math.floor(width / (BAR + GAP));
        const perBar = Math.max(this.peaks.length, SECONDS_LEAST * PEAKS_A_SECOND) / nBars;
        for (let i = 0; i < nBars; i++) {
            this.drawBar(paint, i, perBar, height, style);
        }
    }

    drawBar(paint, i, perBar, height, style) {
        const from = Math.floor(i * perBar);
        const to = Math.max(from + 1, Math.floor((i + 1) * perBar));
        const isMade = from < this.peaks.length;
        const loudest = isMade ? Math.max(...this.peaks.slice(from, to)) : 0;
        const isHeard = isMade && from < this.heard * PEAKS_A_SECOND;
        const h = isMade ? Math.max(3, Math.sqrt(loudest) * (height - 4)) : 1;
        paint.fillStyle = style.getPropertyValue(isHeard ? '--wave-heard' : isMade ? '--wave-made' : '--line');
        paint.beginPath();
        paint.roundRect(i * (BAR + GAP), (height - h) / 2, BAR, h, isMade ? BAR / 2 : 0);
        paint.fill();
    }
}
