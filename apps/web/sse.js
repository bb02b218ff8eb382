// Server-sent events over fetch: EventSource cannot send a key.

// Takes bytes of a stream in any pieces; calls onEvent(name, data) for each event.
export function createParser(onEvent) {
    const decoder = new TextDecoder();
    let rest = '';
    let name = '';
    let data = [];

    function takeLine(line) {
        if (line === '') {
            if (data.length > 0) {
                onEvent(name || 'message', data.join('\n'));
            }
            name = '';
            data = [];
            return;
        }
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
        if (field === 'event') {
            name = value;
        } else if (field === 'data') {
            data.push(value);
        }
    }

    return (bytes) => {
        const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n');
        rest = lines.pop();
        lines.forEach((line) => takeLine(line.replace(/\r$/, '')));
    };
}
