// PCM of 16 bits and one channel: out of a stream, into a WAV file.

// Bytes of a stream as whole samples; a piece may end between the two bytes of one.
export function createSampler() {
    let odd = [];
    return (piece) => {
        const n = piece.length + odd.length;
        const whole = new Uint8Array(n - (n % 2));
        if (whole.length > 0) {
            whole.set(odd);
            whole.set(piece.subarray(0, whole.length - odd.length), odd.length);
            odd = n % 2 === 1 ? [piece[piece.length - 1]] : [];
        } else {
            odd = [...odd, ...piece];
        }
        return new Int16Array(whole.buffer);
    };
}

function head(nBytes, rate) {
    const view = new DataView(new ArrayBuffer(44));
    const tag = (at, text) => [...text].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
    tag(0, 'RIFF');
    view.setUint32(4, 36 + nBytes, true);
    tag(8, 'WAVEfmt ');
    view.setUint32(16, 16, true);
    view.setUint16(20, 1, true);
    view.setUint16(22, 1, true);
    view.setUint32(24, rate, true);
    view.setUint32(28, 2 * rate, true);
    view.setUint16(32, 2, true);
    view.setUint16(34, 16, true);
    tag(36, 'data');
    view.setUint32(40, nBytes, true);
    return view.buffer;
}

// parts: Int16Arrays, in order.
export function wavOf(parts, rate) {
    const nBytes = parts.reduce((n, part) => n + part.byteLength, 0);
    return new Blob([head(nBytes, rate), ...parts], { type: 'audio/wav' });
}

// Whatever the browser can decode, as a WAV file of one channel. Throws if it cannot.
export async function wavOfSound(blob) {
    const context = new OfflineAudioContext(1, 1, 48000);
    const sound = await context.decodeAudioData(await blob.arrayBuffer());
    const mixed = new Int16Array(sound.length);
    const channels = Array.from({ length: sound.numberOfChannels }, (_, i) => sound.getChannelData(i));
    for (let i = 0; i < sound.length; i++) {
        let sum = 0;
        for (const channel of channels) {
            sum += channel[i];
        }
        mixed[i] = Math.max(-32768, Math.min(32767, Math.round((32767 * sum) / channels.length)));
    }
    return { wav: wavOf([mixed], sound.sampleRate), seconds: sound.duration };
}
